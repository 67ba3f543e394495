package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// A WeightedCell is a cell that buckets are dealt to. Its share of them is its
// weight among all weights.
type WeightedCell struct {
	ID     cellway.CellID
	Weight uint32 // 1 to MaxWeight
}

// MaxWeight is the highest weight of a cell.
const MaxWeight = 1_000_000

// MaxBuckets is how many buckets can be dealt.
const MaxBuckets = 1 << 24

// AssignBuckets deals count buckets to cells and returns the owner of each.
//
// owners are the owners now: as many as buckets, "" where nobody owns one; nil
// if none has an owner. frozen answers true for buckets that must stay with
// their owner, whether or not it is among cells; nil freezes none.
//
// A cell may get up to 1.05 times its share, rounded up, and gets at least its
// share divided by 1.05, rounded down, or one if its share is one or more. Only
// frozen buckets can prevent that. Within these bounds
//
//   - a bucket without an owner goes to the first cell of its own order of
//     cells that has room: weighted rendezvous hashing with bounded load;
//   - a bucket leaves its owner only if that is not among cells, or owns too
//     many, or if another cell owns too few;
//   - a cell that owns nothing yet is given its whole share, of the buckets
//     that put it before their owner where there are enough.
//
// So what is dealt again does not move, a cell that joins gets its share and
// nothing else moves, and if one leaves, only its buckets move.
//
// Rendezvous hashing is by Thaler and Ravishankar ("Using name-based mappings
// to increase hit rates", 1998), weights in it by Schindelhauer and Schomaker
// ("Weighted distributed hash tables", 2005), bounded load by Mirrokni, Thorup
// and Zadimoghaddam ("Consistent hashing with bounded loads", 2016). The lower
// bound, and staying with the present owner, are added here.
func AssignBuckets(count uint32, cells []WeightedCell, owners []cellway.CellID, frozen func(bucket uint32) bool) ([]cellway.CellID, error) {
	d, err := newDeal(count, cells, owners, frozen)
	if err != nil {
		return nil, err
	}
	d.placeOrphans()
	d.shed()
	d.fill()
	return d.result(owners), nil
}

// A taker is a cell during a deal.
type taker struct {
	id     cellway.CellID
	weight uint64
	seed   uint64

	low, share, high int  // what it gets at least, what is due to it, what it gets at most
	fresh            bool // it owned nothing, while others did: it gets its share
	load             int
}

// cost is how little bucket b likes the cell, in units that depend on the
// weight; see prefers.
func (t *taker) cost(b uint32) uint64 { return cost(bucketHash(b, t.seed)) }

// A deal is the work of AssignBuckets. Its phases keep load up to date.
type deal struct {
	takers []taker // by id
	owner  []int   // of each bucket: index of a taker, nobody, or elsewhere
	was    []int   // owner before the deal
	frozen []bool
	even   bool // all weights are equal
}

const (
	nobody    = -1
	elsewhere = -2 // frozen with a cell that is not a taker
)

func newDeal(count uint32, cells []WeightedCell, owners []cellway.CellID, frozen func(bucket uint32) bool) (*deal, error) {
	switch {
	case count == 0 || count > MaxBuckets:
		return nil, fmt.Errorf("deal %d buckets: give 1 to %d: %w", count, MaxBuckets, cellway.ErrInvalid)
	case len(cells) == 0:
		return nil, fmt.Errorf("deal %d buckets: there is no cell that takes them: %w", count, cellway.ErrNoRoom)
	case owners != nil && len(owners) != int(count):
		return nil, fmt.Errorf("deal %d buckets: there are %d owners: %w", count, len(owners), cellway.ErrInvalid)
	}
	d := &deal{owner: make([]int, count), frozen: make([]bool, count), even: true}
	index := make(map[cellway.CellID]int, len(cells))
	cells = slices.Clone(cells)
	slices.SortFunc(cells, func(a, b WeightedCell) int { return cmp.Compare(a.ID, b.ID) })
	var total uint64
	for i, c := range cells {
		if c.Weight < 1 || c.Weight > MaxWeight {
			return nil, fmt.Errorf("deal buckets: weight of cell %s is %d; give 1 to %d: %w", c.ID, c.Weight, MaxWeight, cellway.ErrInvalid)
		}
		if _, twice := index[c.ID]; twice {
			return nil, fmt.Errorf("deal buckets: cell %s is listed twice: %w", c.ID, cellway.ErrInvalid)
		}
		index[c.ID] = i
		d.takers = append(d.takers, taker{id: c.ID, weight: uint64(c.Weight), seed: seed(c.ID)})
		d.even = d.even && c.Weight == cells[0].Weight
		total += uint64(c.Weight)
	}
	dealt, first := uint64(count), true
	for b := range d.owner {
		d.owner[b] = nobody
		if owners == nil || owners[b] == "" {
			continue
		}
		i, is := index[owners[b]]
		d.frozen[b] = frozen != nil && frozen(uint32(b))
		switch {
		case is:
			d.owner[b], first = i, false
			d.takers[i].load++
		case d.frozen[b]:
			d.owner[b] = elsewhere
			dealt--
		}
	}
	d.was = slices.Clone(d.owner)
	for i := range d.takers {
		t := &d.takers[i]
		part := dealt * t.weight // of total
		t.share = int(part / total)
		t.low = max(int(part*100/(total*105)), min(t.share, 1))
		t.high = int((part*105 + total*100 - 1) / (total * 100))
		t.fresh = t.load == 0 && !first
	}
	return d, nil
}

