package shuffle

import (
	"fmt"
	"math"
)

// Outage is what the loss of workers that no tenant caused, such as machines
// that break, does to the tenants.
//
// It is the price of shuffling: with a million different hands almost any few
// workers are somebody's whole hand, with twenty fixed groups hardly any are.
// What a single tenant may expect is the same. Shuffling is for failures that
// come from a tenant; against those of machines, spread the hand over zones.
// (A. Cidon et al., "Copysets: reducing the frequency of data loss in cloud
// storage", USENIX ATC 2013.)
type Outage struct {
	Total    float64 // probability that a given tenant has lost every worker
	Degraded float64 // probability that it has lost some

	// Anyone is the probability that at least one tenant has lost every worker.
	Anyone float64
}

// OutageOf returns the outage when dead of n workers are lost at random, for a
// number of different hands of k, each dealt at random. Give the number of
// hands in use: the tenants if each has its own, the groups if they are fixed,
// for which Anyone is close as long as it is small. The errors are those of
// [Reach]; dead below 0 or above n is an [ErrInvalid].
func OutageOf(n, k, dead, hands int) (Outage, error) {
	if err := checkDeal(n, k); err != nil {
		return Outage{}, err
	}
	if dead < 0 || dead > n {
		return Outage{}, fmt.Errorf("shuffle: %d dead of %d workers: %w", dead, n, ErrInvalid)
	}
	if err := checkTenants(hands); err != nil {
		return Outage{}, err
	}
	lost := make([]float64, k+1)
	copy(lost, hypergeometric(n, k, dead))
	b := BlastOf(lost)
	o := Outage{Total: b.Total, Degraded: b.Degraded}
	if hands > 0 { // given which workers are dead, hands fare independently
		o.Anyone = -math.Expm1(float64(hands) * math.Log1p(-o.Total))
	}
	return o, nil
}
