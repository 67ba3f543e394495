package telemetry

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/cellway/cellway"
)

// NewLog returns a log that writes to w from that level on. The format is json,
// text, or auto: text on a terminal and otherwise json. Another one is an error
// that wraps [cellway.ErrInvalid].
func NewLog(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	if format == "auto" {
		format = "json"
		if isTerminal(w) {
			format = "text"
		}
	}
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	}
	return nil, fmt.Errorf("%q is not json, text or auto: %w", format, cellway.ErrInvalid)
}

// LossOn returns what tells, in that format, that a log has lost lines. It is for
// a log that nothing waits for.
func LossOn(format string) func(w io.Writer, lost uint64) {
	return func(w io.Writer, lost uint64) {
		if log, err := NewLog(w, format, slog.LevelInfo); err == nil {
			log.Warn("log lines lost: they could not be written in time", "count", lost)
		}
	}
}

// isTerminal looks through what is around a file.
func isTerminal(w io.Writer) bool {
	for {
		outer, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}
