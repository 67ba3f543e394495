package workers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// A Method is a way to deal hands.
type Method string

// The methods.
const (
	// HRW1 deals by rendezvous: see [shuffle.Snapshot]. Any number of workers
	// will do, and any size of hand. Two tenants may have the same hand.
	HRW1 Method = "hrw-1"
	// ReedSolomon deals one worker of each zone: see [shuffle.ReedSolomon].
	ReedSolomon Method = "reed-solomon"
	// Quadruples deals four workers, of which two tenants share at most two: see
	// [shuffle.Quadruples].
	Quadruples Method = "quadruples"
)

// A Deal says how hands are dealt from a list. The zero Deal is by [HRW1].
//
// By a design, which the other methods are, two different hands share at most so
// many workers. Which hand a tenant has follows from its number. Give tenants
// numbers, and none of these shares more than that with anybody. Tenants without
// one are dealt the hands that are left, by a hash of their names: two of them may
// have the same hand, and otherwise keep to it as well.
type Deal struct {
	// Method is how. "" is [HRW1].
	Method Method
	// Overlap is how many workers two different hands share at most. Of
	// [ReedSolomon] it is to be chosen, 0 to one less than the size of a hand; of
	// [Quadruples] it is 2.
	Overlap int
	// Seats are the workers' seats by their ids, counted from 0: of [ReedSolomon]
	// within a zone, of [Quadruples] among all. A worker that takes the seat of
	// another one takes its place in all hands, and nothing else changes.
	Seats map[string]int
	// Numbers are the numbers of tenants: each below the number of hands, none
	// twice. The number of a tenant that has left may be given to another one.
	Numbers map[string]uint64
}

func (d Deal) method() Method {
	if d.Method == "" {
		return HRW1
	}
	return d.Method
}

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
}

// Dealer returns what deals the hands of the workers of s. Its version begins with the
// method, if that is not [HRW1]. The error wraps [cellway.ErrInvalid] if the workers,
// or the size of hands, don't fit.
func (d Deal) Dealer(s *shuffle.Snapshot) (shuffle.Dealer, error) {
	dealer, err := d.dealer(s)
	if err != nil {
		return nil, fmt.Errorf("list of workers: %w", err)
	}
	return dealer, nil
}

func (d Deal) dealer(s *shuffle.Snapshot) (shuffle.Dealer, error) {
	cfg := s.Config()
	for _, id := range slices.Sorted(maps.Keys(d.Seats)) {
		if _, ok := slices.BinarySearchFunc(cfg.Workers, id, func(w shuffle.Worker, id string) int { return strings.Compare(w.ID, id) }); !ok {
			return nil, invalid("%q has a seat and is not in the list", id)
		}
	}
	switch d.method() {
	case HRW1:
		switch {
		case len(d.Seats) > 0:
			return nil, invalid("workers have seats, which hrw-1 does not know; say by what hands are dealt, as in %q, or remove the seats", `"deal": "reed-solomon"`)
		case len(d.Numbers) > 0:
			return nil, invalid("tenants have numbers, which hrw-1 does not know; say by what hands are dealt, as in %q, or remove the numbers", `"deal": "reed-solomon"`)
		case d.Overlap != 0:
			return nil, invalid("hrw-1 holds to no overlap; say by what hands are dealt, as in %q, or remove it", `"deal": "reed-solomon"`)
		}
		return s, nil
	case ReedSolomon:
		return d.reedSolomon(cfg)
	case Quadruples:
		return d.quadruples(cfg)
	}
	return nil, invalid("hands can't be dealt by %q; take hrw-1, reed-solomon or quadruples", d.Method)
}

