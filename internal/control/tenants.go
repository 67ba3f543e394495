package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Tenants lists the live tenants by id, of one cell or of one tier if those
// are not empty.
func (s *Service) Tenants(ctx context.Context, cell cellway.CellID, tier, after string, limit int) (p Page[Tenant], err error) {
	index := "live"
	switch {
	case cell != "":
		index = "cell=" + string(cell)
	case tier != "":
		index = "tier=" + tier
	}
	set := func(t *Tenant, r cellway.Revision) { t.Revision = r }
	err = s.view(ctx, func(tx store.Tx) error {
		// The index holds one term; the other is looked at here.
		for {
			got, err := page(tx, kindTenant, index, after, limit, set)
			if err != nil {
				return err
			}
			got.Items = slices.DeleteFunc(got.Items, func(t Tenant) bool {
				return t.Deleted || tier != "" && t.Tier != tier
			})
			p.Items, p.Next, after = append(p.Items, got.Items...), got.Next, got.Next
			if len(p.Items) > 0 || p.Next == "" {
				return nil
			}
		}
	})
	return p, err
}

// Tenant returns one tenant, a deleted one too.
func (s *Service) Tenant(ctx context.Context, id cellway.TenantID) (t Tenant, err error) {
	err = s.view(ctx, func(tx store.Tx) error { t, err = getTenant(tx, id); return err })
	return t, err
}

// PutTenant registers and places a tenant (at revision 0) or changes one. The
// cell that it is placed in has its room reserved in the same transaction. A
// creation with the Request of an earlier one returns what that one made, and
// its change, which may be waited for.
func (s *Service) PutTenant(ctx context.Context, call Call, set Tenant, at cellway.Revision) (t Tenant, c Change, err error) {
	if err := set.validate(); err != nil {
		return t, c, err
	}
	var repeated bool
	defer func() {
		if err == nil && repeated && !call.DryRun {
			c.Seq = t.Placed
		}
	}()
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getTenant(w.tx, set.ID)
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		switch {
		case old.Revision == 0 && at == 0:
			if done, err := w.asked(set); done.Revision > 0 || err != nil {
				t, repeated = done, true
				return err
			}
			t, err = w.place(set)
			return err
		case old.Deleted:
			return fmt.Errorf("tenant %s was deleted, and its name is not used again: %w", set.ID, cellway.ErrExists)
		case at == 0 && set.Request != "" && set.Request == old.Request:
			t, repeated = old, true
			return nil
		case at == 0:
			return fmt.Errorf("tenant %s: %w", set.ID, cellway.ErrExists)
		}
		t, err = w.changeTenant(old, set, at)
		return err
	})
	return t, c, err
}

// asked finds the tenant that a request with the same key created before.
func (w *work) asked(set Tenant) (Tenant, error) {
	if set.Request == "" {
		return Tenant{}, nil
	}
	p, err := page(w.tx, kindTenant, "request="+set.Request, "", 1, func(t *Tenant, r cellway.Revision) { t.Revision = r })
	if err != nil || len(p.Items) == 0 {
		return Tenant{}, err
	}
	if p.Items[0].ID != set.ID {
		return Tenant{}, fmt.Errorf("idempotency key %q created tenant %s, not %s: %w", set.Request, p.Items[0].ID, set.ID, cellway.ErrExists)
	}
	return p.Items[0], nil
}

func (t Tenant) validate() error {
	if err := t.ID.Validate(); err != nil {
		return err
	}
	for k, v := range t.Weights {
		if k == "" || !(v >= 0) || v > 1e15 {
			return fmt.Errorf("tenant %s: weight %q is %v; give a number from 0 up: %w", t.ID, k, v, cellway.ErrInvalid)
		}
	}
	if !slices.Contains(PlacementPolicies, t.Policy) {
		return fmt.Errorf("tenant %s: policy %q is not one of %s: %w", t.ID, t.Policy, strings.Join(PlacementPolicies, ", "), cellway.ErrInvalid)
	}
	return nil
}

// weights are what a tenant takes of a cell: itself counts as one.
func (t Tenant) weights() Vector {
	w := maps.Clone(t.Weights)
	if w == nil {
		w = Vector{}
	}
	if _, ok := w["tenants"]; !ok {
		w["tenants"] = 1
	}
	return w
}

