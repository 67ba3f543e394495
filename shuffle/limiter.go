package shuffle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Limit is how much one tenant may do.
type Limit struct {
	// Rate is how many requests a second are let through for ever.
	Rate float64
	// Burst is how many are let through at once after a time without any; at
	// least 1.
	Burst float64
}

// Limiters limits the rate of each tenant with a fixed number of counters, of
// which each tenant uses a hand. However many tenants there are, it takes the same
// memory, and nothing has to be cleaned up.
//
// No tenant gets more than its [Limit]. One that is within its limit is refused
// only if others have used up every counter of its hand; a tenant that shares only
// some counters with those beyond their limits does not notice. With hands of 8 of 128
// and 16 tenants far beyond their limits, one tenant in 36 is covered; with 6 of
// 1,024 one in two million. Have about eight times as many counters as
// tenants may be near their limits at once: each is eight bytes.
//
// A counter holds how far it is ahead of the clock, as a time. A tenant's own use is
// at most the smallest of its hand, and only so much is written to the others,
// so tenants that share a counter do not add up in it more than they must.
//
// Any number of goroutines may use Limiters. Only [NewLimiters] makes useful ones.
type Limiters struct {
	deck  Deck
	turns stripes
	zero  atomic.Pointer[time.Time] // what counters count from: the first now
	last  atomic.Int64              // the latest now, since zero
	ahead []atomic.Int64            // since zero: when the counter will be empty
}

// stripes are locks of which each tenant has one. It is enough that its own requests
// come one after another: whatever others do to a counter meanwhile only adds
// to it, and a tenant's own use is never more than the least of its hand.
type stripes [64]stripe

// A stripe has a line of the processor's cache for itself.
type stripe struct {
	sync.Mutex
	_ [56]byte
}

// of returns the lock of the tenant of that seed.
func (s *stripes) of(seed uint64) *stripe { return &s[seed%uint64(len(s))] }

// NewLimiters returns unused counters, or 6 of 16,384 if deck is zero. Its error wraps
// [ErrInvalid] if deck can't be dealt.
func NewLimiters(deck Deck) (*Limiters, error) {
	deck = cmp.Or(deck, Deck{Of: 16384, Hand: 6})
	if err := deck.check("limiters"); err != nil {
		return nil, err
	}
	return &Limiters{deck: deck, ahead: make([]atomic.Int64, deck.Of)}, nil
}

// Allow reports whether tenant may send a request now that counts as n, and counts it
// if so. If not, retry is how long to wait until it may, if nothing else
// happens; a request beyond the burst never may, and retry is negative. Its
// error wraps [ErrInvalid] if the limit or n is not positive, or the burst below 1.
//
// Time is taken from now, which is best one with a monotonic reading; one that
// lies before an earlier one is taken for that. Rates are kept to a
// nanosecond for each request.
func (l *Limiters) Allow(now time.Time, tenant string, limit Limit, n float64) (ok bool, retry time.Duration, err error) {
	burst, cost, err := limit.times(n)
	if err != nil {
		return false, 0, fmt.Errorf("limit of tenant %q: %w", tenant, err)
	}
	if n > limit.Burst {
		return false, -1, nil
	}
	var room [MaxDeck]int
	seed := Seed(l.deck.Salt, tenant)
	hand := l.deck.deal(&room, seed)
	at := l.since(now)

	turn := l.turns.of(seed)
	turn.Lock()
	defer turn.Unlock()
	own := time.Duration(math.MaxInt64)
	for _, i := range hand {
		own = min(own, max(time.Duration(l.ahead[i].Load()), at))
	}
	if wait := own + cost - burst - at; wait > 0 {
		return false, wait, nil
	}
	for _, i := range hand {
		raise(&l.ahead[i], int64(own+cost))
	}
	return true, 0, nil
}

// raise makes v at least n, and returns what it is.
func raise(v *atomic.Int64, n int64) int64 {
	for {
		old := v.Load()
		if old >= n {
			return old
		}
		if v.CompareAndSwap(old, n) {
			return n
		}
	}
}

// since returns what time it is for the counters, for which it never goes back.
func (l *Limiters) since(now time.Time) time.Duration {
	zero := l.zero.Load()
	if zero == nil {
		first := now
		l.zero.CompareAndSwap(nil, &first)
		zero = l.zero.Load()
	}
	at, last := now.Sub(*zero), time.Duration(l.last.Load())
	if at < last-time.Second {
		moved := now.Add(-last) // the clock was set back: go on from here
		l.zero.CompareAndSwap(zero, &moved)
		return last
	}
	return time.Duration(raise(&l.last, int64(at)))
}

// times returns the burst, and a request of n, as the time that the rate needs for
// them.
func (m Limit) times(n float64) (burst, cost time.Duration, err error) {
	if !(m.Rate > 0) || !(m.Burst >= 1) || !(n > 0) || math.IsInf(m.Rate+m.Burst+n, 1) {
		return 0, 0, fmt.Errorf("%w: rate %v, burst %v, request of %v, want a positive rate, a burst of at least 1, a positive request", ErrInvalid, m.Rate, m.Burst, n)
	}
	const longest = float64(50 * 365 * 24 * time.Hour)
	each := min(float64(time.Second)/m.Rate, longest/m.Burst)
	// Costs are rounded up, so the burst needs that much more to hold all of them.
	burst = time.Duration(min(2*longest, math.Ceil(m.Burst*each)+math.Ceil(m.Burst)))
	cost = time.Duration(min(2*longest, math.Ceil(n*each)))
	return burst, cost, nil
}

// Permits limits how much each tenant has running at once, with a fixed number of
// counters, of which each tenant uses a hand. As with [Limiters], no tenant gets
// more than its limit, and one within its limit is refused only if others
// have filled every counter of its hand. Here all that runs adds up: a counter holds
// what runs times the hand, divided by the number of counters, on average; that
// should be well below the usual limit.
//
// Any number of goroutines may use Permits. Only [NewPermits] makes useful ones.
type Permits struct {
	deck    Deck
	turns   stripes
	running []atomic.Int64
}

// NewPermits returns unused counters, or 6 of 16,384 if deck is zero. Its error wraps
// [ErrInvalid] if deck can't be dealt.
func NewPermits(deck Deck) (*Permits, error) {
	deck = cmp.Or(deck, Deck{Of: 16384, Hand: 6})
	if err := deck.check("permits"); err != nil {
		return nil, err
	}
	return &Permits{deck: deck, running: make([]atomic.Int64, deck.Of)}, nil
}

// A Permit is the right to run one request. The zero value is none.
type Permit struct {
	set  *Permits
	seed uint64
}

// Acquire gives tenant a permit if fewer than most of its requests run. Give it
// back with [Permit.Release].
func (p *Permits) Acquire(tenant string, most int) (permit Permit, ok bool) {
	var room [MaxDeck]int
	seed := Seed(p.deck.Salt, tenant)
	hand := p.deck.deal(&room, seed)
	turn := p.turns.of(seed)
	turn.Lock()
	defer turn.Unlock()
	if !slices.ContainsFunc(hand, func(i int) bool { return p.running[i].Load() < int64(most) }) {
		return Permit{}, false
	}
	for _, i := range hand {
		p.running[i].Add(1)
	}
	return Permit{p, seed}, true
}

// Release gives the permit back. A second call does nothing, unless it is for
// a copy.
func (p *Permit) Release() {
	set := p.set
	if set == nil {
		return
	}
	p.set = nil
	var room [MaxDeck]int
	hand := set.deck.deal(&room, p.seed)
	for _, i := range hand {
		set.running[i].Add(-1)
	}
}
