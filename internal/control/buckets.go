package control

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/placement"
	"github.com/cellway/cellway/routemap"
)

// A BucketPlan says what an assignment does.
type BucketPlan struct {
	Moved  int // buckets with another owner than before
	Kept   int // buckets that would move but hold registered tenants
	Before map[cellway.CellID]int
	After  map[cellway.CellID]int
}

// AssignBuckets deals the buckets to the active cells. The first time that
// makes the fleet's first map. Later a bucket through which registered tenants
// find their data stays where it is until they have moved, unless the fleet is
// stateless, and a fleet that is neither strict nor stateless asks for a
// confirmation that no unregistered key lives in the buckets that move. Cells
// that are cordoned or drained lose the buckets that may move.
func (s *Service) AssignBuckets(ctx context.Context, call Call) (p BucketPlan, c Change, err error) {
	var d bucketDeal
	c, err = s.prepared(ctx, call, func(tx store.Tx, m *routemap.Map) error {
		return d.read(tx, m)
	}, func(w *work) error {
		p = d.plan
		if w.m == nil {
			w.built = &routemap.Content{Settings: d.fleet.Settings, Cells: d.cells}
			for b, id := range d.owners {
				w.built.Owners = append(w.built.Owners, cellway.BucketOwner{Bucket: uint32(b), Cell: id})
			}
		}
		for _, b := range d.moved {
			w.cs.Owners = append(w.cs.Owners, cellway.BucketOwner{Bucket: b, Cell: d.owners[b]})
		}
		if p.Moved > 0 && !d.fleet.Strict && !d.fleet.Stateless {
			w.ask = append(w.ask, routemap.Cause{Name: "unregistered_keys_moved", Count: uint32(p.Moved)})
		}
		if d.fleet.Stateless && !d.fleet.Strict {
			if err := w.takeAlong(d); err != nil {
				return err
			}
		}
		if w.m == nil || p.Moved > 0 {
			w.record("buckets.assign", "buckets", p.Before, p.After)
		}
		return nil
	})
	return p, c, err
}

// noTaker says that no cell can take buckets, and what mends it.
func noTaker(cells []cellway.Cell) error {
	why, mend := "there is none", "cellway cell add CELL --endpoint URL --state active"
	for _, c := range cells {
		switch {
		case c.State == cellway.CellCordoned && c.Admit < 100:
			why, mend = "none is active and undrained", fmt.Sprintf("cellway undrain %s --to 100", c.ID)
		case c.State == cellway.CellNew, c.State == cellway.CellCordoned:
			return fmt.Errorf("no cell can take buckets: none is active; first cellway cell activate %s: %w", c.ID, cellway.ErrNoRoom)
		}
	}
	return fmt.Errorf("no cell can take buckets: %s; first %s: %w", why, mend, cellway.ErrNoRoom)
}

// A bucketDeal is an assignment of buckets, worked out.
type bucketDeal struct {
	fleet  Fleet
	cells  []cellway.Cell
	owners []cellway.CellID // of each bucket
	moved  []uint32         // that had another owner
	plan   BucketPlan
}

func (d *bucketDeal) read(tx store.Tx, m *routemap.Map) (err error) {
	*d = bucketDeal{}
	if d.fleet, err = getFleet(tx); err != nil {
		return err
	}
	if d.fleet.Mapping != routemap.Buckets {
		return fmt.Errorf("fleet %s has a %s mapping and no buckets: %w", d.fleet.Fleet, d.fleet.Mapping, cellway.ErrInvalid)
	}
	if d.cells, err = mapCells(tx); err != nil {
		return err
	}
	var takers []placement.WeightedCell
	for _, c := range d.cells {
		if c.State == cellway.CellActive {
			takers = append(takers, placement.WeightedCell{ID: c.ID, Weight: 1})
		}
	}
	if len(takers) == 0 {
		return noTaker(d.cells)
	}
	var now []cellway.CellID
	if m != nil {
		for b := range d.fleet.Buckets {
			now = append(now, m.Bucket(b).Cell)
		}
	}
	held, err := heldBuckets(tx, d.fleet, now)
	if err != nil {
		return err
	}
	if d.owners, err = placement.AssignBuckets(d.fleet.Buckets, takers, now, func(b uint32) bool { return held[b] }); err != nil {
		return err
	}
	d.plan = BucketPlan{Before: bucketCounts(m), After: map[cellway.CellID]int{}}
	for b, id := range d.owners {
		d.plan.After[id]++
		if m != nil && now[b] != id {
			d.moved = append(d.moved, uint32(b))
		}
	}
	d.plan.Moved = len(d.moved)
	if len(held) == 0 {
		return nil
	}
	free, err := placement.AssignBuckets(d.fleet.Buckets, takers, now, nil)
	if err != nil {
		return err
	}
	for b := range held {
		if free[b] != now[b] {
			d.plan.Kept++
		}
	}
	return nil
}

// heldBuckets marks the buckets through which a registered tenant finds its
// data. A stateless fleet has none, a strict one finds tenants by entries. It
// looks at one tenant of most buckets, not at all tenants.
func heldBuckets(tx store.Tx, fleet Fleet, owners []cellway.CellID) (map[uint32]bool, error) {
	held := map[uint32]bool{}
	if fleet.Stateless || fleet.Strict {
		return held, nil
	}
	for b, owner := range owners {
		for after, limit := "", 1; !held[uint32(b)]; limit = 100 {
			p, err := page(tx, kindTenant, bucketTerm(uint32(b)), after, limit, setTenantRevision)
			if err != nil {
				return nil, err
			}
			for _, t := range p.Items {
				if t.Cell == owner {
					held[uint32(b)] = true
				}
			}
			if after = p.Next; after == "" {
				break
			}
		}
	}
	return held, nil
}

// takeAlong makes the new owners of buckets the homes of the tenants that are
// found by them: without data there is nothing to move.
func (w *work) takeAlong(d bucketDeal) error {
	for _, b := range d.moved {
		was := w.m.Bucket(b).Cell
		if err := each(w.tx, kindTenant, bucketTerm(b), setTenantRevision, func(t Tenant) error {
			if e, ok := w.m.Entry(cellway.Key(t.ID)); t.Cell != was || ok && !e.Kind.IsOverride() {
				return nil
			}
			return w.rehome(d.fleet, t, d.owners[b])
		}); err != nil {
			return err
		}
	}
	return nil
}

// rehome makes cell the home of a tenant without data.
func (w *work) rehome(fleet Fleet, t Tenant, cell cellway.CellID) error {
	if err := w.reserve(t, -1); err != nil {
		return err
	}
	t.Cell = cell
	if err := w.reserve(t, 1); err != nil {
		return err
	}
	return w.putTenant(fleet, &t)
}
