package shuffle

import (
	"context"
	"fmt"
)

// A Dealer deals hands to tenants, in whichever way. Who sends requests takes
// one and need not know which: a [Snapshot] is one, [Registry.Dealer] returns
// one, and [NewSeated] makes one of a [Design].
//
// A Dealer is safe for concurrent use. Other workers are another Dealer.
type Dealer interface {
	// Version names what the hands are dealt from. Under one version a tenant
	// keeps its hand, unless somebody changes it on purpose, such as by
	// [Registry.Redeal].
	Version() string

	// DealHand appends tenant's hand to dst, in the order in which its workers are
	// to be tried, and returns the extended slice. A worker of weight 0 is in
	// the hand though it is drained or gone: pass it over. A Dealer that keeps
	// hands somewhere may take its time and fail; then dst is returned as it was.
	DealHand(ctx context.Context, dst []Worker, tenant string) ([]Worker, error)
}

var (
	_ Dealer = (*Snapshot)(nil)
	_ Dealer = (*Registered)(nil)
	_ Dealer = (*Seated)(nil)
)

// DealHand implements [Dealer]. It is [Snapshot.AppendHand], does not look at
// the context, and its error is nil.
func (s *Snapshot) DealHand(_ context.Context, dst []Worker, tenant string) ([]Worker, error) {
	return s.AppendHand(dst, tenant), nil
}

// Registered deals from a registry, as one snapshot describes the workers. Only
// [Registry.Dealer] makes useful ones.
type Registered struct {
	registry *Registry
	snapshot *Snapshot
}

// Dealer returns a dealer of r's hands. A tenant who holds none is given one of
// the workers of s. One who does keeps it, though a worker has left s since; to
// ask for a hand must not change it, or two processes with different snapshots would
// take turns in that. So redeal what is [Registry.Unfit] for s before others get to know s.
func (r *Registry) Dealer(s *Snapshot) *Registered { return &Registered{r, s} }

// Version implements [Dealer]: it names the overlap and the snapshot.
func (d *Registered) Version() string {
	return fmt.Sprintf("registry-%d-%s", d.registry.cfg.Overlap, d.snapshot.version)
}

// DealHand implements [Dealer]. A worker that the snapshot lacks has only its id.
// The errors are those of [Registry.Deal].
func (d *Registered) DealHand(ctx context.Context, dst []Worker, tenant string) ([]Worker, error) {
	h, err := d.registry.Deal(ctx, d.snapshot, tenant)
	if err != nil {
		return dst, err
	}
	for _, id := range h.Members {
		w, ok := d.snapshot.find(id)
		if !ok {
			w = Worker{ID: id}
		}
		dst = append(dst, w)
	}
	return dst, nil
}
