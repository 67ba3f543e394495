package shuffle

import (
	"fmt"
	"math"
)

// Squeezed returns the probability that a mouse is squeezed out by elephants:
// that each of the k members of its hand, queues or workers, is also in the
// hand of at least one of so many tenants who fill all that they have. All
// hands are dealt at random from n. It is the number that Kubernetes prints in
// its table of hand sizes and queues. The errors are those of [Reach].
func Squeezed(n, k, elephants int) (float64, error) {
	reach, err := Reach(n, k, elephants)
	if err != nil {
		return 0, err
	}
	var p float64
	covered := coverage(n, k)
	for u, q := range reach {
		p += q * covered[u]
	}
	return p, nil
}

// Reach returns how many different members the hands of so many tenants have
// between them: element u is the probability of exactly u, for u from 0 to n,
// with hands of k dealt at random from n. A hand that can't be dealt and a
// negative number of tenants are an [ErrInvalid].
func Reach(n, k, tenants int) ([]float64, error) {
	if err := checkDeal(n, k); err != nil {
		return nil, err
	}
	if err := checkTenants(tenants); err != nil {
		return nil, err
	}
	reach := make([]float64, n+1)
	reach[0] = 1
	var steps [][]float64 // by u: how many of a further hand are among the u
	for u := range n + 1 {
		steps = append(steps, hypergeometric(n, u, k))
	}
	for range tenants {
		next := make([]float64, n+1)
		for u, p := range reach {
			if p == 0 {
				continue
			}
			for old, q := range steps[u] {
				if q > 0 {
					next[u+k-old] += p * q
				}
			}
		}
		if reach[n] == 1 {
			break
		}
		reach = next
	}
	return reach, nil
}

// coverage returns, for u from 0 to n, the probability that a hand of k lies
// within u given ones of n.
func coverage(n, k int) []float64 {
	p := make([]float64, n+1)
	p[n] = 1
	// C(u, k) / C(n, k), downward, a factor at a time.
	for u := n; u > k; u-- {
		p[u-1] = p[u] * float64(u-k) / float64(u)
	}
	if k < n && k >= 0 {
		for u := range k {
			p[u] = 0
		}
	}
	return p
}

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

// Unevenness returns how unevenly random hands load the workers: the standard
// deviation of the number of tenants on a worker, as a share of its mean, with
// hands of k of n for the given number of tenants. The mean is tenants·k/n. The
// hands of a [Design] load evenly. The errors are those of [Reach]; without
// tenants or members it is 0.
func Unevenness(n, k, tenants int) (float64, error) {
	if err := checkDeal(n, k); err != nil {
		return 0, err
	}
	if err := checkTenants(tenants); err != nil {
		return 0, err
	}
	if k == 0 || tenants == 0 {
		return 0, nil
	}
	return math.Sqrt((float64(n)/float64(k) - 1) / float64(tenants)), nil
}
