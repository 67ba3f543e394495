package control

import (
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A dataPlace is where the data of a key is, as far as the control plane knows:
// where requests for it went last. That need not be where the map sends it: a
// quarantine without a cell sends it nowhere.
type dataPlace struct {
	cell       cellway.CellID // "" if it never had an owner
	registered bool           // its tenant is registered, as
	tenant     Tenant
}

// dataOf returns where the data of a key is. It refuses the names that can have
// none: of deleted tenants, and of aliases.
func (w *work) dataOf(fleet Fleet, key cellway.Key) (d dataPlace, err error) {
	id := key.Tenant()
	switch d.tenant, err = getTenant(w.tx, id); {
	case err == nil && d.tenant.Deleted:
		return d, fmt.Errorf("key %s: tenant %s was deleted: %w", key, id, cellway.ErrExists)
	case err == nil:
		d.registered = true
	case !errors.Is(err, cellway.ErrNotFound):
		return d, err
	}
	if !d.registered {
		if a, err := getAlias(w.tx, id); err == nil && !a.Retired {
			return d, fmt.Errorf("key %s: %s is an alias; use its target %s: %w", key, id, a.Target, cellway.ErrInvalid)
		} else if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return d, err
		}
	}
	d.cell, err = w.dataCell(fleet, d, key)
	return d, err
}

func (w *work) dataCell(fleet Fleet, d dataPlace, key cellway.Key) (cellway.CellID, error) {
	if d.registered && !key.IsComposite() {
		return d.tenant.Cell, nil
	}
	o, err := getOverride(w.tx, key)
	switch {
	case err == nil:
		return o.Data, nil
	case !errors.Is(err, cellway.ErrNotFound):
		return "", err
	case key.IsComposite():
		return w.dataCell(fleet, d, cellway.Key(key.Tenant()))
	}
	return w.fallback(fleet, key.Tenant()), nil
}

// fallback returns the cell of a tenant that has no entry, "" if it has none.
func (w *work) fallback(fleet Fleet, id cellway.TenantID) cellway.CellID {
	switch {
	case fleet.Strict:
		return ""
	case fleet.Mapping == routemap.Buckets:
		return w.m.Bucket(routemap.BucketOf(id, fleet.Buckets)).Cell
	}
	return fleet.CatchAll
}

// without returns the cell that key goes to when its own override is gone, or
// will go to once its tenant's is.
func (w *work) without(fleet Fleet, key cellway.Key) (cellway.CellID, error) {
	if !key.IsComposite() {
		return w.fallback(fleet, key.Tenant()), nil
	}
	tenant := cellway.Key(key.Tenant())
	d, err := w.dataOf(fleet, tenant)
	if err != nil {
		return "", err
	}
	// Where the tenant itself is sent elsewhere, as may be without data, its parts
	// go there too.
	if e, ok := w.m.Entry(tenant); ok && e.Cell != "" {
		return e.Cell, nil
	}
	return d.cell, nil
}

// mayOwn decides whether cell may own key from now on, whose data is at d. Only
// a move takes a tenant with data elsewhere.
func (w *work) mayOwn(fleet Fleet, d dataPlace, key cellway.Key, cell cellway.CellID) error {
	if cell == "" {
		return nil // refused in the router: its data stays where it is
	}
	switch {
	case !fleet.Stateless && d.cell != "" && d.cell != cell && d.registered:
		return fmt.Errorf("the data of key %s is in cell %s, not in %s, and moves between cells are not built yet: %w", key, d.cell, cell, cellway.ErrNeedsMove)
	case !fleet.Stateless && d.cell != "" && d.cell != cell:
		// Nobody registered it, but it may be in use all the same.
		w.ask = append(w.ask, routemap.Cause{Name: "unregistered_key_moved", Count: 1})
	}
	if d.registered && d.tenant.Residency != "" {
		r, err := w.find(cell)
		if err != nil {
			return err
		}
		if r.cell.Region != d.tenant.Residency {
			return fmt.Errorf("tenant %s must stay in region %q, and cell %s is in %q: %w", d.tenant.ID, d.tenant.Residency, cell, r.cell.Region, cellway.ErrInvalid)
		}
	}
	return nil
}
