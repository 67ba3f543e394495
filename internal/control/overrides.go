package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Overrides lists overrides by key, of one kind unless kind is empty.
func (s *Service) Overrides(ctx context.Context, kind, after string, limit int) (p Page[Override], err error) {
	index := ""
	if kind != "" {
		index = "kind=" + kind
	}
	err = s.view(ctx, func(tx store.Tx) error {
		p, err = page(tx, kindOverride, index, after, limit, func(o *Override, r cellway.Revision) { o.Revision = r })
		return err
	})
	m := s.Accepted()
	for i := range p.Items {
		p.Items[i].Epoch = epochOf(m, p.Items[i].Key)
	}
	return p, err
}

// epochOf returns the epoch of a key's entry in the accepted map.
func epochOf(m *routemap.Map, key cellway.Key) cellway.Epoch {
	if m == nil {
		return 0
	}
	e, _ := m.Entry(key)
	return e.Epoch
}

// Override returns the override of one key.
func (s *Service) Override(ctx context.Context, key cellway.Key) (o Override, err error) {
	err = s.view(ctx, func(tx store.Tx) error { o, err = getOverride(tx, key); return err })
	o.Epoch = epochOf(s.Accepted(), key)
	return o, err
}

// PutOverride sets the override of a key (at revision 0: none is there yet).
// An override that would send a tenant away from its data needs a move and is
// refused; a quarantine without a cell refuses the key in the router and is
// always possible.
func (s *Service) PutOverride(ctx context.Context, call Call, set cellway.Entry, at cellway.Revision) (o Override, c Change, err error) {
	set.Epoch = 0
	set.ReviewBy = set.ReviewBy.UTC().Truncate(1e9)
	if !set.Kind.IsOverride() {
		return o, c, fmt.Errorf("override %s: placed is placement's kind; give pin, heavy, quarantine or test: %w", set.Key, cellway.ErrInvalid)
	}
	if err := set.Validate(); err != nil {
		return o, c, err
	}
	c, err = s.write(ctx, call, func(w *work) error {
		if w.m == nil {
			return fmt.Errorf("override %s: the fleet has no map yet: %w", set.Key, cellway.ErrNotReady)
		}
		old, err := getOverride(w.tx, set.Key)
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		if err := w.mayOwn(set.Key, set.Cell); err != nil {
			return fmt.Errorf("%s %s: %w", set.Kind, set.Key, err)
		}
		o = Override{Revision: at, Entry: set, CreatedAt: w.now}
		if old.Revision > 0 {
			o.CreatedAt = old.CreatedAt
		}
		if err := putOverride(w.tx, &o); err != nil {
			return err
		}
		w.cs.Entries = append(w.cs.Entries, set)
		w.record("override.set", "override/"+string(set.Key), present(old, old.Revision), o)
		return nil
	})
	o.Epoch = epochOf(s.Accepted(), set.Key)
	return o, c, err
}

// mayOwn decides whether cell may own key from now on. Only a move takes a
// tenant with data elsewhere.
func (w *work) mayOwn(key cellway.Key, cell cellway.CellID) error {
	if cell == "" {
		return nil // refused in the router: its data stays where it is
	}
	fleet, err := getFleet(w.tx)
	if err != nil {
		return err
	}
	if fleet.Stateless {
		return nil
	}
	now := w.m.Lookup(key)
	t, err := getTenant(w.tx, now.Key.Tenant())
	switch {
	case err == nil && !t.Deleted:
		if cell != t.Cell && (now.Cell == nil || cell != now.Cell.ID) {
			return fmt.Errorf("the data of tenant %s is in cell %s, not in %s: %w", t.ID, t.Cell, cell, cellway.ErrNeedsMove)
		}
	case err != nil && !errors.Is(err, cellway.ErrNotFound):
		return err
	case now.Cell != nil && now.Cell.ID != cell && !fleet.Strict:
		// Nobody registered it, but it may be in use all the same.
		w.ask = append(w.ask, routemap.Cause{Name: "unregistered_key_moved", Count: 1})
	}
	return nil
}

// RemoveOverride removes the override of a key, which then goes where it would
// without: a registered tenant to its home.
func (s *Service) RemoveOverride(ctx context.Context, call Call, key cellway.Key, at cellway.Revision) (o Override, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		if o, err = getOverride(w.tx, key); err != nil {
			return err
		}
		fleet, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		if err := w.tx.Delete(kindOverride, string(key), at); err != nil {
			return fmt.Errorf("override %s: %w", key, err)
		}
		w.record("override.remove", "override/"+string(key), o, nil)
		t, err := getTenant(w.tx, key.Tenant())
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		registered := err == nil && !t.Deleted
		if registered && !key.IsComposite() {
			w.putHome(fleet, t)
			return nil
		}
		to := w.without(fleet, key)
		if to == "" {
			// Nothing would own it: requests are told that it is unknown.
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
			return nil
		}
		if err := w.mayOwn(key, to); err != nil {
			return fmt.Errorf("without its %s, key %s would go to cell %s: %w", o.Kind, key, to, err)
		}
		w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
		return nil
	})
	return o, c, err
}

// without returns the cell that owns key when its own entry is gone.
func (w *work) without(fleet Fleet, key cellway.Key) cellway.CellID {
	if key.IsComposite() {
		if r := w.m.Lookup(cellway.Key(key.Tenant())); r.Cell != nil {
			return r.Cell.ID
		}
		return ""
	}
	if fleet.Mapping == routemap.Buckets && !fleet.Strict {
		return w.m.Bucket(routemap.BucketOf(key.Tenant(), fleet.Buckets)).Cell
	}
	return fleet.CatchAll
}
