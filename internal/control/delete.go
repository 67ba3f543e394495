package control

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
)

// DeleteTenant removes a tenant with its overrides and leaves a tombstone, so
// that requests are told it is gone and the name is not taken again. It takes
// the cell's room back; the data in the cell is not touched, and
// [Service.UndeleteTenant] brings the tenant back to it.
func (s *Service) DeleteTenant(ctx context.Context, call Call, id cellway.TenantID, at cellway.Revision) (t Tenant, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getTenant(w.tx, id)
		if err != nil {
			return err
		}
		if old.Deleted {
			return fmt.Errorf("tenant %s is deleted already: %w", id, cellway.ErrNotFound)
		}
		fleet, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		if err := w.dropOverrides(id); err != nil {
			return err
		}
		key := cellway.Key(id)
		if _, ok := w.m.Entry(key); ok {
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, key)
		}
		w.cs.Tombstones = append(w.cs.Tombstones, cellway.Tombstone{Key: key})
		if err := w.reserve(old, -1); err != nil {
			return err
		}
		t = old
		t.Revision, t.Deleted = at, true
		if err := w.putTenant(fleet, &t); err != nil {
			return err
		}
		w.record("tenant.delete", "tenant/"+string(id), old, t)
		return nil
	})
	return t, c, err
}

// dropOverrides removes the overrides of a tenant and of its parts, and the
// entries of the parts. The entry of the tenant itself is left to the caller,
// who puts a tombstone in its place, which answers for the parts too.
func (w *work) dropOverrides(id cellway.TenantID) error {
	return each(w.tx, kindOverride, "tenant="+string(id), setOverrideRevision, func(o Override) error {
		if err := w.tx.Delete(kindOverride, string(o.Key), o.Revision); err != nil {
			return err
		}
		if o.Key.IsComposite() {
			w.cs.RemoveEntries = append(w.cs.RemoveEntries, o.Key)
		}
		w.record("override.remove", "override/"+string(o.Key), o, nil)
		return nil
	})
}

// UndeleteTenant brings a tenant that was deleted by mistake back to the cell
// that has its data. Its overrides don't come back. The cell must be there
// still; whether the tenant's room has been given away does not matter.
func (s *Service) UndeleteTenant(ctx context.Context, call Call, id cellway.TenantID, at cellway.Revision) (t Tenant, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getTenant(w.tx, id)
		if err != nil {
			return err
		}
		if !old.Deleted {
			return fmt.Errorf("tenant %s is not deleted: %w", id, cellway.ErrExists)
		}
		fleet, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		home, err := getCell(w.tx, old.Cell)
		if err != nil {
			return err
		}
		if home.State != cellway.CellActive {
			return fmt.Errorf("tenant %s was in cell %s, which is %s: its data is gone: %w", id, home.ID, home.State, cellway.ErrNotFound)
		}
		t = old
		t.Revision, t.Deleted = at, false
		if err := w.reserve(t, 1); err != nil {
			return err
		}
		if err := w.putTenant(fleet, &t); err != nil {
			return err
		}
		w.cs.RemoveTombstones = append(w.cs.RemoveTombstones, cellway.Key(id))
		w.putHome(fleet, t)
		w.record("tenant.undelete", "tenant/"+string(id), old, t)
		return nil
	})
	return t, c, err
}
