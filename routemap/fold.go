package routemap

import (
	"cmp"
	"fmt"
	"maps"
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
		t.w.b = slices.Grow(t.w.b, len(m.base.tab.recs)+m.over.recBytes)
		for key, rec := range m.all {
			rec.cell = owner(rec.cell)
			t.add(key, rec)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("fold map: %w", err)
	}
	return joinHolds(base, m.over.holds)
}

// joinHolds returns the map of a fresh base, checked, and holds.
func joinHolds(base *Base, holds []cellway.Hold) (*Map, error) {
	over := noChanges()
	over.setHolds(holds)
	if n := over.size(); n > MaxOverlay {
		return nil, fmt.Errorf("holds alone take %d bytes of %d: %w", n, MaxOverlay, ErrOverlayFull)
	}
	m := assemble(base, over)
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m, nil
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

// Content returns m in plain form, in the order of names. It shares nothing
// with m.
func (m *Map) Content() Content {
	c := Content{Settings: m.base.settings}
	c.Extractors = slices.Clone(c.Extractors)
	cells, _ := sortCells(m.cells)
	for _, cell := range cells {
		cell := *cell
		cell.Endpoints, cell.Tags = slices.Clone(cell.Endpoints), maps.Clone(cell.Tags)
		c.Cells = append(c.Cells, cell)
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
	c.Holds = slices.Clone(m.over.holds)
	return c
}

func (m *Map) entry(key string, rec record) cellway.Entry {
	e := cellway.Entry{Key: cellway.Key(key), Kind: cellway.EntryKind(rec.kind), Cell: m.cellID(rec.cell), Epoch: rec.epoch}
	if rec.note != nil {
		e.By, e.Reason, e.ReviewBy = rec.note.by, rec.note.reason, rec.note.time()
	}
	return e
}

// Entry returns the entry of exactly that key, aliases not resolved.
func (m *Map) Entry(key cellway.Key) (cellway.Entry, bool) {
	rec := m.whole(string(key))
	if !rec.kind.isEntry() {
		return cellway.Entry{}, false
	}
	return m.entry(string(key), rec), true
}
