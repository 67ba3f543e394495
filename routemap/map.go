package routemap

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cellway/cellway"
)

// A Map answers which cell owns a key. It is immutable and safe for
// concurrent use. Build, Apply, Fold and Open make one.
type Map struct {
	base     *Base
	over     *overlay
	manifest *Manifest // nil unless it came from Open or Publish

	cells    []*cellway.Cell // the base's as the overlay has them, then the overlay's own
	byID     map[cellway.CellID]int
	owners   []byte // of the buckets, with the overlay's changes
	epochs   []byte
	catchAll int // index of the catch-all cell, or -1
	keys     int // entries
}

// assemble joins base and overlay. Both were checked.
func assemble(base *Base, over *overlay) *Map {
	m := &Map{base: base, over: over, cells: base.cells, owners: base.owners, epochs: base.epochs, catchAll: -1}
	if len(over.cells) > 0 {
		m.cells = slices.Clone(base.cells)
		for _, c := range over.cells {
			if i, ok := base.cell(c.ID); ok {
				m.cells[i] = c
			} else {
				m.cells = append(m.cells, c)
			}
		}
	}
	m.byID = make(map[cellway.CellID]int, len(m.cells))
	for i, c := range m.cells {
		m.byID[c.ID] = i
	}
	if c := base.settings.CatchAll; c != "" {
		m.catchAll = m.byID[c]
	}
	if len(over.buckets) > 0 {
		m.setBuckets(over.buckets)
	}
	m.keys = base.Keys()
	for i := range over.recs {
		r := &over.recs[i]
		m.keys += countEntry(r.rec.kind) - countEntry(base.find(r.hash, r.key).kind)
	}
	return m
}

// setBuckets puts the overlay's buckets over the base's.
func (m *Map) setBuckets(over []overBucket) {
	m.owners, m.epochs = slices.Clone(m.base.owners), slices.Clone(m.base.epochs)
	for _, b := range over {
		binary.LittleEndian.PutUint16(m.owners[2*b.number:], b.cell)
		binary.LittleEndian.PutUint64(m.epochs[8*b.number:], uint64(b.epoch))
	}
}

func countEntry(k recKind) int {
	if k.isEntry() {
		return 1
	}
	return 0
}

// Settings returns the fleet-wide part of m. The caller must not change its
// extractors.
func (m *Map) Settings() Settings { return m.base.settings }

// Base returns the base of m, which other maps may share.
func (m *Map) Base() *Base { return m.base }

// Manifest returns what was signed when m was published, or nil if it was not.
func (m *Map) Manifest() *Manifest { return m.manifest }

// Version returns the version under which m was published, or 0.
func (m *Map) Version() cellway.Version {
	if m.manifest == nil {
		return 0
	}
	return m.manifest.Version
}

// Cells returns all cells, retired ones too, in an order of no meaning. The
// caller must not change them.
func (m *Map) Cells() []*cellway.Cell { return slices.Clone(m.cells) }

// Cell returns the cell with that id, or nil.
func (m *Map) Cell(id cellway.CellID) *cellway.Cell {
	if i, ok := m.byID[id]; ok {
		return m.cells[i]
	}
	return nil
}

// Keys returns how many keys have an entry.
func (m *Map) Keys() int { return m.keys }

// Bucket returns the owner of bucket i, which is below Settings().Buckets.
func (m *Map) Bucket(i uint32) cellway.BucketOwner {
	b := m.bucket(i)
	return cellway.BucketOwner{Bucket: i, Cell: m.cellID(b.cell), Epoch: b.epoch}
}

func (m *Map) bucket(i uint32) bucket {
	return bucket{binary.LittleEndian.Uint16(m.owners[2*i:]), cellway.Epoch(binary.LittleEndian.Uint64(m.epochs[8*i:]))}
}

// cellID names the cell with that index, "" for noCell.
func (m *Map) cellID(i uint16) cellway.CellID {
	if i == noCell {
		return ""
	}
	return m.cells[i].ID
}

// OverlaySize returns the bytes that the overlay takes when encoded, so that a
// publisher can fold before it is full.
func (m *Map) OverlaySize() int { return m.over.size() }

// Equal reports whether m and o hold the same base and the same changes, byte
// for byte.
func (m *Map) Equal(o *Map) bool {
	return m.base.digest == o.base.digest && bytes.Equal(m.over.encode(), o.over.encode())
}
