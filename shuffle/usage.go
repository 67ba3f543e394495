package shuffle

import (
	"context"
	"math/big"
)

// Usage is how full a registry is.
type Usage struct {
	// Tenants is how many hold a hand.
	Tenants int

	// Bound is a number of hands of the snapshot's usual size that can't be
	// passed: see [ZoneCapacity]. Registries fill up before they reach it.
	Bound *big.Int

	// Share is Tenants as a share of Bound. It may pass 1 if tenants have
	// smaller hands than usual, or hold workers that the snapshot lacks.
	Share float64
}

// Usage returns how full the registry is for hands of the snapshot's usual
// size. The error wraps [ErrStore].
func (r *Registry) Usage(ctx context.Context, s *Snapshot) (Usage, error) {
	n, err := r.cfg.Store.Count(ctx)
	if err != nil {
		return Usage{}, r.storeError("count", "", err)
	}
	u := Usage{Tenants: n, Bound: s.capacity(s.cfg.Size, r.cfg.Overlap)}
	if u.Bound.Sign() > 0 {
		u.Share, _ = new(big.Rat).SetFrac(big.NewInt(int64(n)), u.Bound).Float64()
	}
	return u, nil
}

// capacity bounds the number of hands of k under the overlap.
func (s *Snapshot) capacity(k, overlap int) *big.Int {
	zones := make([]int, len(s.zones))
	for i, z := range s.zones {
		zones[i] = len(z.workers)
	}
	// A hand no larger than the overlap is in nobody's way, but there are only so
	// many different ones.
	if bound, err := ZoneCapacity(zones, k, min(overlap, k-1)); err == nil {
		return bound
	}
	return new(big.Int)
}
