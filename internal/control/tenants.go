package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

func setTenantRevision(t *Tenant, r cellway.Revision) { t.Revision = r }

// Tenants lists the live tenants by id, of one cell and of one tier if those
// are not empty.
func (s *Service) Tenants(ctx context.Context, cell cellway.CellID, tier, after string, limit int) (p Page[Tenant], err error) {
	index := "live"
	switch {
	case cell != "" && tier != "":
		index = cellTier(cell, tier)
	case cell != "":
		index = "cell=" + string(cell)
	case tier != "":
		index = "tier=" + tier
	}
	err = s.view(ctx, func(tx store.Tx) error {
		p, err = page(tx, kindTenant, index, after, limit, setTenantRevision)
		return err
	})
	return p, err
}

func cellTier(cell cellway.CellID, tier string) string {
	return "cell=" + string(cell) + " tier=" + tier
}

func bucketTerm(b uint32) string { return "bucket=" + strconv.FormatUint(uint64(b), 10) }

// putTenant writes a tenant's record, and its new revision into t.
func (w *work) putTenant(fleet Fleet, t *Tenant) (err error) {
	index := []string{"deleted"}
	if !t.Deleted {
		index = []string{"live", "cell=" + string(t.Cell)}
		if t.Tier != "" {
			index = append(index, "tier="+t.Tier, cellTier(t.Cell, t.Tier))
		}
		if fleet.Mapping == routemap.Buckets {
			index = append(index, bucketTerm(routemap.BucketOf(t.ID, fleet.Buckets)))
		}
	}
	if t.Request != "" {
		index = append(index, "request="+t.Request)
	}
	t.Revision, err = put(w.tx, kindTenant, string(t.ID), t.Revision, t, index...)
	return err
}

// Tenant returns one tenant, a deleted one too.
func (s *Service) Tenant(ctx context.Context, id cellway.TenantID) (t Tenant, err error) {
	err = s.view(ctx, func(tx store.Tx) error { t, err = getTenant(tx, id); return err })
	return t, err
}

// PutTenant registers and places a tenant (at revision 0) or changes one. The
// cell that it is placed in has its room reserved in the same transaction. A
// creation with the Request of an earlier one returns what that one made, and
// its change, which may be waited for; if it asks for something else it is an
// [cellway.ErrExists].
func (s *Service) PutTenant(ctx context.Context, call Call, set Tenant, at cellway.Revision) (t Tenant, c Change, err error) {
	if err := set.validate(); err != nil {
		return t, c, err
	}
	set.Weights = set.Weights.unsigned()
	repeated := false
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getTenant(w.tx, set.ID)
		missing := errors.Is(err, cellway.ErrNotFound)
		switch {
		case err != nil && !missing:
			return err
		case missing && at > 0:
			return fmt.Errorf("tenant %s: it was never registered: %w", set.ID, cellway.ErrNotFound)
		case missing:
			if err := w.mayAsk(set); err != nil {
				return err
			}
			t, err = w.place(set)
			return err
		case old.Deleted:
			return fmt.Errorf("tenant %s was deleted, and its name is not used again: %w", set.ID, cellway.ErrExists)
		case at > 0:
			t, err = w.changeTenant(old, set, at)
			return err
		case set.Request == "" || set.Request != old.Request:
			return fmt.Errorf("tenant %s: %w", set.ID, cellway.ErrExists)
		case old.Asked != "" && old.Asked != set.asks():
			return fmt.Errorf("tenant %s: idempotency key %q came with other settings before: %w", set.ID, set.Request, cellway.ErrExists)
		}
		t, repeated = old, true
		return nil
	})
	if err == nil && repeated && !call.DryRun {
		c.Seq = t.Placed
	}
	return t, c, err
}

