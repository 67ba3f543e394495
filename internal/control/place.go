package control

import (
	"fmt"

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
	var cells []placement.Candidate
	err := each(w.tx, kindCell, "", func(c *Cell, r cellway.Revision) { c.Revision = r }, func(c Cell) error {
		candidate, err := w.candidate(c)
		cells = append(cells, candidate)
		return err
	})
	if err != nil {
		return "", err
	}
	r := t.request()
	r.Only = only
	if fleet.Mapping == routemap.Buckets {
		r.Default = w.m.Bucket(routemap.BucketOf(t.ID, fleet.Buckets)).Cell
	}
	return placement.Choose(cells, r)
}

// mayStay refuses a change after which a tenant no longer fits its cell: it
// would need a move first.
func (w *work) mayStay(t, old Tenant) error {
	c, err := getCell(w.tx, t.Cell)
	if err != nil {
		return err
	}
	candidate, err := w.candidate(c)
	if err != nil {
		return err
	}
	candidate.Tenants--
	candidate.Taken = candidate.Taken && !old.Dedicated
	for k, v := range old.weights() {
		candidate.Used[k] -= v
	}
	if err := placement.Stay(candidate, t.request()); err != nil {
		return fmt.Errorf("%w; %w", err, cellway.ErrNeedsMove)
	}
	return nil
}

func (t Tenant) request() placement.Request {
	return placement.Request{
		Tenant: t.ID, Weights: placement.Vector(t.weights()), Tier: t.Tier, Residency: t.Residency,
		Dedicated: t.Dedicated, Policy: placement.Policy(t.Policy),
	}
}

// candidate is a cell as placement sees it.
func (w *work) candidate(c Cell) (placement.Candidate, error) {
	u, err := getUsage(w.tx, c.ID)
	if err != nil {
		return placement.Candidate{}, err
	}
	used := placement.Vector{}
	for k, v := range u.Reserved {
		used[k] = v
	}
	m := c.inMap()
	return placement.Candidate{
		ID: c.ID, State: m.State, Admit: m.Admit, Region: m.Region, Tiers: c.Tiers, Capacity: placement.Vector(c.Capacity),
		Headroom: c.Headroom, Used: used, Tenants: u.Tenants, Taken: u.Dedicated > 0,
	}, nil
}
