package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// RollbackTo gives the fleet the content of an older version, in a new version
// above all others. Keys and buckets whose owner has changed since are left as
// they are, and listed; so are drains and cordons.
func (s *Service) RollbackTo(ctx context.Context, call Call, version cellway.Version) (r routemap.Rollback, c Change, err error) {
	old, _, err := s.OpenVersion(ctx, version)
	if err != nil {
		return r, c, fmt.Errorf("roll back: %w", err)
	}
	var found routemap.Rollback
	var settle settlement
	c, err = s.prepared(ctx, call, func(tx store.Tx, m *routemap.Map) error {
		if m == nil {
			return fmt.Errorf("roll back to map %v: the fleet has no map yet; cellway status tells what is next: %w", version, cellway.ErrNotReady)
		}
		found = m.RollbackTo(old)
		settle = settlement{}
		if set := found.Changes.Settings; set != nil {
			return settle.read(tx, m, *set)
		}
		return nil
	}, func(w *work) error {
		r = found
		r.Changes.Entries = slices.Clone(found.Changes.Entries)
		r.Changes.Cells, r.LeftCells = nil, slices.Clone(found.LeftCells)
		if err := w.takeOver(&r, found.Changes.Cells, old); err != nil {
			return err
		}
		w.cs = r.Changes
		w.cs.Entries = slices.Clone(r.Changes.Entries)
		if err := settle.apply(w); err != nil {
			return err
		}
		w.record("map.rollback", "map/"+version.String(), nil, newRollbackNote(r))
		return nil
	})
	return r, c, err
}

// A rollbackNote is a rollback in the journal: how much it changed, and the
// first of what it left. The change itself is in the log of changes.
type rollbackNote struct {
	Settings    bool             `json:"settings,omitempty"`
	Cells       int              `json:"cells,omitempty"`
	Entries     int              `json:"entries,omitempty"`
	LeftKeys    []cellway.Key    `json:"left_keys,omitempty"`
	LeftBuckets []uint32         `json:"left_buckets,omitempty"`
	LeftCells   []cellway.CellID `json:"left_cells,omitempty"`
	Left        int              `json:"left"` // keys, buckets and cells
}

func newRollbackNote(r routemap.Rollback) rollbackNote {
	return rollbackNote{
		Settings: r.Changes.Settings != nil, Cells: len(r.Changes.Cells), Entries: len(r.Changes.Entries),
		LeftKeys: first(r.LeftKeys), LeftBuckets: first(r.LeftBuckets), LeftCells: first(r.LeftCells),
		Left: len(r.LeftKeys) + len(r.LeftBuckets) + len(r.LeftCells),
	}
}

// first returns the first hundred of list.
func first[T any](list []T) []T { return list[:min(len(list), 100)] }

// takeOver makes the records say what r does, and puts the cells that it changes
// into r as the map has them.
func (w *work) takeOver(r *routemap.Rollback, cells []cellway.Cell, old *routemap.Map) error {
	f, err := getFleet(w.tx)
	if err != nil {
		return err
	}
	if set := r.Changes.Settings; set != nil {
		f.Settings = *set
		if f.Revision, err = put(w.tx, kindFleet, only, f.Revision, f); err != nil {
			return err
		}
	}
	for _, m := range cells {
		c, err := getCell(w.tx, m.ID)
		if err != nil {
			return err
		}
		if was := old.Cell(m.ID); was.Admit != c.Admit && !slices.Contains(r.LeftCells, m.ID) {
			r.LeftCells = append(r.LeftCells, m.ID)
		}
		// Whether a cell is drained or cordoned is no matter of the past.
		m.State, m.Admit = c.State, c.Admit
		if c.Region != m.Region {
			if err := w.mayLeave(c.ID, m.Region); err != nil {
				return err
			}
		}
		c.Cell = m
		if now := w.m.Cell(m.ID); now != nil && sameCell(*now, c.inMap()) {
			continue
		}
		if err := w.putCell(&c); err != nil {
			return err
		}
		r.Changes.Cells = append(r.Changes.Cells, c.inMap())
	}
	slices.Sort(r.LeftCells)
	for _, e := range r.Changes.Entries {
		o, err := getOverride(w.tx, e.Key)
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		if !e.Kind.IsOverride() {
			if o.Revision > 0 {
				if err := w.tx.Delete(kindOverride, string(e.Key), o.Revision); err != nil {
					return err
				}
			}
			// In a stateless fleet the tenant's home may have become another one.
			if t, err := getTenant(w.tx, e.Key.Tenant()); err != nil {
				return err
			} else if t.Cell != e.Cell {
				if err := w.rehome(f, t, e.Cell); err != nil {
					return err
				}
			}
			continue
		}
		if o.Revision == 0 {
			o.CreatedAt = w.now
		}
		o.Entry = e
		o.Epoch = 0
		if e.Cell != "" {
			o.Data = e.Cell
		}
		if err := putOverride(w.tx, &o); err != nil {
			return err
		}
	}
	return nil
}
