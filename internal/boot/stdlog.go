package boot

import (
	"context"
	"log"
	"log/slog"
	"strings"

	"github.com/cellway/cellway/internal/plaintext"
)

// mostStdText is how many bytes of a line are kept.
const mostStdText = 200

// StdLog has the standard library's own logger write to l until restore is
// called, if nobody else has taken it over since. net/http uses it for what no
// request or server stands for, as bytes that come over an idle connection. Such
// a line is a warning with its text as "text": one line of printable ASCII of
// bounded length, and nothing of what stood in quotes, as that is what somebody
// out there has sent.
func StdLog(l *slog.Logger) (restore func()) {
	w, flags := &stdWriter{l}, log.Flags()
	before := log.Writer()
	log.SetFlags(0)
	log.SetOutput(w)
	return func() {
		if log.Writer() == w {
			log.SetOutput(before)
			log.SetFlags(flags)
		}
	}
}

// A stdWriter is given lines.
type stdWriter struct{ log *slog.Logger }

func (w *stdWriter) Write(line []byte) (int, error) {
	w.log.Log(context.Background(), slog.LevelWarn, "the standard library says", "text", plainText(string(line)))
	return len(line), nil
}

// plainText makes one line of printable ASCII of text, without what is quoted.
func plainText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, plaintext.Unquoted(text))
	return strings.TrimSpace(text[:min(len(text), mostStdText)])
}
