package shuffle_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// A worker that crashes stays in its hands for the forget delay; one that leaves
// is gone at once; one that comes back in time was never away.
func TestCrashDoesNotReshuffle(t *testing.T) {
	const forget = time.Minute
	m := shuffle.Members{ForgetAfter: forget}
	for _, w := range named(6, 1) {
		if err := m.Join(w); err != nil {
			t.Fatal(err)
		}
	}
	hand := func(now time.Time) []string {
		return ids(mustSnapshot(t, shuffle.Config{Size: 3, Workers: m.Workers(now)}).AppendHand(nil, "poison"))
	}
	before := hand(start)
	first := before[0]

	m.Silent(first, start)
	if got := hand(start.Add(forget - 1)); !slices.Equal(got, before) {
		t.Errorf("after a crash the hand is %v, want %v", got, before)
	}
	m.Silent(first, start.Add(forget-1)) // heard again that it is silent
	if got := hand(start.Add(forget)); slices.Contains(got, first) {
		t.Errorf("after the forget delay the hand is %v, with %s", got, first)
	}
	if err := m.Join(shuffle.Worker{ID: first, Zone: "z0", Weight: 1}); err != nil {
		t.Fatal(err)
	}
	if got := hand(start.Add(forget)); !slices.Equal(got, before) {
		t.Errorf("after it came back the hand is %v, want %v", got, before)
	}

	m.Silent(first, start)
	_ = m.Join(shuffle.Worker{ID: first, Zone: "z0", Weight: 1})
	if got := hand(start.Add(10 * forget)); !slices.Equal(got, before) {
		t.Errorf("it came back in time, and the hand is %v, want %v", got, before)
	}

	m.Leave(first)
	if got := hand(start); slices.Contains(got, first) || len(got) != 3 {
		t.Errorf("after a goodbye the hand is %v, with %s", got, first)
	}
	m.Leave("nobody")
	m.Silent("nobody", start)
	if got := len(m.Workers(start)); got != 5 {
		t.Errorf("%d members, want 5", got)
	}
}

func TestJoinRefusesWhatNoSnapshotTakes(t *testing.T) {
	var m shuffle.Members
	for _, w := range []shuffle.Worker{{Weight: 1}, {ID: "a", Weight: -1}, {ID: "a", Weight: shuffle.MaxWeight + 1}} {
		if err := m.Join(w); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%v joins: %v", w, err)
		}
	}
	if got := m.Workers(start); len(got) != 0 {
		t.Errorf("members %v", got)
	}
}
