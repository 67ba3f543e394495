package workers

import (
	"context"
	"iter"
	"slices"

	"github.com/cellway/cellway/shuffle"
)

// An Effect is what a change of a list does to the hands of tenants. A drained worker
// of a design, which keeps its seat, counts as gone from a hand, unless all of the hand
// are drained: gateways pass it over.
type Effect struct {
	Tenants int // that were looked at
	Losing  int // of these: from whose hand a worker goes
	Gaining int // of these: into whose hand a worker comes
	Most    int // workers that go from one hand
}

// Compare deals each of the tenants a hand before and after a change. A nil before
// has no hands: everybody gains. So does a dealer that has none for a tenant;
// those of a [List] never fail.
func Compare(before, after shuffle.Dealer, tenants iter.Seq[string]) (e Effect) {
	ctx := context.Background()
	var was, is []shuffle.Worker
	same := before != nil && before.Version() == after.Version()
	for tenant := range tenants {
		if e.Tenants++; same {
			continue
		}
		if was = was[:0]; before != nil {
			was, _ = before.DealHand(ctx, was, tenant)
		}
		is, _ = after.DealHand(ctx, is[:0], tenant)
		was, is = asked(was), asked(is)
		gone, come := missing(was, is), missing(is, was)
		if gone > 0 {
			e.Losing++
		}
		if come > 0 {
			e.Gaining++
		}
		e.Most = max(e.Most, gone)
	}
	return e
}

// asked leaves those of a hand that get requests.
func asked(hand []shuffle.Worker) []shuffle.Worker {
	drained := func(w shuffle.Worker) bool { return w.Weight == 0 }
	if !slices.ContainsFunc(hand, func(w shuffle.Worker) bool { return !drained(w) }) {
		return hand
	}
	return slices.DeleteFunc(hand, drained)
}

// missing counts the workers of a that b lacks.
func missing(a, b []shuffle.Worker) (n int) {
	for _, w := range a {
		if !slices.ContainsFunc(b, func(o shuffle.Worker) bool { return o.ID == w.ID }) {
			n++
		}
	}
	return n
}
