package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestProseIsWrappedBetweenWords(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"cellway: a short one\n", "cellway: a short one\n"},
		{"cellway: it is wrapped between its words\n", "cellway: it is wrapped\n  between its words\n"},
		{"  stands two columns in, as hints do\n", "  stands two columns in,\n    as hints do\n"},
		{"    cellway drain cell-001 --reason 'as it is to be copied'\n", "    cellway drain cell-001 --reason 'as it is to be copied'\n"},
		{"at http://10.0.0.1:8080/a/long/address it is\n", "at\n  http://10.0.0.1:8080/a/long/address\n  it is\n"},
		{"of all the cell's tenants 5 % stay\n", "of all the cell's tenants\n  5 % stay\n"},
		{"type \"cell-001\" to go on: ", "type \"cell-001\" to go on: "},
		{"\x1b[31ma word\x1b[0m in colours is no wider\n", "\x1b[31ma word\x1b[0m in colours is no\n  wider\n"},
		{"\rwaiting for something that is drawn again", "\rwaiting for something that is drawn again"},
	} {
		if got := fill(tt.text, 26); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestFactsAreWrappedInTheirColumn(t *testing.T) {
	f := &facts{}
	f.add("map", "1006081.7, made two minutes ago")
	f.add("routers", "two\nlines")
	f.add("digest", "%s", "0123456789abcdef0123456789")
	for width, want := range map[int]string{
		0:  "map      1006081.7, made two minutes ago\nrouters  two\n         lines\ndigest   0123456789abcdef0123456789\n",
		30: "map      1006081.7, made two\n         minutes ago\nrouters  two\n         lines\ndigest\n  0123456789abcdef0123456789\n",
	} {
		var out strings.Builder
		f.writeTo(&out, width)
		if out.String() != want {
			t.Errorf("in %d columns:\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}

func TestHelpIsWrappedAsItIsMeant(t *testing.T) {
	const text = `Lower a cell's admit: the percent of its keys
that routers let through.

  {"size": 2}

Examples:
  cellway drain cell-002 --reason 'disk is dying' --wait routers

Flags:
      --wait string   what to wait for: routers (every live router serves it)
  -h, --help          help

  5  done, but not every router serves it
     within --timeout
`
	const want = `Lower a cell's admit: the percent of its
keys that routers let through.

  {"size": 2}

Examples:
  cellway drain cell-002 --reason \
      'disk is dying' --wait routers

Flags:
      --wait string
          what to wait for: routers (every
          live router serves it)
  -h, --help          help

  5  done, but not every router serves it
     within --timeout
`
	if got := reflow(text, 42); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := reflow(text, 200); got != text {
		t.Errorf("there is room, and it is\n%s", got)
	}
}

// Nothing that a command tells about itself is wider than what it is written in.
func TestNoHelpIsTooWide(t *testing.T) {
	for _, width := range []int{80, pipeWidth} {
		root := (&app{}).root()
		forEachCommand(root, func(c *cobra.Command) {
			for line := range strings.Lines(reflow(c.Long+"\n\nFlags:\n"+c.LocalFlags().FlagUsages()+"\nExamples:\n"+c.Example, width)) {
				if n := visible(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns of %d: %s", c.CommandPath(), n, width, line)
				}
			}
		})
	}
}
