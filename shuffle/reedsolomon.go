package shuffle

import (
	"fmt"
	"math/bits"
)

var _ Design = (*ReedSolomon)(nil)

// ReedSolomon is a [Design] of hands with one seat of each zone. There are k
// zones of q seats, and hand i is the polynomial over the field of q elements
// whose coefficients are the digits of i to base q, the lowest first: its seat
// in zone z is its value at z. Two different polynomials of degree t or less
// agree in at most t places, so two hands share at most t seats.
//
// There are q^(t+1) hands, as many as one seat of each zone permits, and all
// seats are in equally many. Hands i to i+q-1, for i a multiple of q, are
// disjoint and use every seat once, so that few tenants load the seats as
// evenly as many: they differ by one tenant at most if numbers are given in
// order. Zone z has the seats z·q to z·q+q-1.
//
// I. S. Reed and G. Solomon, "Polynomial codes over certain finite fields",
// 1960; optimal by the bound of R. C. Singleton, 1964.
type ReedSolomon struct {
	field   *field
	zones   int
	overlap int
	hands   uint64
	points  []uint32 // the logarithms of z^0 to z^overlap for each zone z
}

// NewReedSolomon returns the design for so many zones of so many seats each, of
// whose hands two share at most overlap. An error wraps [ErrInvalid] unless
// seats is a power of a prime, at least zones and at most 65,536, overlap is
// from 0 to zones-1, and the hands can be counted in 64 bits.
func NewReedSolomon(zones, seats, overlap int) (*ReedSolomon, error) {
	if zones < 1 || seats < zones {
		return nil, fmt.Errorf("shuffle: %d zones of %d seats; take at least one zone and as many seats: %w", zones, seats, ErrInvalid)
	}
	if overlap < 0 || overlap >= zones {
		return nil, fmt.Errorf("shuffle: at most %d shared of a hand of %d is no limit; take 0 to %d: %w", overlap, zones, zones-1, ErrInvalid)
	}
	r := &ReedSolomon{zones: zones, overlap: overlap, hands: 1}
	for range overlap + 1 {
		high, low := bits.Mul64(r.hands, uint64(seats))
		if high != 0 {
			return nil, fmt.Errorf("shuffle: %d^%d hands are too many to count; take fewer seats or a smaller overlap: %w", seats, overlap+1, ErrInvalid)
		}
		r.hands = low
	}
	var err error
	if r.field, err = newField(seats, overlap+1); err != nil {
		return nil, err
	}
	for zone := range zones {
		for d := range uint32(overlap + 1) {
			switch {
			case d == 0:
				r.points = append(r.points, 0) // anything to the power of 0 is 1
			case zone == 0:
				r.points = append(r.points, r.field.none)
			default:
				r.points = append(r.points, d*r.field.log[zone]%(uint32(seats)-1))
			}
		}
	}
	return r, nil
}

// Seats implements [Design].
func (r *ReedSolomon) Seats() int { return r.zones * int(r.field.q) }

// Size implements [Design]: one seat of each zone.
func (r *ReedSolomon) Size() int { return r.zones }

// Overlap implements [Design].
func (r *ReedSolomon) Overlap() int { return r.overlap }

// Hands implements [Design].
func (r *ReedSolomon) Hands() uint64 { return r.hands }

// AppendSeats implements [Design]. Which zone is first is spread evenly.
func (r *ReedSolomon) AppendSeats(dst []int, i uint64) []int {
	f, q := r.field, uint64(r.field.q)
	turn, _ := bits.Mul64(mix(i), uint64(r.zones))
	var few [onStack]uint32
	coefficients := few[:0] // their logarithms
	for range r.overlap + 1 {
		next := i / q
		coefficients = append(coefficients, f.log[i-next*q])
		i = next
	}
	zone := int(turn)
	for range r.zones {
		var sum uint64
		if points := r.points[zone*len(coefficients):]; f.p == 2 {
			for d, c := range coefficients {
				sum ^= f.power[c+points[d]]
			}
		} else {
			for d, c := range coefficients {
				sum += f.power[c+points[d]]
			}
		}
		dst = append(dst, zone*int(q)+int(f.element(sum)))
		if zone++; zone == r.zones {
			zone = 0
		}
	}
	return dst
}