// place registers a new tenant.
func (w *work) place(t Tenant) (Tenant, error) {
	fleet, err := getFleet(w.tx)
	if err != nil {
		return t, err
	}
	if w.m == nil {
		return t, fmt.Errorf("tenant %s: the fleet has no map yet; activate cells, then assign its buckets: %w", t.ID, cellway.ErrNotReady)
	}
	reuse := false
	if alias, err := getAlias(w.tx, t.ID); err == nil {
		if !alias.Retired {
			return t, fmt.Errorf("tenant %s: an alias of %s has that name; delete the alias first: %w", t.ID, alias.Target, cellway.ErrExists)
		}
		reuse = true
	} else if !errors.Is(err, cellway.ErrNotFound) {
		return t, err
	}
	t.Revision, t.CreatedAt, t.Deleted = 0, w.now, false
	override, err := getOverride(w.tx, cellway.Key(t.ID))
	if err != nil && !errors.Is(err, cellway.ErrNotFound) {
		return t, err
	}
	// Somebody who set an override before the tenant came has chosen its cell.
	if t.Cell, err = w.choose(fleet, t, override.Cell); err != nil {
		return t, err
	}
	if err := reserve(w.tx, t, 1); err != nil {
		return t, err
	}
	if reuse {
		w.cs.RemoveTombstones = append(w.cs.RemoveTombstones, cellway.Key(t.ID))
	}
	if override.Revision == 0 {
		w.putHome(fleet, t)
	}
	t.Placed = 0
	if !w.cs.IsEmpty() {
		t.Placed = w.head.Seq + 1
	}
	if err := putTenant(w.tx, &t); err != nil {
		return t, err
	}
	w.record("tenant.place", "tenant/"+string(t.ID), nil, t)
	return t, nil
}

// putHome makes the map send a tenant without an override to its home: by its
// bucket where that is enough, by a placed entry otherwise.
func (w *work) putHome(fleet Fleet, t Tenant) {
	key := cellway.Key(t.ID)
	if !needsEntry(fleet, w.m, t) {
		if _, ok := w.m.Entry(key); ok {
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
		}
		return
	}
	w.cs.Entries = append(w.cs.Entries, cellway.Entry{Key: key, Kind: cellway.Placed, Cell: t.Cell})
}

// needsEntry reports whether a bucket alone would not send t home.
func needsEntry(fleet Fleet, m *routemap.Map, t Tenant) bool {
	return fleet.Mapping != routemap.Buckets || fleet.Strict || m.Bucket(routemap.BucketOf(t.ID, fleet.Buckets)).Cell != t.Cell
}

// changeTenant changes what placement knows of a tenant. It stays where it is.
func (w *work) changeTenant(old, set Tenant, at cellway.Revision) (Tenant, error) {
	t := old
	t.Revision, t.Tier, t.Weights, t.Residency, t.Dedicated, t.Policy = at, set.Tier, set.Weights, set.Residency, set.Dedicated, set.Policy
	if err := w.mayStay(t, old); err != nil {
		return t, err
	}
	if err := reserve(w.tx, old, -1); err != nil {
		return t, err
	}
	if err := reserve(w.tx, t, 1); err != nil {
		return t, err
	}
	if err := putTenant(w.tx, &t); err != nil {
		return t, err
	}
	w.record("tenant.set", "tenant/"+string(t.ID), old, t)
	return t, nil
}

// DeleteTenant removes a tenant with its overrides and leaves a tombstone, so
// that requests are told it is gone and the name is not taken again. It takes
// the cell's room back; the data in the cell is not touched.
func (s *Service) DeleteTenant(ctx context.Context, call Call, id cellway.TenantID, at cellway.Revision) (t Tenant, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getTenant(w.tx, id)
		if err != nil {
			return err
		}
		if old.Deleted {
			return fmt.Errorf("tenant %s is deleted already: %w", id, cellway.ErrNotFound)
		}
		if err := w.dropOverrides(id); err != nil {
			return err
		}
		if _, ok := w.m.Entry(cellway.Key(id)); ok {
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, cellway.Key(id))
		}
		w.cs.Tombstones = append(w.cs.Tombstones, cellway.Tombstone{Key: cellway.Key(id)})
		if err := reserve(w.tx, old, -1); err != nil {
			return err
		}
		t = old
		t.Revision, t.Deleted = at, true
		if err := putTenant(w.tx, &t); err != nil {
			return err
		}
		w.record("tenant.delete", "tenant/"+string(id), old, t)
		return nil
	})
	return t, c, err
}

// dropOverrides removes the overrides of a tenant's parts and of itself. The
// entry of the tenant itself is left to the caller.
func (w *work) dropOverrides(id cellway.TenantID) error {
	recs, err := w.tx.ListIndex(kindOverride, "tenant="+string(id), "", 10000)
	if err != nil {
		return err
	}
	for _, r := range recs {
		if err := w.tx.Delete(kindOverride, r.ID, r.Revision); err != nil {
			return err
		}
		if key := cellway.Key(r.ID); key.IsComposite() {
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
			w.cs.Tombstones = append(w.cs.Tombstones, cellway.Tombstone{Key: key})
		}
		w.record("override.remove", "override/"+r.ID, r.Body, nil)
	}
	return nil
}
