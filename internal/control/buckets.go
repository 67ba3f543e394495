package control

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
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
// makes the fleet's first map. Later a bucket that holds registered tenants
// stays where it is until they have moved, unless the fleet is stateless, and a
// fleet that is neither strict nor stateless asks for a confirmation that no
// unregistered key lives in the buckets that move.
func (s *Service) AssignBuckets(ctx context.Context, call Call) (p BucketPlan, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		fleet, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		if fleet.Mapping != routemap.Buckets {
			return fmt.Errorf("fleet %s has a %s mapping and no buckets: %w", fleet.Fleet, fleet.Mapping, cellway.ErrInvalid)
		}
		cells, err := mapCells(w.tx)
		if err != nil {
			return err
		}
		var takers []placement.WeightedCell
		for _, c := range cells {
			if c.State == cellway.CellActive {
				takers = append(takers, placement.WeightedCell{ID: c.ID, Weight: 1})
			}
		}
		var owners []cellway.CellID
		if w.m != nil {
			for b := range fleet.Buckets {
				owners = append(owners, w.m.Bucket(b).Cell)
			}
		}
		held, err := w.heldBuckets(fleet)
		if err != nil {
			return err
		}
		want, err := placement.AssignBuckets(fleet.Buckets, takers, owners, func(b uint32) bool { return held[b] })
		if err != nil {
			return err
		}
		free, err := placement.AssignBuckets(fleet.Buckets, takers, owners, nil)
		if err != nil {
			return err
		}
		p = BucketPlan{Before: bucketCounts(w.m), After: map[cellway.CellID]int{}}
		first := make([]cellway.BucketOwner, 0, fleet.Buckets)
		for b := range fleet.Buckets {
			p.After[want[b]]++
			if held[b] && free[b] != owners[b] {
				p.Kept++
			}
			owner := cellway.BucketOwner{Bucket: b, Cell: want[b]}
			first = append(first, owner)
			if w.m != nil && owners[b] != want[b] {
				p.Moved++
				w.cs.Owners = append(w.cs.Owners, owner)
			}
		}
		if w.m == nil {
			w.built = &routemap.Content{Settings: fleet.Settings, Cells: cells, Owners: first}
		} else if p.Moved > 0 && !fleet.Strict && !fleet.Stateless {
			w.ask = append(w.ask, routemap.Cause{Name: "unregistered_keys_moved", Count: uint32(p.Moved)})
		}
		if w.m == nil || p.Moved > 0 {
			w.record("buckets.assign", "buckets", p.Before, p.After)
		}
		return nil
	})
	return p, c, err
}

// heldBuckets marks the buckets through which a registered tenant finds its
// data. A stateless fleet has none.
func (w *work) heldBuckets(fleet Fleet) (map[uint32]bool, error) {
	held := map[uint32]bool{}
	if fleet.Stateless || w.m == nil {
		return held, nil
	}
	err := each(w.tx, kindTenant, "live", func(*Tenant, cellway.Revision) {}, func(t Tenant) error {
		if b := routemap.BucketOf(t.ID, fleet.Buckets); w.m.Bucket(b).Cell == t.Cell && !fleet.Strict {
			held[b] = true
		}
		return nil
	})
	return held, err
}
