package shuffle

import (
	"fmt"
	"math/big"
)

// Overlap returns how likely two tenants are to share workers: element i is the
// probability that they share exactly i, for i from 0 to k, if each has a hand
// of k dealt at random from n workers of one zone. It is the hypergeometric
// distribution; relative errors stay below 1e-12 for k up to 1,000. k below 0
// or above n is an [ErrInvalid].
//
// The numbers are for one pair. Among many tenants there are many pairs: see
// [Pairs].
func Overlap(n, k int) ([]float64, error) {
	if err := checkDeal(n, k); err != nil {
		return nil, err
	}
	return hypergeometric(n, k, k), nil
}

// FixedOverlap returns the same for workers in fixed groups of k, one of which
// serves each tenant: all or nothing. n must be a multiple of k, or it is an
// [ErrInvalid].
func FixedOverlap(n, k int) ([]float64, error) {
	if err := checkDeal(n, k); err != nil {
		return nil, err
	}
	if k == 0 || n%k != 0 {
		return nil, fmt.Errorf("shuffle: %d workers don't make groups of %d; take a multiple: %w", n, k, ErrInvalid)
	}
	p := make([]float64, k+1)
	p[k] = float64(k) / float64(n)
	p[0] = 1 - p[k]
	return p, nil
}

// Hands returns the number of different hands of k out of n workers: n choose
// k, exactly. It is 0 if k is below 0 or above n.
func Hands(n, k int) *big.Int {
	if k < 0 || k > n {
		return new(big.Int)
	}
	return new(big.Int).Binomial(int64(n), int64(k))
}

// Blast is what one tenant does to the others when it takes down every worker
// of its hand. The three shares, of all other tenants, add up to 1.
type Blast struct {
	Total     float64 // share of tenants whose every worker is down
	Degraded  float64 // share of tenants who lost some workers; retries inside the hand save them
	Untouched float64 // share of tenants who lost none
}

// BlastOf reads a distribution of overlaps, such as [Overlap] returns, as the
// blast of a poison tenant. An empty one is the zero Blast.
func BlastOf(overlap []float64) Blast {
	if len(overlap) == 0 {
		return Blast{}
	}
	last := len(overlap) - 1
	if last == 0 { // hands of no worker: nobody loses any
		return Blast{Untouched: overlap[0]}
	}
	return Blast{Total: overlap[last], Degraded: sum(overlap[1:last]), Untouched: overlap[0]}
}

// AtLeast returns the probability that two tenants share at least s workers,
// from a distribution such as [Overlap] returns.
func AtLeast(overlap []float64, s int) float64 {
	if s >= len(overlap) {
		return 0
	}
	return sum(overlap[max(s, 0):])
}

// sum adds from the end, where a distribution of overlaps has its small ones.
func sum(p []float64) (total float64) {
	for i := len(p) - 1; i >= 0; i-- {
		total += p[i]
	}
	return total
}

// hypergeometric returns the probability of i marked ones among those drawn,
// for i from 0 to the smaller of marked and drawn, both within 0 to n. It goes
// outward from the likeliest i, so that nothing overflows and what underflows
// is too small for a float64.
func hypergeometric(n, marked, drawn int) []float64 {
	p := make([]float64, min(marked, drawn)+1)
	lowest := max(0, marked+drawn-n)
	a, b, rest := float64(marked), float64(drawn), float64(n-marked-drawn)
	mode := min(max(int((a+1)*(b+1)/float64(n+2)), lowest), len(p)-1)
	p[mode] = 1
	for i := mode; i+1 < len(p); i++ {
		x := float64(i)
		p[i+1] = p[i] * ((a - x) * (b - x)) / ((x + 1) * (rest + x + 1))
	}
	for i := mode; i > lowest; i-- {
		x := float64(i - 1)
		p[i-1] = p[i] * ((x + 1) * (rest + x + 1)) / ((a - x) * (b - x))
	}
	total := sum(p)
	for i := range p {
		p[i] /= total
	}
	return p
}

// checkDeal reports a hand that can't be dealt.
func checkDeal(n, k int) error {
	if k < 0 || k > n {
		return fmt.Errorf("shuffle: a hand of %d from %d workers can't be dealt; take 0 to %d: %w", k, n, max(n, 0), ErrInvalid)
	}
	return nil
}
