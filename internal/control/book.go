package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/placement"
)

// A book is all cells and what they hold, as of one state of the store, so that
// placement need not read a thousand cells for each tenant. The number of the
// state stands in the head record: a book of another one is read anew.
type book struct {
	state uint64
	rows  []*row // by id; rows are never changed
}

// A row is a cell with what it holds.
type row struct {
	cell      Cell
	usage     usageRecord
	usageRev  cellway.Revision
	candidate placement.Candidate
}

func newRow(c Cell, u usageRecord, rev cellway.Revision) *row {
	used := make(placement.Vector, len(u.Sums))
	for dim, s := range u.Sums {
		used[dim] = s.value()
	}
	m := c.inMap()
	return &row{c, u, rev, placement.Candidate{
		ID: c.ID, State: m.State, Admit: m.Admit, Region: m.Region, Tiers: c.Tiers, Capacity: placement.Vector(c.Capacity),
		Headroom: c.Headroom, Used: used, Tenants: u.Tenants, Taken: u.Dedicated > 0,
	}}
}

func byCell(r *row, id cellway.CellID) int { return cmp.Compare(r.cell.ID, id) }

// commit takes over the rows that a write has changed.
func (b *book) commit(state uint64, changed map[cellway.CellID]*row) {
	b.state = state
	for id, r := range changed {
		if i, ok := slices.BinarySearchFunc(b.rows, id, byCell); ok {
			b.rows[i] = r
		} else {
			b.rows = slices.Insert(b.rows, i, r)
		}
	}
}

// cells returns the book of the state that w works on. What w itself changed is
// not in it: see find.
func (w *work) cells() (*book, error) {
	if b := w.s.book; b != nil && b.state == w.head.Cells {
		return b, nil
	}
	b := &book{state: w.head.Cells}
	usage := map[string]store.Record{}
	for after := ""; ; {
		recs, err := w.tx.List(kindUsage, after, 1000)
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			usage[r.ID], after = r, r.ID
		}
		if len(recs) < 1000 {
			break
		}
	}
	err := each(w.tx, kindCell, "", func(c *Cell, r cellway.Revision) { c.Revision = r }, func(c Cell) error {
		var u usageRecord
		r, ok := usage[string(c.ID)]
		if ok {
			if err := json.Unmarshal(r.Body, &u); err != nil {
				return fmt.Errorf("usage record %s: %w", c.ID, err)
			}
		}
		b.rows = append(b.rows, newRow(c, u, r.Revision))
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.s.book = b
	return b, nil
}

// find returns the row of a cell as w has it.
func (w *work) find(id cellway.CellID) (*row, error) {
	if r, ok := w.rows[id]; ok {
		return r, nil
	}
	b, err := w.cells()
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(b.rows, id, byCell)
	if !ok {
		return nil, fmt.Errorf("cell %s: %w", id, cellway.ErrNotFound)
	}
	return b.rows[i], nil
}

// eachRow calls do with the rows as w has them, by id.
func (w *work) eachRow(do func(*row)) error {
	b, err := w.cells()
	if err != nil {
		return err
	}
	for _, r := range b.rows {
		if changed, ok := w.rows[r.cell.ID]; ok {
			r = changed
		}
		do(r)
	}
	return nil
}

// putCell writes a cell's record, and its new revision into c.
func (w *work) putCell(c *Cell) error {
	var u usageRecord
	var usageRev cellway.Revision
	switch r, err := w.find(c.ID); {
	case err == nil:
		u, usageRev = r.usage, r.usageRev
	case c.Revision > 0 || !errors.Is(err, cellway.ErrNotFound):
		return err
	}
	var err error
	if c.Revision, err = put(w.tx, kindCell, string(c.ID), c.Revision, c); err != nil {
		return err
	}
	w.rows[c.ID] = newRow(*c, u, usageRev)
	return nil
}

// reserve adds t to its cell n times; n is 1 or -1.
func (w *work) reserve(t Tenant, n int) error {
	r, err := w.find(t.Cell)
	if err != nil {
		return err
	}
	u, err := r.usage.reserved(t, n)
	if err != nil {
		return err
	}
	rev, err := put(w.tx, kindUsage, string(t.Cell), r.usageRev, u)
	if err != nil {
		return err
	}
	w.rows[t.Cell] = newRow(r.cell, u, rev)
	return nil
}
