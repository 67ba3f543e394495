package shuffle_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// start is when the tests of histories begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A writing is where a writer once left something of a tenant.
type writing struct {
	tenant, worker string
	at             time.Time
}

// Writers hear of versions late, each at its own time, while the cell grows,
// shrinks, drains, changes zones, and hands grow and shrink. A reader must
// find all that is younger than the window, and must not ask anybody who can't
// have any of it.
func TestHistoryFindsAllThatWasWritten(t *testing.T) {
	const (
		window  = time.Hour
		writers = 3
	)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 5))
		cfg := shuffle.Config{Salt: "s", Size: 4, Workers: named(12, 3)}
		h := shuffle.History{}.Add(mustSnapshot(t, cfg))
		now, next := start, 12
		knows := make([]uint64, writers)
		for i := range knows {
			knows[i] = 1
		}
		var written []writing
		for range 120 {
			now = now.Add(time.Duration(r.IntN(600)) * time.Second)
			switch change := cfg; r.IntN(6) {
			case 0: // another worker
				change.Workers = append(slices.Clone(cfg.Workers), shuffle.Worker{ID: fmt.Sprint("w-", next), Zone: fmt.Sprint("z", r.IntN(3)), Weight: 1})
				next++
				cfg = change
			case 1: // one less
				change.Workers = slices.Delete(slices.Clone(cfg.Workers), 0, 1)
				cfg = change
			case 2: // one is drained, or not any more
				change.Workers = slices.Clone(cfg.Workers)
				change.Workers[r.IntN(len(change.Workers))].Weight ^= 1
				cfg = change
			case 3: // larger or smaller hands
				cfg.Size = max(1, cfg.Size+r.IntN(5)-2)
			}
			s, err := shuffle.NewSnapshot(cfg)
			if err != nil { // out of workers: undo
				newest, _ := h.Newest()
				cfg = newest.Snapshot.Config()
				continue
			}
			h = h.Add(s)
			// Some writers hear of it.
			newest, _ := h.Newest()
			for i := range knows {
				if r.IntN(2) == 0 {
					knows[i] = newest.Seq
				}
			}
			h = h.Leave(slices.Min(knows), now).Forget(now.Add(-window))
			for _, v := range h.Versions() {
				if slices.Contains(knows, v.Seq) {
					tenant := fmt.Sprint("tenant-", r.IntN(20))
					for _, w := range v.Snapshot.AppendHand(nil, tenant) {
						written = append(written, writing{tenant, w.ID, now})
					}
				}
			}
			checkReads(t, h, written, now.Add(-window))
			// A reader that starts from what was stored sees the same.
			if again, err := shuffle.HistoryOf(h.Versions()...); err != nil {
				t.Fatal(err)
			} else {
				checkReads(t, again, written, now.Add(-window))
			}
		}
	}
}

// checkReads fails unless h's hands since then are those that it must have.
func checkReads(t *testing.T, h shuffle.History, written []writing, since time.Time) {
	t.Helper()
	for i := range 20 {
		tenant := fmt.Sprint("tenant-", i)
		got := ids(h.AppendHands(nil, tenant, since))
		for _, w := range written {
			if w.tenant == tenant && !w.at.Before(since) && !slices.Contains(got, w.worker) {
				t.Fatalf("%s left something with %s at %v: a reader since %v asks %v", tenant, w.worker, w.at, since, got)
			}
		}
		var may []string
		for _, v := range h.Versions() {
			if v.Left.IsZero() || !v.Left.Before(since) {
				may = append(may, ids(v.Snapshot.AppendHand(nil, tenant))...)
			}
		}
		slices.Sort(may)
		sorted := slices.Sorted(slices.Values(got))
		if !slices.Equal(sorted, slices.Compact(may)) {
			t.Fatalf("%s: a reader since %v asks %v, and the hands that may matter are %v", tenant, since, sorted, may)
		}
		newest, _ := h.Newest()
		if hand := ids(newest.Snapshot.AppendHand(nil, tenant)); !slices.Equal(got[:len(hand)], hand) {
			t.Fatalf("%s: %v does not begin with the newest hand, %v", tenant, got, hand)
		}
	}
}

