// Package pysample deals hands as three well-known Python snippets do.
//
// It is here to be compared with, in tests, benchmarks, simulations: a hand dealt
// like this depends on how one language happens to draw samples. One worker more
// may change all of a hand, at 128 workers or if the names no longer sort as
// before, and none at the next. Package shuffle deals hands that are fit for use.
package pysample

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// A Variant is one of the snippets. They agree on nothing: the same tenant and
// workers give three different hands.
type Variant int

const (
	// Digest seeds with all 32 bytes of the tenant's SHA-256, draws from the
	// workers as given, and sorts the hand.
	Digest Variant = iota
	// Sorted seeds with the first eight bytes as a number, and draws from the
	// workers in order of their names.
	Sorted
	// AsGiven seeds with the first eight bytes as a number, and draws from the
	// workers as given.
	AsGiven
)

// Hand returns the hand of k of workers that variant v gives to tenant. It panics if there
// are fewer workers.
func Hand(v Variant, tenant string, workers []string, k int) []string {
	if v == Sorted {
		workers = slices.Sorted(slices.Values(workers))
	}
	dealt := Sample(v, tenant, len(workers), k)
	hand := make([]string, k)
	for i, at := range dealt {
		hand[i] = workers[at]
	}
	if v == Digest {
		slices.Sort(hand)
	}
	return hand
}

// Sample returns the places of tenant's hand of k in a list of n workers, in the order
// in which they are drawn. It panics if k is above n.
func Sample(v Variant, tenant string, n, k int) []int {
	digest := sha256.Sum256([]byte(tenant))
	var r twister
	if v == Digest {
		more := sha512.Sum512(digest[:])
		r.seed(append(digest[:], more[:]...))
	} else {
		r.seed(digest[:8])
	}
	return r.sample(n, k)
}

// The Mersenne Twister, MT19937.
const (
	size  = 624
	shift = 397
)

// A twister is a Mersenne Twister, with what Python adds to it.
type twister struct {
	state [size]uint32
	next  int // the first word of state that was not given out
}

// seed sets r to where Python's is after it was seeded with a number, here its
// big-endian bytes.
func (r *twister) seed(number []byte) {
	for len(number)%4 != 0 {
		number = append([]byte{0}, number...)
	}
	var words []uint32 // the least significant first, without zeros at the end
	for i := len(number); i > 0; i -= 4 {
		words = append(words, binary.BigEndian.Uint32(number[i-4:]))
	}
	for len(words) > 1 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	s := &r.state
	s[0] = 19650218
	for i := 1; i < size; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	step := func(factor, add uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if i++; i == size {
			s[0], i = s[size-1], 1
		}
	}
	for j := range max(size, len(words)) {
		j %= len(words)
		step(1664525, words[j]+uint32(j))
	}
	for range size - 1 {
		step(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	r.next = size
}

// word returns the next 32 bits.
func (r *twister) word() uint32 {
	if r.next == size {
		s := &r.state
		for i := range size {
			y := s[i]&(1<<31) | s[(i+1)%size]&(1<<31-1)
			s[i] = s[(i+shift)%size] ^ y>>1 ^ y&1*0x9908b0df
		}
		r.next = 0
	}
	y := r.state[r.next]
	r.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below returns a number below n.
func (r *twister) below(n int) int {
	for {
		if x := int(r.word() >> (32 - bits.Len(uint(n)))); x < n {
			return x
		}
	}
}

// sample draws k different numbers below n. It goes about it in one of two ways, as Python
// does, by which of them takes less memory there.
func (r *twister) sample(n, k int) []int {
	if k < 0 || k > n {
		panic(fmt.Sprintf("pysample: sample of %d from %d", k, n))
	}
	few := 21
	if k > 5 {
		table := 1
		for table < 3*k {
			table *= 4
		}
		few += table
	}
	drawn := make([]int, k)
	if n > few {
		for i := range drawn {
			x := r.below(n)
			for slices.Contains(drawn[:i], x) {
				x = r.below(n)
			}
			drawn[i] = x
		}
		return drawn
	}
	pool := make([]int, n)
	for i := range pool {
		pool[i] = i
	}
	for i := range drawn {
		at := r.below(n - i)
		drawn[i] = pool[at]
		pool[at] = pool[n-i-1]
	}
	return drawn
}
