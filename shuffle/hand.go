package shuffle

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// onStack is how many workers a hand may have before dealing allocates.
const onStack = 32

// A scored worker is one of zone.workers with its score for some tenant.
type scored struct {
	score  uint64
	worker uint32
}

// AppendHand appends tenant's hand to dst, in the order in which its workers are
// to be tried, and returns the extended slice. It allocates only if dst has no
// room, or for hands of more than 32 workers.
func (s *Snapshot) AppendHand(dst []Worker, tenant string) []Worker {
	return s.deal(dst, tenant, s.Size(tenant))
}

// AppendFirst is AppendHand for a hand of k workers, whatever size the config
// gives tenant. Its error wraps [ErrInvalid] if k is not positive, and [ErrTooFew] if the workers can't fill
// such a hand; dst is then returned as it was.
func (s *Snapshot) AppendFirst(dst []Worker, tenant string, k int) ([]Worker, error) {
	if err := s.fits(k); err != nil {
		return dst, err
	}
	return s.deal(dst, tenant, k), nil
}

// deal appends the first k workers for tenant; fits(k) is nil.
func (s *Snapshot) deal(dst []Worker, tenant string, k int) []Worker {
	t := s.seed(tenant)
	if len(s.zones) == 1 {
		return s.zones[0].appendBest(dst, t, k)
	}
	// Each zone has a worker to give, so a hand reaches the first k zones at most.
	var shortOrder [onStack]place
	order := shortOrder[:0]
	for i := range s.zones {
		z := place{zone: &s.zones[i], score: mix(t ^ s.zones[i].hash)}
		if len(order) < k {
			order = append(order, z)
		} else if order[k-1].score >= z.score {
			continue
		}
		at := len(order) - 1
		for ; at > 0 && order[at-1].score < z.score; at-- {
			order[at] = order[at-1]
		}
		order[at] = z
	}
	for left := k; left > 0; {
		for i := range order {
			if z := &order[i]; z.take < len(z.zone.workers) && left > 0 {
				z.take++
				left--
			}
		}
	}
	var shortBest [onStack]scored
	best := room(shortBest[:], k)
	next := 0
	for i := range order {
		z := &order[i]
		z.from = next
		next += z.take
		z.zone.best(t, best[z.from:next])
	}
	for round := 0; next > 0; round++ {
		for i := range order {
			if z := &order[i]; round < z.take {
				dst = append(dst, z.zone.workers[best[z.from+round].worker])
				next--
			}
		}
	}
	return dst
}

// A place is a zone's in the order that one tenant sees.
type place struct {
	zone  *zone
	score uint64
	take  int // how many of its workers are dealt
	from  int // where they begin among the best
}

// seed returns the tenant's own number: T in the package comment.
func (s *Snapshot) seed(tenant string) uint64 {
	var short [256]byte
	text := append(short[:0], s.prefix...)
	text = appendPart(text, tenant)
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

// appendBest appends the k best workers of z for the tenant of seed t.
func (z *zone) appendBest(dst []Worker, t uint64, k int) []Worker {
	var short [onStack]scored
	best := room(short[:], k)
	z.best(t, best)
	for _, b := range best {
		dst = append(dst, z.workers[b.worker])
	}
	return dst
}

// room returns k scored workers, on the stack if short is long enough.
func room(short []scored, k int) []scored {
	if k <= len(short) {
		return short[:k]
	}
	return make([]scored, k)
}

// best fills best with the workers of z that score highest for the tenant of
// seed t, in order.
func (z *zone) best(t uint64, best []scored) {
	switch {
	case len(best) == 0:
	case len(best) > 8*onStack: // a search by insertion would be slow
		z.bestOfMany(t, best)
	case z.first != nil:
		z.bestWeighted(t, best)
	default:
		z.bestEven(t, best)
	}
}

// bestEven is best where all weights are 1.
func (z *zone) bestEven(t uint64, best []scored) {
	k := len(best)
	for i, key := range z.keys[:k] {
		insert(best[:i+1], mix(t^key), uint32(i))
	}
	floor := best[k-1].score
	for i := k; i < len(z.keys); i++ {
		if score := mix(t ^ z.keys[i]); score > floor {
			insert(best, score, uint32(i))
			floor = best[k-1].score
		}
	}
}

// bestWeighted is best where a worker may have several tickets.
func (z *zone) bestWeighted(t uint64, best []scored) {
	k := len(best)
	for i := range k {
		insert(best[:i+1], z.score(t, i), uint32(i))
	}
	for i := k; i < len(z.workers); i++ {
		if score := z.score(t, i); score > best[k-1].score {
			insert(best, score, uint32(i))
		}
	}
}

// bestOfMany is best for hands so large that sorting everybody is quicker.
func (z *zone) bestOfMany(t uint64, best []scored) {
	all := make([]scored, len(z.workers))
	for i := range all {
		all[i] = scored{z.score(t, i), uint32(i)}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.worker, b.worker))
	})
	copy(best, all)
}

// score is that of worker i for the tenant of seed t.
func (z *zone) score(t uint64, i int) uint64 {
	if z.first == nil {
		return mix(t ^ z.keys[i])
	}
	var most uint64
	for _, key := range z.keys[z.first[i]:z.first[i+1]] {
		most = max(most, mix(t^key))
	}
	return most
}

// insert puts a worker into best, which is in order but for its last element;
// that one falls out. A worker goes behind others of its score, since workers
// come by id.
func insert(best []scored, score uint64, worker uint32) {
	i := len(best) - 1
	for ; i > 0 && best[i-1].score < score; i-- {
		best[i] = best[i-1]
	}
	best[i] = scored{score, worker}
}

// Prefer moves the members of hand for which ok is true to the front. It keeps
// the order within both parts, drops nobody, and returns how many are
// ok. This is all that health may do to a hand.
func Prefer(hand []Worker, ok func(Worker) bool) int {
	n := 0
	for i, w := range hand {
		if ok(w) {
			copy(hand[n+1:i+1], hand[n:i])
			hand[n] = w
			n++
		}
	}
	return n
}
