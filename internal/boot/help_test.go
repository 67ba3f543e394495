package boot

import (
	"flag"
	"strings"
	"testing"
	"time"
)

func TestHelpGoesByTopicAndMarksWhatMustBeGiven(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.String("fleet", "", "`name` of the fleet")
	fs.Bool("check", false, "only look")
	fs.Duration("wait", time.Second, "how long")
	fs.Int("most", 0, "how many; 0: all")
	fs.Bool("long", false, "whether what is said of it takes more than the eighty columns that every terminal has")
	fs.String("admin", "127.0.0.1:9090", "`address` for metrics")
	var out strings.Builder
	WriteSettings(&out, fs, []Topic{{"Fleet", []string{"fleet", "admin"}}, {"Time", []string{"wait"}}}, "fleet")
	want := `Fleet:
  --fleet name (must be given)
      name of the fleet
  --admin address
      address for metrics (default 127.0.0.1:9090)

Time:
  --wait duration
      how long (default 1s)

More settings:
  --check
      only look
  --long
      whether what is said of it takes more than the eighty columns that every
      terminal has
  --most int
      how many; 0: all
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestProseIsFoldedAndExamplesAreNot(t *testing.T) {
	long := strings.Repeat("word ", 20)
	text := "One paragraph\nof two lines. " + long + "\n\nExamples:\n  program " + long + "\n"
	want := "One paragraph of two lines. word word word word word word word word word word\n" +
		"word word word word word word word word word word\n\nExamples:\n  program " + long + "\n"
	if got := FoldProse(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Fold("a "+strings.Repeat("x", 90)+" b", "  ", "    "); got != "  a\n    "+strings.Repeat("x", 90)+"\n    b" {
		t.Errorf("got\n%s", got)
	}
}
