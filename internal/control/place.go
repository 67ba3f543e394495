package control

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/placement"
	"github.com/cellway/cellway/routemap"
)

// PlacementPolicies are the policies that a tenant may name; "" is the fleet's
// way, bucket where it has buckets.
var PlacementPolicies = []string{"", string(placement.Bucket), string(placement.LeastLoaded)}

// choose picks the cell of a new tenant. Only, if not empty, is the one cell
// that will do.
func (w *work) choose(fleet Fleet, t Tenant, only cellway.CellID) (cellway.CellID, error) {
	r := t.request()
	r.Only = only
	if fleet.Mapping == routemap.Buckets {
		r.Default = w.m.Bucket(routemap.BucketOf(t.ID, fleet.Buckets)).Cell
	}
	// The cell that is named, or the bucket's own, is taken whenever it fits: then
	// no other needs to be looked at.
	first := only
	if first == "" && r.Policy != placement.LeastLoaded {
		first = r.Default
	}
	if first != "" {
		one, err := w.find(first)
		if err != nil {
			return "", err
		}
		cell, err := placement.Choose([]placement.Candidate{one.candidate}, r)
		if only != "" || !errors.Is(err, cellway.ErrNoRoom) {
			return cell, err
		}
	}
	var all []placement.Candidate
	if err := w.eachRow(func(r *row) { all = append(all, r.candidate) }); err != nil {
		return "", err
	}
	return placement.Choose(all, r)
}

// mayStay refuses a change by which a tenant asks for what its cell can't give:
// it would need a move first.
func (w *work) mayStay(t, old Tenant) error {
	r, err := w.find(t.Cell)
	if err != nil {
		return err
	}
	without, err := r.usage.reserved(old, -1)
	if err != nil {
		return err
	}
	if err := placement.Stay(newRow(r.cell, without, 0).candidate, old.request(), t.request()); err != nil {
		return fmt.Errorf("%w; it would have to move to another cell, and moves are not built yet: %w", err, cellway.ErrNeedsMove)
	}
	return nil
}

func (t Tenant) request() placement.Request {
	return placement.Request{
		Tenant: t.ID, Weights: placement.Vector(t.weights()), Tier: t.Tier, Residency: t.Residency,
		Dedicated: t.Dedicated, Policy: placement.Policy(t.Policy),
	}
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
