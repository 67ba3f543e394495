package routemap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// Counts are the differences between a map and the one before it, as far as
// the gate looks at them, beside the sizes that they are measured against. They
// are about owners: what a key's look-up answered before and answers now.
type Counts struct {
	Entries uint32 `json:"entries"` // before
	Buckets uint32 `json:"buckets"` // before
	Cells   uint32 `json:"cells"`   // before, without the retired

	// Keys with an entry that have another owner now, or none by quarantine;
	// keys whose entry went and that fall through to another owner; and keys
	// that a pin, heavy or quarantine entry takes from the owner that they had
	// without it.
	EntriesMoved   uint32 `json:"entries_moved"`
	EntriesAdded   uint32 `json:"entries_added"`   // keys that have an entry and had none
	EntriesRemoved uint32 `json:"entries_removed"` // keys that had an entry and have none
	EntriesLost    uint32 `json:"entries_lost"`    // those of them that nothing owns now
	NamesLost      uint32 `json:"names_lost"`      // keys deleted that had an owner without an entry, and aliases that went
	BucketsMoved   uint32 `json:"buckets_moved"`   // have another owner
	CellsRepointed uint32 `json:"cells_repointed"` // existing cells with other endpoints

	ExtractorsChanged bool `json:"extractors_changed,omitempty"`
	MappingChanged    bool `json:"mapping_changed,omitempty"` // mapping, bucket count, strict, stateless, pass-through or catch-all
}

func (c Counts) String() string {
	return fmt.Sprintf("%d of %d entries moved, %d added, %d removed, %d of these lost, %d other names lost, %d of %d buckets moved, %d cells repointed, extractors changed: %t, mapping changed: %t",
		c.EntriesMoved, c.Entries, c.EntriesAdded, c.EntriesRemoved, c.EntriesLost, c.NamesLost, c.BucketsMoved, c.Buckets, c.CellsRepointed, c.ExtractorsChanged, c.MappingChanged)
}

// Add returns the sum of the changes of c and later; the sizes are those of c.
func (c Counts) Add(later Counts) Counts {
	c.EntriesMoved += later.EntriesMoved
	c.EntriesAdded += later.EntriesAdded
	c.EntriesRemoved += later.EntriesRemoved
	c.EntriesLost += later.EntriesLost
	c.NamesLost += later.NamesLost
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
	a, b := before.base.settings, after.base.settings
	c := comparison{before: before, after: after, counts: Counts{Entries: uint32(before.keys), Buckets: a.Buckets}}
	c.counts.ExtractorsChanged = !slices.Equal(a.Extractors, b.Extractors)
	c.counts.MappingChanged = a.Mapping != b.Mapping || a.Buckets != b.Buckets || a.Strict != b.Strict ||
		a.Stateless != b.Stateless || a.PassThrough != b.PassThrough || a.CatchAll != b.CatchAll
	c.cells()
	sameBase := before.base == after.base || before.base.digest == after.base.digest
	if !sameBase || len(before.over.buckets)+len(after.over.buckets) > 0 {
		for i := range min(a.Buckets, b.Buckets) {
			if c.owner(after.bucket(i).cell) != int(before.bucket(i).cell) {
				c.counts.BucketsMoved++
			}
		}
	}
	if sameBase {
		c.overlays()
	} else {
		c.bases()
	}
	return c.counts
}

// A comparison is a Compare at work.
type comparison struct {
	before, after *Map
	counts        Counts
	was           []int // of each cell of after: its index in before, or -1
}

// cells compares cell records, and finds each cell of after in before.
func (c *comparison) cells() {
	c.was = make([]int, len(c.after.cells))
	for i, cell := range c.after.cells {
		j, ok := c.before.byID[cell.ID]
		if !ok {
			j = -1
		}
		c.was[i] = j
	}
	for _, cell := range c.before.cells {
		if cell.State != cellway.CellRetired {
			c.counts.Cells++
		}
		if now := c.after.Cell(cell.ID); now != nil && now != cell && !sameEndpoints(cell.Endpoints, now.Endpoints) {
			c.counts.CellsRepointed++
		}
	}
}

// owner returns an owner in after by its index in before.
func (c *comparison) owner(i uint16) int {
	if i == noCell {
		return noCell
	}
	return c.was[i]
}

// overlays compares two maps of one base.
func (c *comparison) overlays() {
	a, b := c.before.over.recs, c.after.over.recs
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].key < b[0].key:
			c.record(a[0].key, a[0].rec, c.after.base.find(c.after.base.hash(a[0].key), a[0].key))
			a = a[1:]
		case len(a) == 0 || b[0].key < a[0].key:
			c.record(b[0].key, c.before.base.find(c.before.base.hash(b[0].key), b[0].key), b[0].rec)
			b = b[1:]
		default:
			c.record(a[0].key, a[0].rec, b[0].rec)
			a, b = a[1:], b[1:]
		}
	}
}

// bases compares two maps of two bases.
func (c *comparison) bases() {
	was, is := c.before.cursor(), c.after.cursor()
	k1, r1, _, ok1 := was.next()
	k2, r2, _, ok2 := is.next()
	for ok1 || ok2 {
		order := 0
		switch {
		case !ok2:
			order = -1
		case !ok1:
			order = 1
		default:
			order = strings.Compare(k1, k2)
		}
		switch {
		case order < 0:
			c.record(k1, r1, absent)
			k1, r1, _, ok1 = was.next()
		case order > 0:
			c.record(k2, absent, r2)
			k2, r2, _, ok2 = is.next()
		default:
			c.record(k1, r1, r2)
			k1, r1, _, ok1 = was.next()
			k2, r2, _, ok2 = is.next()
		}
	}
}

// record compares the record of one name in both maps.
func (c *comparison) record(key string, was, is record) {
	n := &c.counts
	switch had, has := was.kind.isEntry(), is.kind.isEntry(); {
	case had && has:
		if int(was.cell) != c.owner(is.cell) {
			n.EntriesMoved++
		}
	case had:
		n.EntriesRemoved++
		switch now := c.after.Lookup(cellway.Key(key)).Cell; {
		case now == nil:
			n.EntriesLost++
		case now.ID != c.before.cellID(was.cell):
			n.EntriesMoved++
		}
	case has:
		n.EntriesAdded++
		// A test entry is for a key that nobody else uses, and a placed one
		// for a key that is new.
		if is.kind.isOverride() && is.kind != recKind(cellway.Test) {
			if old := c.before.Lookup(cellway.Key(key)).Cell; old != nil && old.ID != c.after.cellID(is.cell) {
				n.EntriesMoved++
			}
		}
	case was.kind == recAlias && is.kind != recAlias:
		n.NamesLost++
	case is.kind == recTombstone && was.kind == recAbsence:
		if c.before.Lookup(cellway.Key(key)).Cell != nil {
			n.NamesLost++
		}
	}
}

// sameEndpoints compares without regard to order.
func sameEndpoints(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
