package demo

import "github.com/cellway/cellway/internal/demo/report"

// maxPlays is how often an act is played at most.
const maxPlays = 3

// trials are the plays of one act so far. The zero value is none.
type trials struct {
	plays int
	late  int // of them, those whose answers were late, and no worse
	owed  int // contained plays in a row that are wanted before the act counts as contained
}

// add hears of one more play, notes in it how many there were, and reports whether
// the act is to be played again.
//
// A play that failed otherwise than by late answers is the last one: no other takes
// it back. After one that was late on a machine that was too busy to tell, one that
// is contained settles it. After one that was late with no sign of that, two are
// wanted: answers that are late now and then are a fault, too. Where the plays that
// are left can't settle it, the last one stands.
func (t *trials) add(out *report.Act) (again bool) {
	t.plays++
	switch {
	case out.OnlyLate():
		t.late++
		t.owed = max(t.owed, 1)
		if !out.Inconclusive {
			t.owed = 2
		}
	case t.owed > 0:
		t.owed--
	}
	if t.plays > 1 {
		out.Plays, out.Late = t.plays, t.late
	}
	failed := !out.Contained && !out.OnlyLate()
	return !out.Control && !failed && t.owed > 0 && t.owed <= maxPlays-t.plays
}
