package routemap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// Build makes a map from plain content, and checks all of it. Every epoch that
// is 0 becomes first.
func Build(c Content, first cellway.Epoch) (*Map, error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	if c.CatchAll != "" && c.CatchAllEpoch == 0 {
		c.CatchAllEpoch = first
	}
	b := builder{c: c, first: first, byID: map[cellway.CellID]uint16{}}
	if err := b.putCells(); err != nil {
		return nil, err
	}
	buckets, err := b.buckets()
	if err != nil {
		return nil, err
	}
	if err := b.putRecords(); err != nil {
		return nil, err
	}
	holds, err := b.holds()
	if err != nil {
		return nil, err
	}
	base, err := encodeBase(c.Settings, b.cells, buckets, func(t *tableWriter) {
		t.w.b = slices.Grow(t.w.b, b.bytes)
		for i := range b.recs {
			t.add(b.recs[i].key, b.recs[i].rec)
		}
	})
	if err != nil {
		return nil, err
	}
	m, err := joinHolds(base, holds)
	if err != nil {
		return nil, err
	}
	if err := m.checkHolds(holds); err != nil {
		return nil, err
	}
	return m, nil
}

// A builder turns content into records.
type builder struct {
	c     Content
	first cellway.Epoch
	cells []*cellway.Cell // by id
	byID  map[cellway.CellID]uint16
	recs  []overRecord // by key
	bytes int          // of recs, when encoded
}

func (b *builder) putCells() error {
	if len(b.c.Cells) > cellway.MaxCells {
		return fmt.Errorf("%d cells, the most is %d: %w", len(b.c.Cells), cellway.MaxCells, cellway.ErrInvalid)
	}
	for i := range b.c.Cells {
		if err := b.c.Cells[i].Validate(); err != nil {
			return err
		}
		b.cells = append(b.cells, &b.c.Cells[i])
	}
	slices.SortFunc(b.cells, func(x, y *cellway.Cell) int { return cmp.Compare(x.ID, y.ID) })
	for i, cell := range b.cells {
		if _, ok := b.byID[cell.ID]; ok {
			return fmt.Errorf("cell %s stands twice: %w", cell.ID, cellway.ErrExists)
		}
		b.byID[cell.ID] = uint16(i)
	}
	if c := b.c.CatchAll; c != "" {
		_, err := b.owner("catch_all", c)
		return err
	}
	return nil
}

func (b *builder) owner(what string, id cellway.CellID) (uint16, error) {
	i, ok := b.byID[id]
	if !ok {
		return 0, fmt.Errorf("%s: cell %s is not in the map: %w", what, id, cellway.ErrNotFound)
	}
	return i, nil
}

// epoch returns e, or what stands for none.
func (b *builder) epoch(e cellway.Epoch) cellway.Epoch {
	if e == 0 {
		return b.first
	}
	return e
}

func (b *builder) buckets() ([]bucket, error) {
	buckets, owned := make([]bucket, b.c.Buckets), make([]bool, b.c.Buckets)
	if len(b.c.Owners) != len(buckets) {
		return nil, fmt.Errorf("fleet %s has %d buckets but %d bucket owners: %w", b.c.Fleet, len(buckets), len(b.c.Owners), cellway.ErrInvalid)
	}
	for _, o := range b.c.Owners {
		if o.Bucket >= b.c.Buckets || owned[o.Bucket] {
			return nil, fmt.Errorf("bucket %d of %d is unknown or stands twice: %w", o.Bucket, b.c.Buckets, cellway.ErrInvalid)
		}
		i, err := b.owner(fmt.Sprintf("bucket %d", o.Bucket), o.Cell)
		if err != nil {
			return nil, err
		}
		buckets[o.Bucket], owned[o.Bucket] = bucket{i, b.epoch(o.Epoch)}, true
	}
	return buckets, nil
}

func (b *builder) putRecords() error {
	b.recs = make([]overRecord, 0, len(b.c.Entries)+len(b.c.Aliases)+len(b.c.Tombstones))
	put := func(key string, rec record) {
		b.recs = append(b.recs, overRecord{key: key, rec: rec})
		b.bytes += recordSize(key, &rec)
	}
	for _, e := range b.c.Entries {
		if err := e.Validate(); err != nil {
			return err
		}
		rec := record{kind: recKind(e.Kind), cell: noCell, epoch: b.epoch(e.Epoch), note: noteOf(e)}
		if e.Cell != "" {
			var err error
			if rec.cell, err = b.owner("entry "+string(e.Key), e.Cell); err != nil {
				return err
			}
		}
		put(string(e.Key), rec)
	}
	for _, a := range b.c.Aliases {
		if err := a.Validate(); err != nil {
			return err
		}
		put(string(a.Name), record{kind: recAlias, cell: noCell, target: a.Target})
	}
	for _, t := range b.c.Tombstones {
		if err := t.Key.Validate(); err != nil {
			return fmt.Errorf("tombstone: %w", err)
		}
		put(string(t.Key), record{kind: recTombstone, cell: noCell, epoch: b.epoch(t.Epoch)})
	}
	slices.SortFunc(b.recs, byKey)
	for i := 1; i < len(b.recs); i++ {
		if b.recs[i].key == b.recs[i-1].key {
			return fmt.Errorf("key %q stands twice among entries, aliases and tombstones: %w", b.recs[i].key, cellway.ErrExists)
		}
	}
	return nil
}

func (b *builder) holds() ([]cellway.Hold, error) {
	holds := slices.Clone(b.c.Holds)
	for i := range holds {
		if err := holds[i].Validate(); err != nil {
			return nil, err
		}
		holds[i].Until = holds[i].Until.UTC().Truncate(time.Second)
	}
	slices.SortFunc(holds, func(x, y cellway.Hold) int { return strings.Compare(string(x.Key), string(y.Key)) })
	for i := 1; i < len(holds); i++ {
		if holds[i].Key == holds[i-1].Key {
			return nil, fmt.Errorf("hold of %s stands twice: %w", holds[i].Key, cellway.ErrExists)
		}
	}
	return holds, nil
}