// A hand of 6 becomes one of 2. Until the window has passed, readers ask all 6.
func TestHistoryMakesShrinkingSafe(t *testing.T) {
	workers := named(20, 1)
	large, small := mustSnapshot(t, shuffle.Config{Size: 6, Workers: workers}), mustSnapshot(t, shuffle.Config{Size: 2, Workers: workers})
	h := shuffle.History{}.Add(large).Add(small)
	size := func(since time.Time) int { return len(h.AppendHands(nil, "tenant", since)) }
	if got := size(start.Add(1000 * time.Hour)); got != 6 {
		t.Errorf("%d workers are asked while writers may use the hand of 6", got)
	}
	h = h.Leave(2, start)
	if got := size(start); got != 6 {
		t.Errorf("%d workers are asked, though the window still holds the hand of 6", got)
	}
	if got := size(start.Add(1)); got != 2 {
		t.Errorf("%d workers are asked after the window, want 2", got)
	}
	if got := len(h.Forget(start).Versions()); got != 2 {
		t.Errorf("%d versions are kept within the window, want 2", got)
	}
	if got := h.Forget(start.Add(1)).Versions(); len(got) != 1 || got[0].Seq != 2 {
		t.Errorf("after the window %v is kept", got)
	}
}

func TestHistoryDoesNotChange(t *testing.T) {
	a := mustSnapshot(t, shuffle.Config{Size: 1, Workers: named(2, 1)})
	b := mustSnapshot(t, shuffle.Config{Size: 1, Workers: named(3, 1)})
	c := mustSnapshot(t, shuffle.Config{Size: 1, Workers: named(4, 1)})
	one := shuffle.History{}.Add(a)
	two, other := one.Add(b), one.Add(c)
	if v, _ := two.Newest(); v.Snapshot != b {
		t.Error("a history changed when another was made from the same one")
	}
	if v, _ := other.Newest(); v.Snapshot != c || v.Seq != 2 {
		t.Errorf("newest is %v", v)
	}
	left := two.Leave(9, start)
	if v := left.Versions(); !v[0].Left.Equal(start) || !v[1].Left.IsZero() {
		t.Errorf("after all left for a version to come: %v", v)
	}
	if v := two.Versions(); !v[0].Left.IsZero() {
		t.Error("Leave changed the history that it came from")
	}
	if again := left.Leave(9, start.Add(time.Hour)).Versions(); !again[0].Left.Equal(start) {
		t.Error("a version was left twice")
	}
	if got := two.Add(mustSnapshot(t, b.Config())); len(got.Versions()) != 2 {
		t.Error("the same content is a new version")
	}
	if _, ok := (shuffle.History{}).Newest(); ok {
		t.Error("an empty history has a newest version")
	}
	if got := (shuffle.History{}).Leave(1, start).Forget(start).AppendHands(nil, "t", start); got != nil {
		t.Errorf("an empty history deals %v", got)
	}
}

func TestHistoryOfRefusesNonsense(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 1, Workers: named(2, 1)})
	v := func(seq uint64, left int) shuffle.Version {
		version := shuffle.Version{Seq: seq, Snapshot: s}
		if left > 0 {
			version.Left = start.Add(time.Duration(left))
		}
		return version
	}
	for name, versions := range map[string][]shuffle.Version{
		"no snapshot":            {{Seq: 1}},
		"a gap":                  {v(1, 0), v(3, 0)},
		"back":                   {v(2, 0), v(1, 0)},
		"left too early":         {v(1, 5), v(2, 4), v(3, 0)},
		"left before its elder":  {v(1, 0), v(2, 4), v(3, 0)},
		"the newest one is left": {v(1, 1), v(2, 2)},
	} {
		if _, err := shuffle.HistoryOf(versions...); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%s: error %v, want %v", name, err, shuffle.ErrInvalid)
		}
	}
	if _, err := shuffle.HistoryOf(v(4, 5), v(5, 5), v(6, 0), v(7, 0)); err != nil {
		t.Error(err)
	}
}
