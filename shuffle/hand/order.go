package hand

import (
	"math/bits"
	"math/rand/v2"
)

// MaxMembers is how many members of a hand are used. Further ones would not be
// reached by any number of attempts that is of use.
const MaxMembers = 64

// An order picks the members of a hand for one call.
type order struct {
	hand  []*Member
	first int    // where this call began
	tried uint64 // by place in the hand
	over  uint64 // those passed over, of which nothing was asked since
	last  int    // the place picked last, -1 for none
	back  int    // the place to pick next and one, 0 if that is not settled
}

// set is a set of places in the hand.
type set = uint64

// callable returns who is asked in the usual order: those not set aside, and
// if these are less than half of the hand, those whose time ends first. So no
// tenant ever has less than half a hand, whatever happened to others' hands.
func (o *order) callable() (ok set) {
	k := len(o.hand)
	for i, m := range o.hand {
		if m.asideUntil() == 0 {
			ok |= 1 << i
		}
	}
	for bits.OnesCount64(ok) < (k+1)/2 {
		best, until := -1, int64(0)
		for i, m := range o.hand {
			if at := m.asideUntil(); ok&(1<<i) == 0 && (best < 0 || at < until) {
				best, until = i, at
			}
		}
		ok |= 1 << best
	}
	return ok
}

// pick returns the member for the next attempt, and whether it is the one
// probe of a member whose time aside has ended. safe says that a failure would
// be repaired by another attempt.
//
// The first is the better of two callable ones by its latency and the requests
// in flight. The next ones follow in the order of the hand, untried ones first,
// and among them those in a zone that was not tried yet. Those set aside are
// last. Once all were tried it begins again, not with the one tried last.
func (o *order) pick(now int64, safe bool) (at int, probe bool) {
	if o.back > 0 {
		at, o.back = o.back-1, 0
		return o.take(at), false
	}
	k := len(o.hand)
	if o.exhausted() {
		o.tried = 0
		if k > 1 {
			o.tried = 1 << o.last
		}
	}
	ok := o.callable()
	if o.last < 0 {
		if at = o.due(now, safe); at >= 0 {
			probe = true
		} else {
			at = o.better(ok, now)
		}
		o.first = at
	} else {
		at = o.next(ok)
	}
	return o.take(at), probe
}

// take notes that at is picked.
func (o *order) take(at int) int {
	o.tried |= 1 << at
	o.over &^= 1 << at
	o.last = at
	return at
}

// turn has the next pick be at, whoever's turn it is.
func (o *order) turn(at int) { o.back = at + 1 }

// other reports whether pick would name a member next that was not passed over and
// that may does not rule out.
func (o *order) other(may func(at int) bool) bool {
	k := len(o.hand)
	if k == 1 {
		return true
	}
	untried := ^o.tried & (^set(0) >> (MaxMembers - k))
	if untried == 0 && o.last >= 0 {
		untried = ^(set(1) << o.last) & (^set(0) >> (MaxMembers - k))
	}
	for i := range k {
		if (untried&^o.over)&(1<<i) != 0 && may(i) {
			return true
		}
	}
	return false
}

// exhausted reports whether all members were picked.
func (o *order) exhausted() bool { return o.tried == ^set(0)>>(MaxMembers-len(o.hand)) }

// due returns a member whose probe is due and now this call's, or -1.
func (o *order) due(now int64, safe bool) int {
	for i, m := range o.hand {
		until := m.asideUntil()
		if until == 0 || now < until || !safe && now < until+int64(overdue) {
			continue
		}
		if m.probing.CompareAndSwap(false, true) {
			return i
		}
	}
	return -1
}

// better returns the cheaper of two members of ok, drawn at random.
func (o *order) better(ok set, now int64) int {
	n := bits.OnesCount64(ok)
	if n == 1 {
		return bits.TrailingZeros64(ok)
	}
	r := rand.Uint64()
	a := int(r >> 33 % uint64(n))
	b := int(r & (1<<32 - 1) % uint64(n-1))
	if b >= a {
		b++
	}
	x, y := nth(ok, a), nth(ok, b)
	if o.hand[y].cost(now) < o.hand[x].cost(now) {
		return y
	}
	return x
}

// nth returns the n-th place in s, counted from 0.
func nth(s set, n int) int {
	for ; n > 0; n-- {
		s &= s - 1
	}
	return bits.TrailingZeros64(s)
}

// next returns the untried member to go on with.
func (o *order) next(ok set) int {
	k := len(o.hand)
	best, rank := -1, -1
	for d := 1; d <= k; d++ {
		i := (o.first + d) % k
		if o.tried&(1<<i) != 0 {
			continue
		}
		r := 0
		if ok&(1<<i) != 0 {
			r += 4
		}
		switch {
		case !o.zoneTried(i):
			r += 2
		case o.hand[i].Zone != o.hand[o.last].Zone:
			r++
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

func (o *order) zoneTried(i int) bool {
	for j, m := range o.hand {
		if o.tried&(1<<j) != 0 && m.Zone == o.hand[i].Zone {
			return true
		}
	}
	return false
}
