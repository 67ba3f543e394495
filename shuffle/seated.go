package shuffle

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// Seated deals the hands of a [Design] to tenants that have numbers. Only
// [NewSeated] makes useful ones.
type Seated struct {
	design  Design
	workers []Worker // by seat
	number  func(ctx context.Context, tenant string) (uint64, error)
	version string
}

// NewSeated returns a dealer of d's hands. The first worker sits in seat 0; ids
// follow the rules of [NewSeating]. A weight of 0 tells that a worker is drained
// until another one is seated in its place; all others are alike. Where workers have zones, those of
// a [ReedSolomon] follow each other.
//
// number returns the number of a tenant: always the same one, below d.Hands,
// and nobody else's, such as a column with a unique constraint that is filled
// when the tenant is created. That no two tenants share more than the design
// says rests on it.
func NewSeated(d Design, workers []Worker, number func(ctx context.Context, tenant string) (uint64, error)) (*Seated, error) {
	if number == nil {
		return nil, fmt.Errorf("hands of a design go by number: %w: give a function that tells those of tenants", ErrInvalid)
	}
	ids := make([]string, len(workers))
	for i, w := range workers {
		if w.Weight < 0 || w.Weight > MaxWeight {
			return nil, fmt.Errorf("worker %q: %w: weight %d, want 0 to %d", w.ID, ErrInvalid, w.Weight, MaxWeight)
		}
		ids[i] = w.ID
	}
	seating, err := NewSeating(ids...)
	if err != nil {
		return nil, err
	}
	if len(workers) != d.Seats() {
		return nil, fmt.Errorf("%d workers for a design with %d seats: %w: seat one in each", len(workers), d.Seats(), ErrInvalid)
	}
	// The numbers of a design tell it from all others of its seats.
	text := appendPart([]byte("algebraic/dealer\x00"), seating.version)
	for _, n := range []uint64{uint64(d.Size()), uint64(d.Overlap()), d.Hands()} {
		text = binary.BigEndian.AppendUint64(text, n)
	}
	for _, w := range workers {
		text = appendPart(text, w.Zone)
		text = append(text, byte(min(w.Weight, 1)))
	}
	sum := sha256.Sum256(text)
	return &Seated{d, slices.Clone(workers), number, hex.EncodeToString(sum[:])}, nil
}

// Version implements [Dealer]: it names the design, its workers, and their seats.
func (s *Seated) Version() string { return s.version }

// Workers returns a copy of the workers by seat.
func (s *Seated) Workers() []Worker { return slices.Clone(s.workers) }

// DealHand implements [Dealer]. Its error is that of the function that tells
// numbers, or wraps [ErrInvalid] if the design has no such hand.
func (s *Seated) DealHand(ctx context.Context, dst []Worker, tenant string) ([]Worker, error) {
	n, err := s.number(ctx, tenant)
	if err != nil {
		return dst, fmt.Errorf("number of tenant %q: %w", tenant, err)
	}
	if n >= s.design.Hands() {
		return dst, fmt.Errorf("tenant %q has number %d, the design %d hands: %w: take 0 to %d", tenant, n, s.design.Hands(), ErrInvalid, s.design.Hands()-1)
	}
	var few [onStack]int
	for _, seat := range s.design.AppendSeats(few[:0], n) {
		dst = append(dst, s.workers[seat])
	}
	return dst, nil
}
