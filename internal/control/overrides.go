package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

func setOverrideRevision(o *Override, r cellway.Revision) { o.Revision = r }

func putOverride(tx store.Tx, o *Override) (err error) {
	index := []string{"kind=" + o.Kind.String(), "tenant=" + string(o.Key.Tenant())}
	if o.Data != "" {
		index = append(index, "data="+string(o.Data))
	}
	o.Revision, err = put(tx, kindOverride, string(o.Key), o.Revision, o, index...)
	return err
}

// Overrides lists overrides by key, of one kind unless kind is empty.
func (s *Service) Overrides(ctx context.Context, kind, after string, limit int) (p Page[Override], err error) {
	index := ""
	if kind != "" {
		index = "kind=" + kind
	}
	err = s.view(ctx, func(tx store.Tx) error {
		p, err = page(tx, kindOverride, index, after, limit, setOverrideRevision)
		return err
	})
	m := s.Accepted()
	for i := range p.Items {
		p.Items[i].Epoch = epochOf(m, p.Items[i].Key)
	}
	return p, err
}

// epochOf returns the epoch of a key's entry in a map.
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
// refused; if nobody has registered the tenant, a person must confirm that no
// data is there. A quarantine without a cell refuses the key in the router and
// is always possible.
func (s *Service) PutOverride(ctx context.Context, call Call, set cellway.Entry, at cellway.Revision) (o Override, c Change, err error) {
	set.Epoch = 0
	set.ReviewBy = set.ReviewBy.UTC().Truncate(1e9)
	if !set.Kind.IsOverride() {
		return o, c, fmt.Errorf("override %s: placed is placement's kind; give pin, heavy, quarantine or test: %w", set.Key, cellway.ErrInvalid)
	}
	if err := cmp.Or(set.Validate(), plaintext.CheckName("by", set.By), plaintext.Check("reason", set.Reason)); err != nil {
		return o, c, err
	}
	c, err = s.write(ctx, call, func(w *work) error {
		if w.m == nil {
			return fmt.Errorf("override %s: the fleet has no map yet; cellway status tells what is next: %w", set.Key, cellway.ErrNotReady)
		}
		fleet, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		old, err := getOverride(w.tx, set.Key)
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		data, err := w.dataOf(fleet, set.Key)
		if err != nil {
			return err
		}
		if err := w.mayOwn(fleet, data, set.Key, set.Cell); err != nil {
			return fmt.Errorf("%s %s: %w", set.Kind, set.Key, err)
		}
		o = Override{Revision: at, Entry: set, Data: data.cell, CreatedAt: w.now}
		if set.Cell != "" {
			o.Data = set.Cell
		}
		if data.registered && !set.Key.IsComposite() && !fleet.Stateless {
			o.Data = data.cell
		}
		if old.Revision > 0 {
			o.CreatedAt = old.CreatedAt
		}
		if err := putOverride(w.tx, &o); err != nil {
			return err
		}
		w.alone = atTheDoor(set)
		w.cs.Entries = append(w.cs.Entries, set)
		w.record("override.set", "override/"+string(set.Key), present(old, old.Revision), o)
		return nil
	})
	if err == nil {
		o.Epoch = epochOf(c.After, set.Key)
		s.overdue.look()
	}
	return o, c, err
}

// atTheDoor reports whether an override refuses its key in the router.
func atTheDoor(e cellway.Entry) bool { return e.Kind == cellway.Quarantine && e.Cell == "" }

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
		data, err := w.dataOf(fleet, key)
		if err != nil {
			return err
		}
		if err := w.tx.Delete(kindOverride, string(key), at); err != nil {
			return fmt.Errorf("override %s: %w", key, err)
		}
		w.record("override.remove", "override/"+string(key), o, nil)
		w.alone = atTheDoor(o.Entry)
		if data.registered && !key.IsComposite() {
			w.putHome(fleet, data.tenant)
			return nil
		}
		to, err := w.without(fleet, key)
		if err != nil {
			return err
		}
		if err := w.mayOwn(fleet, data, key, to); err != nil {
			return fmt.Errorf("without its %s, key %s would go to cell %s: %w", o.Kind, key, to, err)
		}
		w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
		return nil
	})
	if err == nil {
		s.overdue.look()
	}
	return o, c, err
}
