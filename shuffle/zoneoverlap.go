package shuffle

import (
	"fmt"
	"math/big"
)

// ZoneOverlap returns what [Overlap] does for hands that are dealt over zones
// with the given numbers of workers, round-robin and in an order of zones that
// is each tenant's own. A zone that has no worker left is passed over.
//
// Zones shrink the choice of hands, so that tenants share more than the same
// number of workers without zones would make them: with one of each of three
// zones of 30, a whole hand is shared 4.4 times as often as with 3 of 90. The
// distribution is the convolution of those of the zones, over all the ways in
// which a hand that the zones don't divide can fall.
//
// A number below 0, or a k below 0 or above all workers, is an [ErrInvalid].
func ZoneOverlap(zones []int, k int) ([]float64, error) {
	shares, err := shareOut(zones, k)
	if err != nil {
		return nil, err
	}
	// Zone by zone: at[a][b] has the distribution of the overlap so far, if the
	// one tenant has a of its odd workers and the other has b.
	odd := shares.odd
	at := table(odd)
	at[0][0] = []float64{1}
	left := shares.open // zones still to come that may get an odd one
	for z, workers := range zones {
		open := shares.isOpen(z, workers)
		next := table(odd)
		for a := range at {
			for b := range at[a] {
				if at[a][b] == nil {
					continue
				}
				for _, one := range shares.ways(z, a, left, open) {
					for _, other := range shares.ways(z, b, left, open) {
						na, nb := a+one.odd, b+other.odd
						p := hypergeometric(workers, one.workers, other.workers)
						next[na][nb] = convolve(next[na][nb], at[a][b], p, one.p*other.p)
					}
				}
			}
		}
		if open {
			left--
		}
		at = next
	}
	p := make([]float64, k+1)
	copy(p, at[odd][odd])
	return p, nil
}

// ZoneHands returns the number of different hands of k that can be dealt over
// zones with the given numbers of workers; the errors are those of
// [ZoneOverlap].
func ZoneHands(zones []int, k int) (*big.Int, error) {
	shares, err := shareOut(zones, k)
	if err != nil {
		return nil, err
	}
	// count[a] is the number of ways so far, a zones having an odd worker.
	count := make([]*big.Int, shares.odd+1)
	for a := range count {
		count[a] = new(big.Int)
	}
	count[0].SetInt64(1)
	for z, workers := range zones {
		even, more := Hands(workers, shares.even[z]), Hands(workers, shares.even[z]+1)
		for a := len(count) - 1; a >= 0; a-- {
			count[a].Mul(count[a], even)
			if a > 0 && shares.isOpen(z, workers) {
				count[a].Add(count[a], new(big.Int).Mul(count[a-1], more))
			}
		}
	}
	return count[shares.odd], nil
}

// Shares says how many workers of each zone a hand has: even[z] in any case,
// and one more, an odd one, in some of the open zones, which are those that
// have more.
type shares struct {
	even []int
	odd  int // how many open zones give one more
	open int // how many zones have one more to give
}

func (s shares) isOpen(zone, workers int) bool { return workers > s.even[zone] && s.odd > 0 }

// shareOut deals k over zones, a round at a time.
func shareOut(zones []int, k int) (shares, error) {
	total := 0
	for _, workers := range zones {
		if workers < 0 {
			return shares{}, fmt.Errorf("shuffle: a zone of %d workers: %w", workers, ErrInvalid)
		}
		total += workers
	}
	if err := checkDeal(total, k); err != nil {
		return shares{}, err
	}
	s := shares{even: make([]int, len(zones)), odd: k}
	for {
		s.open = 0
		for z, workers := range zones {
			if workers > s.even[z] {
				s.open++
			}
		}
		if s.odd < s.open || s.odd == 0 {
			return s, nil
		}
		for z, workers := range zones {
			if workers > s.even[z] {
				s.even[z]++
			}
		}
		s.odd -= s.open
	}
}

// A way is what a zone may give to a hand, and how likely it does.
type way struct {
	workers int
	odd     int // 1 if one of them is odd
	p       float64
}

// ways returns what the zone gives to a hand that has got of its odd workers so
// far, while left open zones remain, this one included. Each choice of open
// zones is as likely as another.
func (s shares) ways(zone, got, left int, open bool) []way {
	even := way{workers: s.even[zone], p: 1}
	if !open {
		return []way{even}
	}
	more := way{workers: s.even[zone] + 1, odd: 1, p: float64(s.odd-got) / float64(left)}
	even.p = float64(left-s.odd+got) / float64(left)
	var all []way
	for _, w := range []way{even, more} {
		if w.p > 0 {
			all = append(all, w)
		}
	}
	return all
}

// table returns room for a distribution for each of 0 to odd, twice.
func table(odd int) [][][]float64 {
	t := make([][][]float64, odd+1)
	for i := range t {
		t[i] = make([][]float64, odd+1)
	}
	return t
}

// convolve adds to sum, weighted, the distribution of x + y, given those of x
// and of y. It returns sum, grown if need be.
func convolve(sum, x, y []float64, weight float64) []float64 {
	if missing := len(x) + len(y) - 1 - len(sum); missing > 0 {
		sum = append(sum, make([]float64, missing)...)
	}
	for i := range x {
		for j := range y {
			sum[i+j] += weight * x[i] * y[j]
		}
	}
	return sum
}