// reedSolomon seats the workers zone by zone, the zones by their names.
func (d Deal) reedSolomon(cfg shuffle.Config) (shuffle.Dealer, error) {
	zones := map[string][]shuffle.Worker{}
	for _, w := range cfg.Workers {
		zones[w.Zone] = append(zones[w.Zone], w)
	}
	names := slices.Sorted(maps.Keys(zones))
	first := zones[names[0]] // a snapshot has workers
	for _, name := range names {
		if n := len(zones[name]); n != len(first) {
			return nil, invalid("zone %q has %d workers and zone %q has %d; reed-solomon needs equally many in each zone: add some, or take some away",
				name, n, names[0], len(first))
		}
	}
	if cfg.Size != len(names) {
		return nil, invalid("hands of %d, and workers in %d zones: reed-solomon deals one of each zone; make size %d", cfg.Size, len(names), len(names))
	}
	if d.Overlap < 0 || d.Overlap >= len(names) {
		return nil, invalid("overlap %d of hands of %d; take 0 to %d", d.Overlap, len(names), len(names)-1)
	}
	if len(first) < len(names) {
		return nil, invalid("%d zones of %d workers: reed-solomon needs at least as many workers in a zone as there are zones", len(names), len(first))
	}
	design, err := shuffle.NewReedSolomon(len(names), len(first), d.Overlap)
	if err != nil {
		if low, high := fields(len(first), len(names)); low != len(first) {
			return nil, invalid("zones of %d workers: reed-solomon needs the power of a prime; the nearest are %s", len(first), either(low, high))
		}
		return nil, fmt.Errorf("%w: %w", cellway.ErrInvalid, err)
	}
	// Seats last: of another number of workers they are wrong, too.
	var seated []shuffle.Worker
	for _, name := range names {
		in, err := d.seat(zones[name], fmt.Sprintf("zone %q", name))
		if err != nil {
			return nil, err
		}
		seated = append(seated, in...)
	}
	return d.designed(design, seated, cfg)
}

// fields returns the nearest sizes of zones that there are designs for: at most n,
// or 0 for none, and more than that.
func fields(n, zones int) (low, high int) {
	fits := func(q int) bool {
		_, err := shuffle.NewReedSolomon(zones, q, 0)
		return err == nil
	}
	for low = n; low > 0 && !fits(low); low-- {
		continue
	}
	for high = n + 1; !fits(high) && high < 2*n; high++ {
		continue
	}
	return low, high
}

// either names one or two numbers.
func either(low, high int) string {
	if low == 0 {
		return strconv.Itoa(high)
	}
	return fmt.Sprintf("%d and %d", low, high)
}

// quadruples seats all workers.
func (d Deal) quadruples(cfg shuffle.Config) (shuffle.Dealer, error) {
	n := len(cfg.Workers)
	switch {
	case cfg.Size != 4:
		return nil, invalid("hands of %d: quadruples are of 4; make size 4", cfg.Size)
	case d.Overlap != 2:
		return nil, invalid("overlap %d: two quadruples share 2 at most; say 2, or nothing", d.Overlap)
	case cfg.Strict:
		return nil, invalid("strict hands spread over zones, which quadruples don't know; remove strict, or deal by reed-solomon")
	case n < 4 || n > 1<<20 || n&(n-1) != 0:
		low, high := 4, 4
		for high < n && high < 1<<20 {
			low, high = high, high*2
		}
		if low == high || n > high {
			return nil, invalid("%d workers: quadruples need a power of two, 4 to %d; the nearest is %d", n, 1<<20, high)
		}
		return nil, invalid("%d workers: quadruples need a power of two; the nearest are %d and %d", n, low, high)
	}
	design, err := shuffle.NewQuadruples(n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cellway.ErrInvalid, err)
	}
	seated, err := d.seat(cfg.Workers, "the list")
	if err != nil {
		return nil, err
	}
	return d.designed(design, seated, cfg)
}

// seat returns the workers by their seats, which are those of where.
func (d Deal) seat(workers []shuffle.Worker, where string) ([]shuffle.Worker, error) {
	by := make([]shuffle.Worker, len(workers))
	for _, w := range workers {
		seat, ok := d.Seats[w.ID]
		switch {
		case !ok:
			return nil, invalid("worker %q has no seat; %s needs one for each worker of %s: 0 to %d, none twice", w.ID, d.method(), where, len(by)-1)
		case seat < 0 || seat >= len(by):
			return nil, invalid("worker %q: seat %d; %s has %d workers, and seats 0 to %d", w.ID, seat, where, len(by), len(by)-1)
		case by[seat].ID != "":
			return nil, invalid("workers %q and %q are both in seat %d of %s; give each its own", by[seat].ID, w.ID, seat, where)
		case w.Weight > 1:
			return nil, invalid("worker %q: weight %d; to %s all workers are alike: make it 1, or 0 to drain it", w.ID, w.Weight, d.method())
		}
		by[seat] = w
	}
	return by, nil
}
