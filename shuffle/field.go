package shuffle

import (
	"fmt"
	"math/bits"
)

// maxField is the largest field that newField makes.
const maxField = 1 << 16

// A field is the finite field of q elements, which are called 0 to q-1: element
// e stands for the polynomial over the integers modulo p whose coefficients are
// the digits of e to base p, the lowest first. If q is a prime these are the
// integers modulo q.
//
// It is made for sums of products, with nothing to decide on the way. A product
// is an addition of logarithms. A sum is an addition of words in which each
// digit has room for several, or an exclusive or if p is 2; only at its end are the
// digits reduced.
type field struct {
	q, p  uint32
	log   []uint32 // of each element, to the base of a generator; of 0, none
	none  uint32   // more than the sum of two logarithms, which are 0 to q-2, can be
	power []uint64 // by the sum of two logarithms, the digits of the product, spread out; from none on 0
	width int      // of a digit in a word, in bits
	mask  uint64   // of a digit
}

// newField returns the field of q elements for sums of so many products. The
// generator is x, modulo the first monic polynomial, by the number that its
// coefficients below the highest are to base p, for which x generates all
// elements but 0. An error wraps ErrInvalid if q is no power of a prime, or above
// maxField.
func newField(q, products int) (*field, error) {
	p, degree := primePower(q)
	if p == 0 || q > maxField {
		return nil, fmt.Errorf("shuffle: %d is not a power of a prime from 2 to %d: %w", q, maxField, ErrInvalid)
	}
	f := &field{q: uint32(q), p: uint32(p), none: uint32(2 * (q - 1)), width: 1}
	if p > 2 {
		f.width = bits.Len(uint(products * (p - 1)))
	}
	if f.width*degree > 64 {
		return nil, fmt.Errorf("shuffle: sums of %d products of %d elements don't fit: %w", products, q, ErrInvalid)
	}
	f.mask = 1<<f.width - 1
	var powers []int
	for rest := 1; powers == nil; rest++ {
		powers = powersOfX(p, degree, q, rest)
	}
	f.log = make([]uint32, q)
	f.log[0] = f.none
	f.power = make([]uint64, 2*f.none+1)
	for i, e := range powers {
		f.log[e] = uint32(i)
		word := f.word(uint32(e))
		f.power[i], f.power[i+q-1] = word, word
	}
	return f, nil
}

// powersOfX returns x^0 to x^(q-2) modulo the monic polynomial of that degree
// whose lower coefficients are the digits of rest, or nil if they are not all
// different.
func powersOfX(p, degree, q, rest int) []int {
	if rest%p == 0 {
		return nil // x divides it
	}
	low := digits(rest, p, degree)
	now := digits(1, p, degree)
	all := make([]int, 0, q-1)
	for range q - 1 {
		e := 0
		for i := degree - 1; i >= 0; i-- {
			e = e*p + now[i]
		}
		if e == 1 && len(all) > 0 {
			return nil // they begin again
		}
		all = append(all, e)
		// Times x: shift up, and take away the polynomial as often as the highest
		// coefficient says.
		high := now[degree-1]
		copy(now[1:], now[:degree-1])
		now[0] = 0
		for i, c := range low {
			now[i] = (now[i] + (p-c)*high) % p
		}
	}
	return all
}

// digits returns the n lowest digits of e to base p.
func digits(e, p, n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = e % p
		e /= p
	}
	return d
}

// primePower returns p and n with q = p^n and p prime, or zeros.
func primePower(q int) (p, n int) {
	if q < 2 {
		return 0, 0
	}
	p = q
	for d := 2; d*d <= q; d++ {
		if q%d == 0 {
			p = d
			break
		}
	}
	for ; q%p == 0; q /= p {
		n++
	}
	if q != 1 {
		return 0, 0
	}
	return p, n
}

// word spreads the digits of e out.
func (f *field) word(e uint32) (word uint64) {
	for at := 0; e > 0; at += f.width {
		word |= uint64(e%f.p) << at
		e /= f.p
	}
	return word
}

// element reduces the digits of a sum of words, which is one by exclusive or if p
// is 2.
func (f *field) element(word uint64) uint32 {
	if f.p == 2 {
		return uint32(word)
	}
	if f.p == f.q {
		return uint32(word) % f.p
	}
	e, place := uint32(0), uint32(1)
	for ; word > 0; word >>= f.width {
		e += uint32(word&f.mask) % f.p * place
		place *= f.p
	}
	return e
}
