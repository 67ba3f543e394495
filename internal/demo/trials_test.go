package demo

import (
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/report"
)

// played returns the outcome of a play: contained (c), late with no sign of a busy
// machine (l), late on a busy one (b), failed where nothing was done (f).
func played(how rune) report.Act {
	out := report.Act{Name: "kill-cell", Target: "cell-001", Contained: how == 'c', Inconclusive: how == 'b', Cells: []report.Cell{{ID: "cell-001"}, {ID: "cell-002"}}}
	switch how {
	case 'l', 'b':
		out.Cells[1].Errors, out.Cells[1].Causes = 1, map[string]int{load.NoAnswer: 1}
	case 'f':
		out.Cells[1].Errors, out.Cells[1].Causes = 1, map[string]int{"500": 1}
	}
	return out
}

func TestLateAnswersArePlayedAgainAndFailuresStand(t *testing.T) {
	for plays, want := range map[string]string{ // as far as they are played
		"c":   "contained",
		"f":   "NOT CONTAINED",
		"bc":  "contained at play 2",
		"bbc": "contained at play 3",
		"bbb": "inconclusive",
		"lcc": "contained at play 3",
		"lcl": "NOT CONTAINED",
		"lcb": "inconclusive",
		"ll":  "NOT CONTAINED", // one more can't settle it
		"bl":  "NOT CONTAINED",
		"lb":  "inconclusive",
		"bf":  "NOT CONTAINED",
		"lf":  "NOT CONTAINED",
		"lcf": "NOT CONTAINED",
	} {
		var tries trials
		for i, how := range plays {
			out := played(how)
			again, last := tries.add(&out), i == len(plays)-1
			if again == last {
				t.Errorf("%s: after play %d it is played again: %t", plays, i+1, again)
			}
			if last && !strings.HasPrefix(out.Verdict(), want) {
				t.Errorf("%s: %s, want %s", plays, out.Verdict(), want)
			}
			if late := strings.Count(plays, "l") + strings.Count(plays, "b"); last && i > 0 && (out.Plays != i+1 || out.Late != late) {
				t.Errorf("%s: %d plays, %d late", plays, out.Plays, out.Late)
			}
		}
	}
	control := report.Act{Control: true, Cells: []report.Cell{{ID: "cell-002", Errors: 1, Causes: map[string]int{load.NoAnswer: 1}}}}
	if new(trials).add(&control) {
		t.Error("a control is played again")
	}
}
