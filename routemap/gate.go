package routemap

import "fmt"

// A Verdict is what the gate said of the changes of a version. It is signed
// with them.
type Verdict struct {
	Counts    Counts `json:"counts"`
	Confirmed bool   `json:"confirmed"` // a person confirmed what the gate refused
}

// A Cause is one limit of the gate that changes exceed.
type Cause struct {
	Name  string `json:"name"`  // entries_moved, buckets_moved, keys_shrunk, keys_lost, cells_repointed, extractors_changed or mapping_changed
	Count uint32 `json:"count"` // what the changes have
	Limit uint32 `json:"limit"` // the most that passes without a confirmation
}

func (c Cause) String() string {
	return fmt.Sprintf("%s is %d, at most %d pass without confirmation", c.Name, c.Count, c.Limit)
}

// The gate's limits, as shares of what was there before.
const (
	movedPercent  = 10
	movedAtLeast  = 10 // keys or buckets that may always move
	shrinkPercent = 20
	goneAtLeast   = 10 // keys that may always go
)

// Exceeded returns what of c must not pass unless a person confirms it: more
// than a tenth of the entries or of the buckets with another owner (or ten, or
// one cell's share of them, whichever is larger), a key count that shrinks by
// more than a fifth and by more than ten, the loss of all of several entries,
// keys lost that are more than ten and more than a fifth of the entries, whether
// they had an entry or not and whether others came or not, other endpoints for
// more than one cell, other extractors, another mapping. New keys are no change
// of owner, and taking an entry away whose key keeps its owner is none either.
// Changes of the last ten minutes are judged by their sum: see [Counts.Add].
func (c Counts) Exceeded() []Cause {
	var causes []Cause
	over := func(name string, count, limit uint32) {
		if count > limit {
			causes = append(causes, Cause{name, count, limit})
		}
	}
	movable := func(total uint32) uint32 {
		return max(uint32(uint64(total)*movedPercent/100), movedAtLeast, total/max(c.Cells, 1))
	}
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	over("entries_moved", c.EntriesMoved, movable(c.Entries))
	over("buckets_moved", c.BucketsMoved, movable(c.Buckets))
	goable := max(uint32(uint64(c.Entries)*shrinkPercent/100), goneAtLeast)
	// A few keys may always go, but not all: a map that was emptied is more
	// often the work of a sick source than anybody's wish.
	if lost := less(c.EntriesLost, c.EntriesAdded); c.Entries > 1 && c.Entries <= goable && lost >= c.Entries {
		over("keys_shrunk", lost, c.Entries-1)
	} else {
		over("keys_shrunk", less(c.EntriesRemoved, c.EntriesAdded), goable)
	}
	over("keys_lost", c.EntriesLost+c.NamesLost, goable)
	over("cells_repointed", c.CellsRepointed, 1)
	over("extractors_changed", flag(c.ExtractorsChanged), 0)
	over("mapping_changed", flag(c.MappingChanged), 0)
	return causes
}

// less returns a - b, and 0 rather than less.
func less(a, b uint32) uint32 { return a - min(a, b) }

func (w *writer) verdict(v Verdict) {
	c := v.Counts
	w.bool(v.Confirmed)
	for _, n := range []uint32{c.Entries, c.Buckets, c.Cells, c.EntriesMoved, c.EntriesAdded, c.EntriesRemoved, c.EntriesLost, c.NamesLost, c.BucketsMoved, c.CellsRepointed} {
		w.u32(n)
	}
	w.bool(c.ExtractorsChanged)
	w.bool(c.MappingChanged)
}

func (r *reader) verdict() Verdict {
	v := Verdict{Confirmed: r.bool()}
	c := &v.Counts
	for _, n := range []*uint32{&c.Entries, &c.Buckets, &c.Cells, &c.EntriesMoved, &c.EntriesAdded, &c.EntriesRemoved, &c.EntriesLost, &c.NamesLost, &c.BucketsMoved, &c.CellsRepointed} {
		*n = r.u32()
	}
	c.ExtractorsChanged = r.bool()
	c.MappingChanged = r.bool()
	return v
}
