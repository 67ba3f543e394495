package control

import (
	"context"
	"errors"
	"fmt"

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
func (s *Service) PutFleet(ctx context.Context, call Call, set routemap.Settings, at cellway.Revision) (f Fleet, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getFleet(w.tx)
		switch {
		case errors.Is(err, cellway.ErrNotFound):
			old = Fleet{CreatedAt: w.now}
		case err != nil:
			return err
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
		switch {
		case old.Revision > 0 && (set.Fleet != old.Fleet || set.Mapping != old.Mapping || set.Buckets != old.Buckets):
			return fmt.Errorf("fleet %s: name, mapping and bucket count never change: %w", old.Fleet, cellway.ErrInvalid)
		case w.m != nil:
			w.cs.Settings = &set
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
	return f, c, err
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
