package shuffle

import (
	"fmt"
	"math/big"
)

// Capacity returns a bound that no dealing of hands can pass: how many tenants
// at most can have hands of k of n workers of which no two share more than
// overlap. It is the bound of Johnson and Schönheim on packings, which is that
// on constant-weight codes A(n, 2(k-overlap), k):
//
//	⌊n/k ⌊(n-1)/(k-1) … ⌊(n-overlap)/(k-overlap)⌋ … ⌋⌋
//
// [Quadruples] meets it. How near a [Registry] comes depends on n, k and
// overlap: about half to three quarters for small ones. An overlap of k or more
// is no limit and, like one below 0 or a hand that can't be dealt, an
// [ErrInvalid].
//
// S. M. Johnson, "A new upper bound for error-correcting codes", 1962;
// J. Schönheim, "On maximal systems of k-tuples", 1966.
func Capacity(n, k, overlap int) (*big.Int, error) {
	if err := checkOverlap(n, k, overlap); err != nil {
		return nil, err
	}
	bound := big.NewInt(1)
	for i := overlap; i >= 0; i-- {
		bound.Mul(bound, big.NewInt(int64(n-i)))
		bound.Quo(bound, big.NewInt(int64(k-i)))
	}
	return bound, nil
}

// ZoneCapacity returns such a bound for hands that are dealt over zones with
// the given numbers of workers, as evenly as [ZoneOverlap] says. It is the
// smallest of [Capacity] and of a count for each way in which the overlap+1
// workers that only one tenant may have together can lie in the zones. With
// one worker of each zone it is the product of the overlap+1 smallest zones,
// which [ReedSolomon] meets. The errors are those of [ZoneOverlap] and
// [Capacity].
func ZoneCapacity(zones []int, k, overlap int) (*big.Int, error) {
	shares, err := shareOut(zones, k)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, workers := range zones {
		n += workers
	}
	bound, err := Capacity(n, k, overlap)
	if err != nil {
		return nil, err
	}
	// There are Π C(workers, i) subsets with i workers of each zone, and each
	// hand has Π C(even, i) of them for itself, or more.
	var pattern func(zone, left int, there, each *big.Int)
	budget := maxPatterns
	pattern = func(zone, left int, there, each *big.Int) {
		if left == 0 {
			budget--
			if q := new(big.Int).Quo(there, each); q.Cmp(bound) < 0 {
				bound = q
			}
			return
		}
		if zone == len(zones) || budget <= 0 {
			return
		}
		for i := 0; i <= min(left, shares.even[zone]); i++ {
			pattern(zone+1, left-i,
				new(big.Int).Mul(there, Hands(zones[zone], i)),
				new(big.Int).Mul(each, Hands(shares.even[zone], i)))
		}
	}
	pattern(0, overlap+1, big.NewInt(1), big.NewInt(1))
	return bound, nil
}

// maxPatterns bounds the patterns that ZoneCapacity tries. Each gives a valid
// bound, so that leaving some out leaves it valid.
const maxPatterns = 100_000

// checkOverlap reports a limit that is none.
func checkOverlap(n, k, overlap int) error {
	if err := checkDeal(n, k); err != nil {
		return err
	}
	if overlap < 0 || overlap >= k {
		return fmt.Errorf("shuffle: at most %d shared of a hand of %d is no limit; take 0 to %d: %w", overlap, k, k-1, ErrInvalid)
	}
	return nil
}
