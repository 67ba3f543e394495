package shuffle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// A Design is a fixed family of hands of seats, numbered from 0, of which any
// two different ones share at most [Design.Overlap] seats. Nothing is searched
// and nothing can be used up early: all that is kept is which number each
// tenant has. Give each tenant a number of its own, from a counter or a column
// with a unique constraint; a number whose tenant has left may be given
// again.
//
// Seats are 0 to Seats-1. Workers sit in them, see [Seating], so that to replace
// a worker changes one seat and neither a hand nor an overlap.
//
// A design for other seats is another design: there, everybody's hand differs.
// Choose one with as many seats as the cell will ever have workers.
type Design interface {
	// Seats is how many seats, and so workers, the design needs.
	Seats() int
	// Size is the number of seats in each hand.
	Size() int
	// Overlap is how many seats two hands share at most.
	Overlap() int
	// Hands is how many hands there are.
	Hands() uint64
	// AppendSeats appends the seats of hand i to dst and returns the extended
	// slice. i must be below Hands.
	AppendSeats(dst []int, i uint64) []int
}

// A Seating says which worker sits in which seat of a [Design]. It never changes.
// Only [NewSeating] makes useful ones.
type Seating struct {
	workers []string
	version string
}

// NewSeating seats the workers with these ids: the first in seat 0. For
// [ReedSolomon] the seats of a zone follow each other. An empty id, or one
// that is there twice, is an [ErrInvalid]: with one worker in two seats, two
// tenants could share more than the design says.
func NewSeating(workers ...string) (*Seating, error) {
	sorted := slices.Sorted(slices.Values(workers))
	for i, id := range sorted {
		if id == "" {
			return nil, fmt.Errorf("seat without a worker's id: %w: name one for each seat", ErrInvalid)
		}
		if i > 0 && id == sorted[i-1] {
			return nil, fmt.Errorf("worker %q: %w: in two seats", id, ErrInvalid)
		}
	}
	s := &Seating{workers: slices.Clone(workers)}
	var text bytes.Buffer
	text.WriteString("algebraic/version\x00")
	for _, id := range workers {
		text.Write(appendPart(nil, id))
	}
	sum := sha256.Sum256(text.Bytes())
	s.version = hex.EncodeToString(sum[:])
	return s, nil
}

// Version names the content of s: equal seatings have the same one. It is a
// SHA-256 in hexadecimal.
func (s *Seating) Version() string { return s.version }

// Workers returns a copy of the ids by seat.
func (s *Seating) Workers() []string { return slices.Clone(s.workers) }

// Replace returns a seating with the worker called fresh where the one called
// old sits. If old has no seat, fresh has one already, or it is empty, the
// error wraps [ErrInvalid].
func (s *Seating) Replace(old, fresh string) (*Seating, error) {
	i := slices.Index(s.workers, old)
	if i < 0 {
		return nil, fmt.Errorf("worker %q: %w: it has no seat that could be given to %q", old, ErrInvalid, fresh)
	}
	workers := slices.Clone(s.workers)
	workers[i] = fresh
	return NewSeating(workers...)
}

// AppendHand appends the workers of hand i of the design to dst, in the order in
// which to try them, and returns the extended slice. It allocates only if dst
// has no room or the hand more than 32 seats. An error wraps [ErrInvalid] if the
// design has no such hand, or not as many seats as there are workers; dst is
// then returned as it was.
func (s *Seating) AppendHand(dst []string, d Design, i uint64) ([]string, error) {
	if d.Seats() != len(s.workers) {
		return dst, fmt.Errorf("%d workers for a design with %d seats: %w: seat one in each", len(s.workers), d.Seats(), ErrInvalid)
	}
	if i >= d.Hands() {
		return dst, fmt.Errorf("hand %d of a design with %d: %w: take 0 to %d", i, d.Hands(), ErrInvalid, d.Hands()-1)
	}
	var few [onStack]int
	for _, seat := range d.AppendSeats(few[:0], i) {
		dst = append(dst, s.workers[seat])
	}
	return dst, nil
}
