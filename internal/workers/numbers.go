package workers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// designed deals the hands of a design.
type designed struct {
	*shuffle.Seated
	version string
}

// Version names the method, and all that hands depend on.
func (d *designed) Version() string { return d.version }

// designed returns what deals the hands of a design to tenants with numbers and
// without.
func (d Deal) designed(design shuffle.Design, seated []shuffle.Worker, cfg shuffle.Config) (shuffle.Dealer, error) {
	if len(cfg.Sizes) > 0 {
		tenant := slices.Min(slices.Collect(maps.Keys(cfg.Sizes)))
		return nil, invalid("tenant %q has a hand of another size; all hands of %s have %d workers: remove sizes", tenant, d.method(), design.Size())
	}
	n := numbers{salt: cfg.Salt, hands: design.Hands(), own: d.Numbers, taken: make(map[uint64]string, len(d.Numbers))}
	if n.hands > math.MaxInt64 {
		return nil, invalid("%d hands are more than can be dealt; take a smaller overlap", n.hands)
	}
	text := []byte("gateway/" + string(d.method()) + "\x00")
	part := func(s string) {
		text = binary.BigEndian.AppendUint32(text, uint32(len(s)))
		text = append(text, s...)
	}
	part(cfg.Salt)
	for _, tenant := range slices.Sorted(maps.Keys(d.Numbers)) {
		number := d.Numbers[tenant]
		if err := cellway.TenantID(tenant).Validate(); err != nil {
			return nil, fmt.Errorf("numbers: %w", err)
		}
		if number >= n.hands {
			return nil, invalid("tenant %q has number %d; there are %d hands, of numbers 0 to %d", tenant, number, n.hands, n.hands-1)
		}
		if other, ok := n.taken[number]; ok {
			return nil, invalid("tenants %q and %q both have number %d; give each its own", other, tenant, number)
		}
		n.taken[number] = tenant
		part(tenant)
		text = binary.BigEndian.AppendUint64(text, number)
	}
	if uint64(len(n.taken)) >= n.hands {
		return nil, invalid("all %d hands have their tenants, and none is left for anybody without a number; leave one free, or take more workers", n.hands)
	}
	n.runs = runsOf(n.taken)
	s, err := shuffle.NewSeated(design, seated, n.of)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cellway.ErrInvalid, err)
	}
	part(s.Version())
	sum := sha256.Sum256(text)
	return &designed{s, string(d.method()) + "-" + hex.EncodeToString(sum[:])}, nil
}

// numbers are those of tenants.
type numbers struct {
	salt  string
	hands uint64
	own   map[string]uint64
	taken map[uint64]string // by whom
	runs  []run             // of those that are taken
}

// draws is how many numbers a tenant draws, before it takes the next free one.
const draws = 64

// of returns the number of a tenant. One without a number of its own draws some
// until one is free, so that only those move whose number is given to somebody, or
// who had drawn one before theirs that has become free.
func (n *numbers) of(_ context.Context, tenant string) (uint64, error) {
	if own, ok := n.own[tenant]; ok {
		return own, nil
	}
	draw := func(i int) uint64 {
		text := tenant
		if i > 0 {
			text += "\x00" + strconv.Itoa(i) // no tenant has that name
		}
		var card [1]int
		shuffle.Deal(card[:], shuffle.Seed(n.salt, text), int(n.hands))
		return uint64(card[0])
	}
	for i := range draws {
		if number := draw(i); n.free(number) {
			return number, nil
		}
	}
	return n.next(draw(draws)), nil
}

func (n *numbers) free(number uint64) bool {
	_, taken := n.taken[number]
	return !taken
}

// next returns the first free number from that one on, around the end. Who makes up
// names of tenants must not have a gateway go through a hundred thousand numbers for
// each.
func (n *numbers) next(number uint64) uint64 {
	for !n.free(number) { // twice at most, as one is free
		i, _ := slices.BinarySearchFunc(n.runs, number, func(r run, number uint64) int { return cmp.Compare(r.last, number) })
		number = (n.runs[i].last + 1) % n.hands
	}
	return number
}

// A run is of numbers one after the other that are all taken.
type run struct{ first, last uint64 }

// runsOf returns the runs of taken numbers, in order.
func runsOf(taken map[uint64]string) (runs []run) {
	for _, number := range slices.Sorted(maps.Keys(taken)) {
		if n := len(runs); n > 0 && runs[n-1].last+1 == number {
			runs[n-1].last = number
		} else {
			runs = append(runs, run{number, number})
		}
	}
	return runs
}