// mayAsk refuses a creation whose key has created another tenant.
func (w *work) mayAsk(set Tenant) error {
	if set.Request == "" {
		return nil
	}
	p, err := page(w.tx, kindTenant, "request="+set.Request, "", 1, setTenantRevision)
	if err != nil || len(p.Items) == 0 {
		return err
	}
	return fmt.Errorf("idempotency key %q created tenant %s, not %s: %w", set.Request, p.Items[0].ID, set.ID, cellway.ErrExists)
}

// asks is a digest of what a creation asks for.
func (t Tenant) asks() string {
	body, err := json.Marshal(Tenant{ID: t.ID, Tier: t.Tier, Weights: t.Weights, Residency: t.Residency, Dedicated: t.Dedicated, Policy: t.Policy})
	if err != nil {
		return "" // it was validated: every number is one
	}
	return routemap.Digest(sha256.Sum256(body)).String()
}

// maxRequest bounds an idempotency key in bytes.
const maxRequest = 128

func (t Tenant) validate() error {
	if err := t.ID.Validate(); err != nil {
		return err
	}
	what := "tenant " + string(t.ID)
	if err := validVector(what+": weight", t.Weights); err != nil {
		return err
	}
	for name, s := range map[string]string{"tier": t.Tier, "residency": t.Residency} {
		if s != "" {
			if err := validName(what+": "+name, s); err != nil {
				return err
			}
		}
	}
	if len(t.Request) > maxRequest || strings.ContainsFunc(t.Request, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%s: idempotency key %.40q must be at most %d printable characters without spaces: %w", what, t.Request, maxRequest, cellway.ErrInvalid)
	}
	if !slices.Contains(PlacementPolicies, t.Policy) {
		return fmt.Errorf("%s: policy %q is not one of %s: %w", what, t.Policy, strings.Join(PlacementPolicies, ", "), cellway.ErrInvalid)
	}
	return nil
}

// place registers a new tenant.
func (w *work) place(t Tenant) (Tenant, error) {
	fleet, err := getFleet(w.tx)
	if err != nil {
		return t, err
	}
	if w.m == nil {
		return t, fmt.Errorf("tenant %s: the fleet has no map yet; cellway status tells what is next: %w", t.ID, cellway.ErrNotReady)
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
	override, err := getOverride(w.tx, cellway.Key(t.ID))
	if err != nil && !errors.Is(err, cellway.ErrNotFound) {
		return t, err
	}
	t.Revision, t.CreatedAt, t.Deleted, t.Asked = 0, w.now, false, ""
	if t.Request != "" {
		t.Asked = t.asks()
	}
	// Somebody who set an override before the tenant came has chosen its cell.
	if t.Cell, err = w.choose(fleet, t, override.Cell); err != nil {
		return t, err
	}
	if err := w.reserve(t, 1); err != nil {
		return t, err
	}
	if reuse {
		w.cs.RemoveTombstones = append(w.cs.RemoveTombstones, cellway.Key(t.ID))
	}
	switch {
	case override.Revision == 0:
		w.putHome(fleet, t)
	case override.Data != t.Cell:
		override.Data = t.Cell
		if err := putOverride(w.tx, &override); err != nil {
			return t, err
		}
	}
	if t.Placed = 0; !w.cs.IsEmpty() {
		t.Placed = w.at.seq + 1
	}
	if err := w.putTenant(fleet, &t); err != nil {
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
	fleet, err := getFleet(w.tx)
	if err != nil {
		return old, err
	}
	t := old
	t.Revision, t.Tier, t.Weights, t.Residency, t.Dedicated, t.Policy = at, set.Tier, set.Weights, set.Residency, set.Dedicated, set.Policy
	if at == old.Revision && alike(old, t) {
		w.change.Unchanged = true
		return old, nil
	}
	if err := w.mayStay(t, old); err != nil {
		return t, err
	}
	if err := w.reserve(old, -1); err != nil {
		return t, err
	}
	if err := w.reserve(t, 1); err != nil {
		return t, err
	}
	if err := w.putTenant(fleet, &t); err != nil {
		return t, err
	}
	w.record("tenant.set", "tenant/"+string(t.ID), old, t)
	return t, nil
}
