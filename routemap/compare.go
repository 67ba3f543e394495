package routemap

import (
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// Counts are the differences between a map and the one before it, as far as
// the gate looks at them, beside the sizes that they are measured against.
type Counts struct {
	Entries uint32 `json:"entries"` // before
	Buckets uint32 `json:"buckets"` // before
	Cells   uint32 `json:"cells"`   // before, without the retired

	EntriesMoved   uint32 `json:"entries_moved"`   // had an owner and have another
	EntriesAdded   uint32 `json:"entries_added"`   //
	EntriesRemoved uint32 `json:"entries_removed"` //
	BucketsMoved   uint32 `json:"buckets_moved"`   // have another owner
	CellsRepointed uint32 `json:"cells_repointed"` // existing cells with other endpoints

	ExtractorsChanged bool `json:"extractors_changed,omitempty"`
	MappingChanged    bool `json:"mapping_changed,omitempty"` // mapping, bucket count, strict, stateless, pass-through or catch-all
}

func (c Counts) String() string {
	return fmt.Sprintf("%d of %d entries moved, %d added, %d removed, %d of %d buckets moved, %d cells repointed, extractors changed: %t, mapping changed: %t",
		c.EntriesMoved, c.Entries, c.EntriesAdded, c.EntriesRemoved, c.BucketsMoved, c.Buckets, c.CellsRepointed, c.ExtractorsChanged, c.MappingChanged)
}

// Add returns the sum of the changes of c and later; the sizes are those of c.
func (c Counts) Add(later Counts) Counts {
	c.EntriesMoved += later.EntriesMoved
	c.EntriesAdded += later.EntriesAdded
	c.EntriesRemoved += later.EntriesRemoved
	c.BucketsMoved += later.BucketsMoved
	c.CellsRepointed += later.CellsRepointed
	c.ExtractorsChanged = c.ExtractorsChanged || later.ExtractorsChanged
	c.MappingChanged = c.MappingChanged || later.MappingChanged
	return c
}

// Compare counts what changed from before to after. If before is nil,
// everything in after is new. Between maps of one base it costs what the
// overlays hold; between bases it walks over both.
func Compare(before, after *Map) Counts {
	if before == nil {
		return Counts{EntriesAdded: uint32(after.keys)}
	}
	c := Counts{Entries: uint32(before.keys), Buckets: before.base.settings.Buckets}
	a, b := before.base.settings, after.base.settings
	c.ExtractorsChanged = !slices.Equal(a.Extractors, b.Extractors)
	c.MappingChanged = a.Mapping != b.Mapping || a.Buckets != b.Buckets || a.Strict != b.Strict ||
		a.Stateless != b.Stateless || a.PassThrough != b.PassThrough || a.CatchAll != b.CatchAll
	for _, cell := range before.cells {
		if cell.State != cellway.CellRetired {
			c.Cells++
		}
		if now := after.Cell(cell.ID); now != nil && !sameEndpoints(cell.Endpoints, now.Endpoints) {
			c.CellsRepointed++
		}
	}
	if before.base != after.base || len(before.over.buckets)+len(after.over.buckets) > 0 {
		for i := range min(a.Buckets, b.Buckets) {
			if before.cellID(before.bucket(i).cell) != after.cellID(after.bucket(i).cell) {
				c.BucketsMoved++
			}
		}
	}
	if before.base == after.base || before.base.digest == after.base.digest {
		for _, over := range []*overlay{before.over, after.over} {
			for key := range over.recs {
				if over == after.over {
					if _, both := before.over.recs[key]; both {
						continue
					}
				}
				was, _ := before.find(key)
				is, _ := after.find(key)
				c.entry(before, after, was, is)
			}
		}
		return c
	}
	was, is := before.cursor(), after.cursor()
	k1, r1, _, ok1 := was.next()
	k2, r2, _, ok2 := is.next()
	none := record{kind: recAbsence}
	for ok1 || ok2 {
		switch {
		case ok1 && (!ok2 || k1 < k2):
			c.entry(before, after, r1, none)
			k1, r1, _, ok1 = was.next()
		case ok2 && (!ok1 || k2 < k1):
			c.entry(before, after, none, r2)
			k2, r2, _, ok2 = is.next()
		default:
			c.entry(before, after, r1, r2)
			k1, r1, _, ok1 = was.next()
			k2, r2, _, ok2 = is.next()
		}
	}
	return c
}

func (c *Counts) entry(before, after *Map, was, is record) {
	switch had, has := was.kind.isEntry(), is.kind.isEntry(); {
	case had && !has:
		c.EntriesRemoved++
	case has && !had:
		c.EntriesAdded++
	case had && before.cellID(was.cell) != after.cellID(is.cell):
		c.EntriesMoved++
	}
}

// cellID names the cell with that index, "" for noCell.
func (m *Map) cellID(i uint16) cellway.CellID {
	if i == noCell {
		return ""
	}
	return m.cells[i].ID
}

// sameEndpoints compares without regard to order.
func sameEndpoints(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
