package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

const (
	// gateWindow is how long a change counts at the gate, to within a grain.
	gateWindow  = 10 * time.Minute
	windowGrain = 10 * time.Second
)

// effects are the part of routemap.Counts that is a change and no size. They
// are added up.
type effects routemap.Counts

// A windowEntry is what the changes of one grain of time did. At is that of the
// first.
type windowEntry struct {
	At         time.Time `json:"at"`
	Moved      uint32    `json:"moved,omitempty"` // entries
	Added      uint32    `json:"added,omitempty"`
	Removed    uint32    `json:"removed,omitempty"`
	Lost       uint32    `json:"lost,omitempty"`
	Names      uint32    `json:"names,omitempty"` // lost
	Buckets    uint32    `json:"buckets,omitempty"`
	Repointed  uint32    `json:"repointed,omitempty"`
	Extractors bool      `json:"extractors,omitempty"`
	Mapping    bool      `json:"mapping,omitempty"`

	// Cells are those that Repointed counts, by id. A program that did not name them
	// yet leaves them out; then each change counts as another cell's.
	Cells []cellway.CellID `json:"cells,omitempty"`
}

func newWindowEntry(at time.Time, c routemap.Counts, cells []cellway.CellID) windowEntry {
	return windowEntry{at, c.EntriesMoved, c.EntriesAdded, c.EntriesRemoved, c.EntriesLost, c.NamesLost, c.BucketsMoved, c.CellsRepointed, c.ExtractorsChanged, c.MappingChanged, cells}
}

func (e windowEntry) counts() routemap.Counts {
	return routemap.Counts{
		EntriesMoved: e.Moved, EntriesAdded: e.Added, EntriesRemoved: e.Removed, EntriesLost: e.Lost, NamesLost: e.Names,
		BucketsMoved: e.Buckets, CellsRepointed: e.Repointed, ExtractorsChanged: e.Extractors, MappingChanged: e.Mapping,
	}
}

// addToWindow joins changes of the same few seconds, so that the window stays
// small however many there are. What does nothing that is counted is left out.
// Cells are those whose endpoints change, of which c has the number.
func addToWindow(window []windowEntry, at time.Time, c routemap.Counts, cells []cellway.CellID) []windowEntry {
	e := newWindowEntry(at, c, cells)
	if e.counts() == (routemap.Counts{}) {
		return window
	}
	if n := len(window); n > 0 && at.Sub(window[n-1].At) < windowGrain {
		last := window[n-1]
		c, cells = last.counts().Add(c), slices.Concat(last.Cells, cells)
		if last.Repointed == 0 || last.Cells != nil {
			slices.Sort(cells)
			cells = slices.Compact(cells)
		} else {
			cells = nil // of some it is not known which they are
		}
		window[n-1] = newWindowEntry(last.At, c, cells)
		return window
	}
	return append(window, e)
}

// repointed returns how many cells get other endpoints by what is in a window, and
// in more.
func repointed(window []windowEntry, more []cellway.CellID) uint32 {
	cells, unnamed := slices.Clone(more), uint32(0)
	for _, e := range window {
		if cells = append(cells, e.Cells...); e.Cells == nil {
			unnamed += e.Repointed
		}
	}
	slices.Sort(cells)
	return unnamed + uint32(len(slices.Compact(cells)))
}

// repoints returns the cells whose endpoints w changes, by id. One that is new is
// none of them: it owns nothing yet, so nothing is sent there.
func (w *work) repoints() (cells []cellway.CellID) {
	if w.m == nil {
		return nil
	}
	for _, c := range w.cs.Cells {
		before := w.m.Cell(c.ID)
		if before == nil || before.State == cellway.CellNew {
			continue
		}
		// Their order is of no account.
		if !slices.Equal(slices.Sorted(slices.Values(before.Endpoints)), slices.Sorted(slices.Values(c.Endpoints))) {
			cells = append(cells, c.ID)
		}
	}
	slices.Sort(cells)
	return cells
}

// recent returns what of a window still counts at now. An entry from the future,
// left by a clock that was wrong, counts as from now.
func recent(window []windowEntry, now time.Time) []windowEntry {
	var out []windowEntry
	for _, e := range window {
		if e.At.After(now) {
			e.At = now
		}
		if now.Sub(e.At) < gateWindow+windowGrain {
			out = append(out, e)
		}
	}
	return out
}

// A GateError is a refusal that a person may confirm. It wraps
// [cellway.ErrGate].
type GateError struct {
	Causes []routemap.Cause
	Counts routemap.Counts // with the unconfirmed ones of the last ten minutes
	Digest routemap.Digest // to confirm: of the change set, what it does and the names of the causes
}

func (e *GateError) Error() string {
	return fmt.Sprintf("%v (%v); confirm digest %v: %v", e.Causes[0], e.Counts, e.Digest, cellway.ErrGate)
}

// Unwrap returns [cellway.ErrGate].
func (e *GateError) Unwrap() error { return cellway.ErrGate }

// gate refuses what a person must confirm. A change is judged with what was
// accepted unconfirmed in the last ten minutes, and also alone: what others
// added must not hide what it takes away, and a router, which judges version by
// version, would see it alone. What a person has confirmed is not counted again.
// A key that is refused at the door, or let in again, is judged alone and counts
// for nobody: no data is parted from its tenant, and an emergency must not wait
// for a confirmation. Of endpoints the cells are counted that get others, each once
// in ten minutes: what is wrong with them is wrong for that cell alone.
func (w *work) gate(entry *changeEntry, named routemap.Digest) error {
	window := recent(w.head.Window, w.now)
	before := routemap.Counts{Entries: entry.Counts.Entries, Buckets: entry.Counts.Buckets, Cells: entry.Counts.Cells}
	for _, e := range window {
		before = before.Add(e.counts())
	}
	cells, change := w.repoints(), entry.Counts
	change.CellsRepointed = uint32(len(cells))
	// What has gone is measured against what there was before it went.
	before.Entries += before.EntriesRemoved - min(before.EntriesRemoved, before.EntriesAdded)
	sum := before.Add(change)
	before.CellsRepointed, sum.CellsRepointed = repointed(window, nil), repointed(window, cells)
	causes := slices.Clone(w.ask)
	if w.built == nil && !w.drain { // the first map takes nothing from anybody
		if !w.alone {
			causes = append(causes, added(before.Exceeded(), sum.Exceeded())...)
		}
		for _, alone := range entry.Counts.Exceeded() {
			if !slices.ContainsFunc(causes, func(c routemap.Cause) bool { return c.Name == alone.Name }) {
				causes = append(causes, alone)
			}
		}
	}
	entry.Digest = confirmation(named, entry.Counts, causes)
	w.head.Window = window
	switch {
	case w.confirmed:
		entry.Confirmed = true
	case len(causes) == 0 && w.alone:
	case len(causes) == 0:
		w.head.Window = addToWindow(window, w.now, change, cells)
	case w.call.Confirm == entry.Digest:
		entry.Confirmed = true
	case w.call.DryRun: // who only tries it is told all that it would do
		w.change.Causes = causes
	default:
		return &GateError{causes, sum, entry.Digest}
	}
	return nil
}

// added returns the causes that a change adds to. Limits are shares, so that one
// may be exceeded since the fleet has become smaller; a change that moves nobody
// answers for none of it.
func added(before, sum []routemap.Cause) []routemap.Cause {
	return slices.DeleteFunc(sum, func(c routemap.Cause) bool {
		return slices.ContainsFunc(before, func(b routemap.Cause) bool { return b.Name == c.Name && b.Count >= c.Count })
	})
}
