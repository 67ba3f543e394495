package fit

import (
	"strings"
	"testing"
)

var columns = []Column{
	{Head: "cell", Left: true},
	{Head: "state", Left: true, Wide: true, Rank: 1},
	{Head: "req/s", Width: 7, Rank: 2},
	{Head: "p50", Width: 6, Rank: 3},
}

var rows = [][]string{{"cell-001", "\x1b[32mup\x1b[0m", "155", "2.1 ms"}, {"cell-002", "down", "12345", ""}}

func TestATableLosesWholeColumnsAndNeverAPartOfANumber(t *testing.T) {
	for width, want := range map[int]string{
		0:  "cell      state   req/s    p50",
		30: "cell      state   req/s    p50",
		29: "cell      state   req/s",
		23: "cell      state   req/s",
		22: "cell      state",
		15: "cell      state",
		14: "cell",
		3:  "cell",
	} {
		head, lines := Table(width, columns, rows)
		if head != want {
			t.Errorf("at %d: head %q, want %q", width, head, want)
		}
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "cell-001") {
			t.Errorf("at %d: %q", width, lines)
		}
		for _, l := range lines {
			if width >= len("cell-001") && Visible(l) > width {
				t.Errorf("at %d: %d columns: %q", width, Visible(l), l)
			}
		}
	}
	_, lines := Table(0, columns, rows)
	if want := "cell-001  \x1b[32mup\x1b[0m        155 2.1 ms"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	if want := "cell-002  down    12345"; lines[1] != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
}

func TestAWideCellWidensItsColumn(t *testing.T) {
	head, lines := Table(0, columns[:2], [][]string{{"a-cell-with-a-long-name", "up"}})
	if want := "cell                     state"; head != want || lines[0] != "a-cell-with-a-long-name  up" {
		t.Errorf("got %q and %q", head, lines)
	}
}

func TestFlowBreaksBetweenPieces(t *testing.T) {
	got := strings.Join(Flow(12, "   ", "one", "", "two", "three", "four and five"), "\n")
	if want := "one   two\nthree\nfour and five"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSomeTakesWhatFitsWhole(t *testing.T) {
	for width, want := range map[int]string{20: "one, two, three", 10: "one, two", 4: "one", 1: "one"} {
		if got := Some(width, ", ", "one", "two", "three"); got != want {
			t.Errorf("at %d: %q, want %q", width, got, want)
		}
	}
	if got := Some(9, ", "); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestCutKeepsEscapesAndSaysThatSomethingIsMissing(t *testing.T) {
	for _, tc := range []struct {
		width    int
		in, want string
	}{
		{5, "abcde", "abcde"}, {4, "abcde", "abc…"}, {4, "abcd   ", "abcd"}, {0, "abc", ""},
		{3, "\x1b[31mabcd\x1b[0mef", "\x1b[31mab…\x1b[0m"},
	} {
		if got := Cut(tc.width, tc.in); got != tc.want {
			t.Errorf("%q at %d: %q, want %q", tc.in, tc.width, got, tc.want)
		}
	}
}
