package shuffle

import (
	"fmt"
	"math/bits"
)

var _ Design = Quadruples{}

// Quadruples is a [Design] of hands of four of which two share at most two: the
// Boolean Steiner quadruple system. Its seats are 2^m numbers of m bits, and a
// hand is four different ones whose exclusive or is 0. Three of them determine
// the fourth, so two hands that share three are the same, and every three
// seats are together in exactly one hand. It knows no zones; where one worker of
// each is wanted, take [ReedSolomon].
//
// With n seats there are n(n-1)(n-2)/24 hands, which is the bound of
// [Capacity]: with 2,048 workers, 357,389,824 tenants may have four each, and
// no two share more than two. All seats are in equally many hands. Hands i
// to i+n/4-1, for i a multiple of n/4, are disjoint and use every seat once.
//
// H. Hanani, "On quadruple systems", 1960, says for which n there are such
// systems; this one consists of the planes of affine geometry over two elements.
type Quadruples struct {
	m int
}

// NewQuadruples returns the design for so many seats. An error wraps
// [ErrInvalid] unless it is a power of two from 4 to 2^20.
func NewQuadruples(seats int) (Quadruples, error) {
	if seats < 4 || seats > 1<<20 || seats&(seats-1) != 0 {
		return Quadruples{}, fmt.Errorf("shuffle: quadruples of %d seats; take a power of two from 4 to %d: %w", seats, 1<<20, ErrInvalid)
	}
	return Quadruples{bits.Len(uint(seats)) - 1}, nil
}

// Seats implements [Design]. The zero Quadruples has one seat and no hands.
func (d Quadruples) Seats() int { return 1 << d.m }

// Size implements [Design].
func (d Quadruples) Size() int { return 4 }

// Overlap implements [Design].
func (d Quadruples) Overlap() int { return 2 }

// Hands implements [Design].
func (d Quadruples) Hands() uint64 {
	n := uint64(1) << d.m
	return planes(d.m) * (n / 4)
}

// planes is the number of planes through 0: of pairs of numbers of m bits whose
// span is another one's but once.
func planes(m int) uint64 {
	n := uint64(1) << m
	return (n - 1) * (n - 2) / 6
}

// AppendSeats implements [Design]. Which seat of a hand is first is spread evenly.
func (d Quadruples) AppendSeats(dst []int, i uint64) []int {
	// A hand is a plane through 0, moved: {a, a^u, a^v, a^u^v}. The planes are
	// numbered by their reduced bases: u has its highest bit at p, v at r below
	// it, and u has a 0 there. Of those with u below 2^p there are planes(p).
	plane, move := i>>(d.m-2), i&(1<<(d.m-2)-1)
	p := (bits.Len64(6*plane) + 1) / 2 // (2^p-1)(2^p-2) is about 4^p
	for planes(p+1) <= plane {
		p++
	}
	for p > 1 && planes(p) > plane {
		p--
	}
	plane -= planes(p)
	v := plane>>(p-1) + 1 // from 1 to 2^p-1
	r := bits.Len64(v) - 1
	u := spread(plane&(1<<(p-1)-1), r) | 1<<p
	// Each move of the plane has one member whose bits at r and at p are 0.
	a := spread(spread(move, r), p)
	turn := mix(i) // so that not only those seats are tried first
	a ^= u&-(turn&1) ^ v&-(turn>>1&1)
	return append(dst, int(a), int(a^u), int(a^v), int(a^u^v))
}

// spread makes room for a 0 at the given bit of x.
func spread(x uint64, bit int) uint64 {
	low := x & (1<<bit - 1)
	return x&^(1<<bit-1)<<1 | low
}
