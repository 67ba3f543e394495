package shuffle

import (
	"fmt"
	"math"
	"math/big"
)

// Pairs is what a probability for two tenants means for a whole fleet. "1 in 75
// million" is per pair, and 10,000 tenants are 50 million pairs.
type Pairs struct {
	Tenants int

	// Count is the number of pairs of tenants.
	Count float64

	// Mean and StdDev are of the number of pairs to which it happens. Both are
	// exact: what two pairs share is independent as soon as hands are dealt
	// independently and evenly, even if the pairs have a tenant in common.
	Mean, StdDev float64

	// Any is the probability that it happens to one pair or more, and AnyError
	// bounds how far off Any may be. Any is what it would be if all pairs were
	// independent; the bound goes by way of the Poisson distribution, to which both
	// are near: the truth by Arratia, Goldstein and Gordon ("Two moments suffice
	// for Poisson approximations", 1989), independent pairs by Barbour and Hall ("On
	// the rate of Poisson convergence", 1984). For two tenants, and where p is 0 or
	// 1, Any is exact.
	Any, AnyError float64
}

// PairsOf returns what p, the probability that two tenants share as much as the
// caller minds, means for all pairs of a number of tenants. A negative number
// and a p outside 0 to 1 are an [ErrInvalid].
func PairsOf(tenants int, p float64) (Pairs, error) {
	if err := checkTenants(tenants); err != nil {
		return Pairs{}, err
	}
	if !(p >= 0 && p <= 1) {
		return Pairs{}, fmt.Errorf("shuffle: %v is no probability: %w", p, ErrInvalid)
	}
	t := float64(tenants)
	f := Pairs{Tenants: tenants, Count: t * (t - 1) / 2}
	f.Mean = f.Count * p
	f.StdDev = math.Sqrt(f.Mean * (1 - p))
	if f.Count == 0 {
		return f, nil
	}
	f.Any = -math.Expm1(f.Count * math.Log1p(-p))
	if t > 2 && p < 1 {
		// Each pair depends on the 2(t-2) others that it has a tenant in common with,
		// and on itself; the last 1 is for how far independent pairs are off.
		neighbours := 2 * (t - 2)
		f.AnyError = min(1, f.Mean*p*(2*neighbours+1+1)*min(1, 1/max(f.Mean, 1e-300)), max(f.Any, 1-f.Any))
	}
	return f, nil
}

// SameHand returns the probability that at least two of the tenants have the
// very same hand, if each is dealt at random one of a number of hands, such as
// [Hands] returns. It is the birthday problem, without approximation. A
// negative number of tenants, or no hands for them, is an [ErrInvalid].
func SameHand(tenants int, hands *big.Int) (float64, error) {
	if err := checkTenants(tenants); err != nil {
		return 0, err
	}
	if hands.Sign() <= 0 && tenants > 0 {
		return 0, fmt.Errorf("shuffle: %d tenants and no hand to deal: %w", tenants, ErrInvalid)
	}
	if tenants < 2 {
		return 0, nil
	}
	if hands.IsInt64() && int64(tenants) > hands.Int64() {
		return 1, nil
	}
	n, _ := new(big.Float).SetInt(hands).Float64() // +Inf beyond 1e308: the result is 0
	t := float64(tenants)
	if t < n*1e-4 {
		// The logarithm's series, each power of i summed in closed form. What is
		// left out is below 1e-13 of it.
		s1, s2 := t*(t-1)/2, t*(t-1)*(2*t-1)/6
		return -math.Expm1(-(s1/n + s2/n/n/2 + (s1/n)*(s1/n)/n/3)), nil
	}
	var none float64 // logarithm of the probability that all differ
	for i := 1.0; i < t && none > -750; i++ {
		none += math.Log1p(-i / n)
	}
	return -math.Expm1(none), nil
}

func checkTenants(tenants int) error {
	if tenants < 0 {
		return fmt.Errorf("shuffle: %d tenants: %w", tenants, ErrInvalid)
	}
	return nil
}
