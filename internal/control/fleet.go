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

// Fleet returns the fleet-wide settings.
func (s *Service) Fleet(ctx context.Context) (f Fleet, err error) {
	err = s.view(ctx, func(tx store.Tx) error { f, err = getFleet(tx); return err })
	return f, err
}

// PutFleet creates the fleet (at revision 0) or changes its settings. A fleet
// with a full mapping has a map from then on; one with buckets has its first
// map when its buckets are assigned. A bucket count of 0 means 16,384.
//
// Settings that are the same already leave the revision, and no trace in the
// journal.
//
// When a fleet becomes strict, each registered tenant that was found by its
// bucket gets an entry, so that it is found still. A fleet can't stop being
// stateless while overrides send registered tenants away from their homes.
func (s *Service) PutFleet(ctx context.Context, call Call, set routemap.Settings, at cellway.Revision) (f Fleet, c Change, err error) {
	var settle settlement
	c, err = s.prepared(ctx, call, func(tx store.Tx, m *routemap.Map) error {
		return settle.read(tx, m, set)
	}, func(w *work) error {
		set := set
		set.Extractors = slices.Clone(set.Extractors)
		old, err := getFleet(w.tx)
		switch {
		case errors.Is(err, cellway.ErrNotFound):
			old = Fleet{CreatedAt: w.now}
		case err != nil:
			return err
		}
		if at == 0 && old.Revision > 0 {
			return fmt.Errorf("fleet %s exists already, at revision %d; change that one: %w", old.Fleet, old.Revision, cellway.ErrConflict)
		}
		if set.Mapping == routemap.Buckets && set.Buckets == 0 {
			set.Buckets = routemap.DefaultBuckets
			if old.Revision > 0 {
				set.Buckets = old.Buckets
			}
		}
		if err := set.Validate(); err != nil {
			return err
		}
		f = Fleet{Revision: at, Settings: set, CreatedAt: old.CreatedAt}
		if at > 0 && at == old.Revision && alike(old, f) {
			w.change.Unchanged = true
			return nil
		}
		switch {
		case old.Revision > 0 && (set.Fleet != old.Fleet || set.Mapping != old.Mapping || set.Buckets != old.Buckets):
			return fmt.Errorf("fleet %s: name, mapping and bucket count never change: %w", old.Fleet, cellway.ErrInvalid)
		case w.m != nil:
			w.cs.Settings = &set
			if err := settle.apply(w); err != nil {
				return err
			}
		case set.Mapping == routemap.Full:
			w.built = &routemap.Content{Settings: set}
			if w.built.Cells, err = mapCells(w.tx); err != nil {
				return err
			}
		}
		if f.Revision, err = put(w.tx, kindFleet, only, at, f); err != nil {
			return err
		}
		w.record("fleet.set", "fleet/"+set.Fleet, present(old, old.Revision), f)
		return nil
	})
	if err == nil && !call.DryRun {
		s.backups.fleet.Store(&f.CreatedAt)
	}
	return f, c, err
}

// A settlement is what a change of settings means for registered tenants.
type settlement struct {
	entries []cellway.Entry // for tenants that their bucket no longer finds
	astray  []cellway.Key   // sent elsewhere than home, which no fleet with data may do
}

// read finds out what becomes of the tenants when the settings of m are
// replaced by set.
func (s *settlement) read(tx store.Tx, m *routemap.Map, set routemap.Settings) error {
	*s = settlement{}
	if m == nil {
		return nil
	}
	now := m.Settings()
	strict, stateful := set.Strict && !now.Strict, now.Stateless && !set.Stateless
	if !strict && !stateful {
		return nil
	}
	return each(tx, kindTenant, "live", setTenantRevision, func(t Tenant) error {
		r := m.Lookup(cellway.Key(t.ID))
		if stateful && r.Cell != nil && r.Cell.ID != t.Cell {
			s.astray = append(s.astray, cellway.Key(t.ID))
		}
		if _, ok := m.Entry(cellway.Key(t.ID)); strict && !ok {
			s.entries = append(s.entries, cellway.Entry{Key: cellway.Key(t.ID), Kind: cellway.Placed, Cell: t.Cell})
		}
		return nil
	})
}

func (s *settlement) apply(w *work) error {
	if n := len(s.astray); n > 0 {
		some := fmt.Sprintf("tenant %s is", s.astray[0])
		if n > 1 {
			some = fmt.Sprintf("%d tenants, such as %s, are", n, s.astray[0])
		}
		return fmt.Errorf("the fleet can't stop being stateless while %s sent elsewhere than home; first cellway override remove %s: %w", some, s.astray[0], cellway.ErrInUse)
	}
	w.cs.Entries = append(w.cs.Entries, s.entries...)
	return nil
}

// present is v for the journal, or nothing if it did not exist.
func present(v any, rev cellway.Revision) any {
	if rev == 0 {
		return nil
	}
	return v
}

// mapCells returns all cells as the map has them.
func mapCells(tx store.Tx) ([]cellway.Cell, error) {
	var out []cellway.Cell
	err := each(tx, kindCell, "", func(c *Cell, r cellway.Revision) { c.Revision = r }, func(c Cell) error {
		out = append(out, c.inMap())
		return nil
	})
	return out, err
}

// each calls do with all records of a kind.
func each[T any](tx store.Tx, kind, index string, set func(*T, cellway.Revision), do func(T) error) error {
	for after := ""; ; {
		p, err := page(tx, kind, index, after, 1000, set)
		if err != nil {
			return err
		}
		for _, v := range p.Items {
			if err := do(v); err != nil {
				return err
			}
		}
		if after = p.Next; after == "" {
			return nil
		}
	}
}
