package routemap

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// Fold writes base and overlay into a fresh base. The folded map answers every
// key as m does; only its holds are still in an overlay. It checks the whole
// map on the way.
func (m *Map) Fold() (*Map, error) { return m.fold(m.base.settings) }

func (m *Map) fold(s Settings) (*Map, error) {
	cells, renumber := sortCells(m.cells)
	owner := func(i uint16) uint16 {
		if i == noCell {
			return noCell
		}
		return renumber[i]
	}
	buckets := make([]bucket, m.base.settings.Buckets)
	for i := range buckets {
		b := m.bucket(uint32(i))
		buckets[i] = bucket{owner(b.cell), b.epoch}
	}
	base, err := encodeBase(s, cells, buckets, func(t *tableWriter) {
		for key, rec := range m.all {
			rec.cell = owner(rec.cell)
			t.add(key, rec)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("fold map: %w", err)
	}
	over := new(overlay).clone()
	for _, h := range m.over.holds {
		over.setHold(h)
	}
	out := assemble(base, over)
	return out, out.Check()
}

// sortCells sorts by id, and says where each went.
func sortCells(cells []*cellway.Cell) ([]*cellway.Cell, []uint16) {
	order := make([]uint16, len(cells))
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortFunc(order, func(a, b uint16) int { return cmp.Compare(cells[a].ID, cells[b].ID) })
	sorted, renumber := make([]*cellway.Cell, len(cells)), make([]uint16, len(cells))
	for to, from := range order {
		sorted[to], renumber[from] = cells[from], uint16(to)
	}
	return sorted, renumber
}

// Build makes a map from plain content. Every epoch that is 0 becomes first.
func Build(c Content, first cellway.Epoch) (*Map, error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	if c.Mapping == Buckets && len(c.Owners) != int(c.Buckets) || c.Mapping == Full && len(c.Owners) > 0 {
		return nil, fmt.Errorf("fleet %s has %d buckets but %d bucket owners: %w", c.Fleet, c.Buckets, len(c.Owners), cellway.ErrInvalid)
	}
	empty, err := emptyMap(c, first)
	if err != nil {
		return nil, err
	}
	cs := ChangeSet{Entries: c.Entries, Aliases: c.Aliases, Tombstones: c.Tombstones, Holds: c.Holds}
	cs.Entries, cs.Tombstones = slices.Clone(c.Entries), slices.Clone(c.Tombstones)
	for i := range cs.Entries {
		cs.Entries[i].Epoch = max(cs.Entries[i].Epoch, first)
	}
	for i := range cs.Tombstones {
		cs.Tombstones[i].Epoch = max(cs.Tombstones[i].Epoch, first)
	}
	d := &draft{was: empty, over: new(overlay).clone(), cells: slices.Clone(empty.cells), touched: map[string]bool{}}
	seen := map[cellway.Key]bool{}
	for _, e := range cs.Entries {
		if seen[e.Key] {
			return nil, fmt.Errorf("entry %s stands twice: %w", e.Key, cellway.ErrExists)
		}
		seen[e.Key] = true
	}
	if err := d.change(cs); err != nil {
		return nil, err
	}
	m, err := assemble(empty.base, d.over).Fold()
	if err != nil {
		return nil, err
	}
	if s := m.base.settings; s.PassThrough {
		return m, m.checkPassThrough()
	}
	return m, nil
}

// emptyMap has the cells and buckets of c.
func emptyMap(c Content, first cellway.Epoch) (*Map, error) {
	if len(c.Cells) > cellway.MaxCells {
		return nil, fmt.Errorf("%d cells, the most is %d: %w", len(c.Cells), cellway.MaxCells, cellway.ErrInvalid)
	}
	cells := make([]*cellway.Cell, len(c.Cells))
	index := map[cellway.CellID]uint16{}
	for i := range c.Cells {
		cell := c.Cells[i]
		if err := cell.Validate(); err != nil {
			return nil, err
		}
		cells[i] = &cell
	}
	slices.SortFunc(cells, func(a, b *cellway.Cell) int { return cmp.Compare(a.ID, b.ID) })
	for i, cell := range cells {
		if _, ok := index[cell.ID]; ok {
			return nil, fmt.Errorf("cell %s stands twice: %w", cell.ID, cellway.ErrExists)
		}
		index[cell.ID] = uint16(i)
	}
	buckets := make([]bucket, c.Buckets)
	owned := make([]bool, c.Buckets)
	for _, b := range c.Owners {
		i, ok := index[b.Cell]
		switch {
		case b.Bucket >= c.Buckets || owned[b.Bucket]:
			return nil, fmt.Errorf("bucket %d of %d is unknown or stands twice: %w", b.Bucket, c.Buckets, cellway.ErrInvalid)
		case !ok:
			return nil, fmt.Errorf("bucket %d: cell %s is not in the map: %w", b.Bucket, b.Cell, cellway.ErrNotFound)
		}
		buckets[b.Bucket], owned[b.Bucket] = bucket{i, max(b.Epoch, first)}, true
	}
	if c.CatchAll != "" {
		if _, ok := index[c.CatchAll]; !ok {
			return nil, fmt.Errorf("catch_all: cell %s is not in the map: %w", c.CatchAll, cellway.ErrNotFound)
		}
	}
	base, err := encodeBase(c.Settings, cells, buckets, func(*tableWriter) {})
	if err != nil {
		return nil, err
	}
	return assemble(base, new(overlay).clone()), nil
}

// Content returns m in plain form, in the order of names.
func (m *Map) Content() Content {
	c := Content{Settings: m.base.settings}
	cells, _ := sortCells(m.cells)
	for _, cell := range cells {
		c.Cells = append(c.Cells, *cell)
	}
	for i := range m.base.settings.Buckets {
		c.Owners = append(c.Owners, m.Bucket(i))
	}
	for key, rec := range m.all {
		switch {
		case rec.kind == recAlias:
			c.Aliases = append(c.Aliases, cellway.Alias{Name: cellway.TenantID(key), Target: rec.target})
		case rec.kind == recTombstone:
			c.Tombstones = append(c.Tombstones, cellway.Tombstone{Key: cellway.Key(key), Epoch: rec.epoch})
		default:
			c.Entries = append(c.Entries, m.entry(key, rec))
		}
	}
	for _, k := range sortedKeys(m.over.holds) {
		c.Holds = append(c.Holds, m.over.holds[k])
	}
	return c
}

func (m *Map) entry(key string, rec record) cellway.Entry {
	return cellway.Entry{
		Key: cellway.Key(key), Kind: cellway.EntryKind(rec.kind), Cell: m.cellID(rec.cell), Epoch: rec.epoch,
		By: rec.note.by, Reason: rec.note.reason, ReviewBy: rec.note.reviewBy,
	}
}

// Entry returns the entry of exactly that key, aliases not resolved.
func (m *Map) Entry(key cellway.Key) (cellway.Entry, bool) {
	rec, ok := m.over.recs[string(key)]
	if !ok {
		i := m.base.tab.find(string(key))
		if i < 0 {
			return cellway.Entry{}, false
		}
		rec = m.base.tab.full(i)
	}
	return m.entry(string(key), rec), rec.kind.isEntry()
}
