package boot

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

func TestTheStandardLoggerIsTakenOver(t *testing.T) {
	was, flags := log.Writer(), log.Flags()
	var one, two bytes.Buffer
	first := StdLog(slog.New(slog.NewJSONHandler(&one, nil)))
	log.Printf("Unsolicited response starting with %q; err=%v", "secret \"\x1b[2J", "EOF\nlevel=ERROR msg=forged")
	second := StdLog(slog.New(slog.NewTextHandler(&two, nil)))
	log.Print(strings.Repeat("long", 1000))
	first() // the other one has it
	log.Print("after")
	second()
	if got := one.String(); !strings.Contains(got, `"text":"Unsolicited response starting with \"...\"; err=EOF level=ERROR msg=forged"}`) || strings.Count(got, "\n") != 1 {
		t.Errorf("the first got %s", got)
	}
	if got := two.String(); len(got) > 600 || !strings.Contains(got, "longlong") || !strings.Contains(got, "text=after") {
		t.Errorf("the second got %s", got)
	}
	if log.Writer() == was || log.Flags() != 0 {
		t.Error("who took over last gives back what was before, whoever has ended")
	}
	log.SetOutput(was)
	log.SetFlags(flags)
	restore := StdLog(slog.New(slog.DiscardHandler))
	restore()
	if log.Writer() != was || log.Flags() != flags {
		t.Error("it is not given back")
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("a \"b\\\"c\" d\n\x00é")
	f.Fuzz(func(t *testing.T, text string) {
		got := plainText(text)
		if len(got) > mostStdText+8 {
			t.Errorf("%d bytes", len(got))
		}
		for _, c := range []byte(got) {
			if c < ' ' || c > '~' {
				t.Errorf("%q", got)
			}
		}
	})
}