// prefers reports whether bucket b puts cell x before cell y.
func (d *deal) prefers(b uint32, x, y *taker) bool {
	hx, hy := bucketHash(b, x.seed), bucketHash(b, y.seed)
	if d.even {
		return d.before(hx, 0, x, hy, 0, y)
	}
	return d.before(hx, cost(hx), x, hy, cost(hy), y)
}

// before reports whether x, with this hash and cost, comes before y: by cost
// over weight, then by hash, then by id. With even weights costs say nothing
// that hashes don't.
func (d *deal) before(hx, cx uint64, x *taker, hy, cy uint64, y *taker) bool {
	if !d.even {
		if c := cmp.Compare(cx*y.weight, cy*x.weight); c != 0 {
			return c < 0
		}
	}
	if hx != hy {
		return hx > hy
	}
	return x.id < y.id
}

// favourite returns the taker that bucket b puts first among those that may
// have it, or nobody.
func (d *deal) favourite(b uint32, may func(i int) bool) int {
	best, bestHash, bestCost := nobody, uint64(0), uint64(0)
	for i := range d.takers {
		if !may(i) {
			continue
		}
		h, c := bucketHash(b, d.takers[i].seed), uint64(0)
		if !d.even {
			c = cost(h)
		}
		if best == nobody || d.before(h, c, &d.takers[i], bestHash, bestCost, &d.takers[best]) {
			best, bestHash, bestCost = i, h, c
		}
	}
	return best
}

func (d *deal) give(b uint32, to int) {
	if from := d.owner[b]; from >= 0 {
		d.takers[from].load--
	}
	d.owner[b] = to
	d.takers[to].load++
}

// placeOrphans gives each bucket without an owner to its favourite that has
// room. There always is one, since all room together exceeds all buckets.
func (d *deal) placeOrphans() {
	for b := range d.owner {
		if d.owner[b] == nobody {
			d.give(uint32(b), d.favourite(uint32(b), func(i int) bool { return d.takers[i].load < d.takers[i].high }))
		}
	}
}

// shed takes from each cell what it has too much. Cells that have too little
// come first: when a cell joins, that is it alone, and nothing moves between
// the others.
func (d *deal) shed() {
	for from := range d.takers {
		t := &d.takers[from]
		if t.load <= t.high {
			continue
		}
		for _, o := range d.offers(from) {
			if t.load <= t.high {
				break
			}
			for _, may := range []func(u *taker) bool{
				func(u *taker) bool { return u.load < u.low },
				func(u *taker) bool { return u.load < u.share },
				func(u *taker) bool { return u.load < u.high },
			} {
				if to := d.favourite(o.bucket, func(i int) bool { return i != from && may(&d.takers[i]) }); to != nobody {
					d.give(o.bucket, to)
					break
				}
			}
		}
	}
}

// An offer is a bucket that may move. Those of lower rank go first, then those
// of lower cost.
type offer struct {
	rank   int
	cost   uint64
	bucket uint32
}

func sorted(offers []offer) []offer {
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.cost, b.cost), cmp.Compare(a.bucket, b.bucket))
	})
	return offers
}

// offers lists the buckets of a taker that may move: first those that put a
// needy cell before it, then those that are the fondest of a needy cell; if none
// is needy, those that are the least fond of their owner.
func (d *deal) offers(from int) (all []offer) {
	t := &d.takers[from]
	needy := func(i int) bool { return i != from && d.takers[i].load < d.takers[i].low }
	for b, owner := range d.owner {
		if owner != from || d.frozen[b] {
			continue
		}
		o := offer{bucket: uint32(b), rank: 1}
		if to := d.favourite(o.bucket, needy); to != nobody {
			if d.prefers(o.bucket, &d.takers[to], t) {
				o.rank = 0
			}
			o.cost = d.takers[to].cost(o.bucket)
		} else {
			o.cost = ^t.cost(o.bucket)
		}
		all = append(all, o)
	}
	return sorted(all)
}

// fill gives each cell what it lacks: its least, then its share if it is fresh.
func (d *deal) fill() {
	least := func(u *taker) int { return u.low }
	due := func(u *taker) int {
		if u.fresh {
			return u.share
		}
		return u.low
	}
	for _, want := range []func(u *taker) int{least, due} {
		for to := range d.takers {
			d.fillOne(to, want)
		}
	}
}

// fillOne takes from cells that have more than they want: buckets that move
// anyway before others, then those that put the cell before their owner, then
// those that are the fondest of it.
func (d *deal) fillOne(to int, want func(u *taker) int) {
	t := &d.takers[to]
	if t.load >= want(t) {
		return
	}
	var offers []offer
	for b, owner := range d.owner {
		if owner < 0 || owner == to || d.frozen[b] || d.takers[owner].load <= want(&d.takers[owner]) {
			continue
		}
		o := offer{bucket: uint32(b), cost: t.cost(uint32(b))}
		if owner == d.was[b] {
			o.rank = 2
		}
		if !d.prefers(o.bucket, t, &d.takers[owner]) {
			o.rank++
		}
		offers = append(offers, o)
	}
	for _, o := range sorted(offers) {
		if t.load >= want(t) {
			break
		}
		if from := &d.takers[d.owner[o.bucket]]; from.load > want(from) {
			d.give(o.bucket, to)
		}
	}
}

func (d *deal) result(owners []cellway.CellID) []cellway.CellID {
	out := make([]cellway.CellID, len(d.owner))
	for b, owner := range d.owner {
		if owner == elsewhere {
			out[b] = owners[b]
		} else {
			out[b] = d.takers[owner].id
		}
	}
	return out
}
