package hand

import (
	"slices"
	"sync/atomic"
	"time"
)

// usualAttempts is how many attempts a call has at most if nobody says otherwise.
const usualAttempts = 3

// A Plan says what may be done with a request.
type Plan struct {
	Idempotent bool  // it may run twice
	Kept       bool  // its body, if any, can be sent again
	Deadline   int64 // by the cell's time: when its answer must have begun
	Began      int64 // by the cell's time: when the call begins; if zero, the clock is read
}

// A Try is one attempt, as it went.
type Try struct {
	Member  *Member
	N       int  // counted from 0: see [Call.Start]
	Probe   bool // see [Call.Next]
	Outcome Outcome
	Status  int           // of its answer; 0 if none came
	Took    time.Duration // until the answer began, or didn't
	Over    int64         // by the cell's time: when that was; if zero, the clock is read
	Refused bool          // of Unsent: the member said at once that nobody listens

	// After is what Retry-After says, if Waits says that there is one.
	After time.Duration
	Waits bool

	counted bool // against its member
}

// Unprocessed reports whether the request surely did not run.
func (t *Try) Unprocessed() bool {
	switch t.Outcome {
	case Unsent, Limited, Misdealt:
		return true
	case Unable:
		return t.Status == 503 && t.Waits
	}
	return false
}

// A Call takes one request through its attempts. It may be used again for another
// one, which costs no memory.
type Call struct {
	cell  *Cell
	ten   *Tenant
	plan  Plan
	order order
	limit int // attempts at most

	failed []Try // over, and no success

	n        atomic.Int64 // attempts begun; written by the call's goroutine only
	reserved atomic.Int64 // tokens for attempts not begun
}

// Begin begins a call of ten with the members of its hand, at most [MaxMembers] and
// at least one. It keeps the slice.
func (c *Call) Begin(cell *Cell, ten *Tenant, members []*Member, p Plan) {
	c.cell, c.ten, c.plan = cell, ten, p
	c.failed = c.failed[:0]
	c.n.Store(0)
	c.reserved.Store(0)
	if p.Began == 0 {
		c.plan.Began = cell.Now()
	}
	c.deal(members, 0)
}

// Deal has c go on with another hand. What was tried stays tried.
func (c *Call) Deal(members []*Member) {
	c.plan.Began = c.cell.Now()
	c.deal(members, c.Begun())
}

func (c *Call) deal(members []*Member, begun int) {
	c.order = order{hand: members, last: -1}
	c.limit = c.cell.cfg.Attempts
	if c.limit == 0 {
		c.limit = min(len(members), usualAttempts)
	}
	c.limit += begun
	for i := range c.failed {
		for j, m := range members {
			if m == c.failed[i].Member && len(members) > 1 {
				c.order.tried |= 1 << j
				c.order.last, c.order.first = j, j
			}
		}
	}
}

// Forget forgets the last failure, which says nothing of its member.
func (c *Call) Forget() {
	if n := len(c.failed); n > 0 {
		c.failed = c.failed[:n-1]
	}
}

// Members returns the hand.
func (c *Call) Members() []*Member { return c.order.hand }

// Begun returns how many attempts there were.
func (c *Call) Begun() int { return int(c.n.Load()) }

// Limit returns how many attempts there may be.
func (c *Call) Limit() int { return c.limit }

// Safe reports whether a failure may be repaired by another attempt, whatever it is.
func (c *Call) Safe() bool { return c.plan.Idempotent && c.plan.Kept }

// Next returns the place in the hand of the member for the next attempt, and
// whether it is the one probe of a member whose time aside has ended. safe says
// that a failure would be repaired by another attempt.
//
// The first is the better of two by its latency and the requests in flight. The next
// ones follow in the order of the hand, untried ones first, and among them those in a
// zone that was not tried yet. Those set aside are last. Once all were tried it begins
// again, not with the one tried last.
func (c *Call) Next(safe bool) (at int, probe bool) { return c.order.pick(c.plan.Began, safe) }

// Left reports whether there are members that Next has not named.
func (c *Call) Left() bool { return !c.order.exhausted() }

// Other reports whether another member might be asked now: one that Next would
// name, that was not passed over ([Call.Skip]), and that may does not rule out. In
// a hand of one it is always true. Ask it before something is given up for the sake
// of another attempt; as Next, it belongs to the call's goroutine.
func (c *Call) Other(may func(at int) bool) bool { return c.order.other(may) }

// Start counts an attempt, and returns its number from 0.
func (c *Call) Start() (n int) { return int(c.n.Add(1)) - 1 }

// Skip takes back the attempt that Start counted last: nothing was sent, nor was it
// tried, since the way to its member is known to be closed. A call that skips a
// member pays nothing for it, and the member gets no blame.
func (c *Call) Skip(t *Try) {
	c.n.Add(-1)
	c.order.over |= 1 << max(c.order.last, 0)
	if t.Probe {
		t.Member.probing.Store(false)
	}
}

// Reserve takes a token for an attempt to come, and reports whether there was one.
func (c *Call) Reserve(now int64) bool {
	if !c.cell.Budget(c.ten).Reserve(now) {
		c.cell.overBudget.Add(1)
		return false
	}
	c.reserved.Add(1)
	return true
}

// Spend uses a reserved token and reports whether there was one.
func (c *Call) Spend() bool {
	for {
		n := c.reserved.Load()
		if n == 0 {
			return false
		}
		if c.reserved.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// Refund returns a token that was spent for what did not happen.
func (c *Call) Refund() { c.cell.Budget(c.ten).Give() }

// MayFollow reports whether an attempt may follow the n-th, which goes on, and
// reserves it. sent says that the n-th has reached its member. Any goroutine may
// call it while that attempt goes on.
func (c *Call) MayFollow(n int, sent bool, now int64) bool {
	if !c.plan.Kept || sent && !c.plan.Idempotent || n+1 >= c.limit || c.ten.Suspected(now) {
		return false
	}
	if c.Begun() > n+1 { // one beside it, which decides for both
		return false
	}
	return c.Reserve(now)
}

// SoftLimit returns when the n-th attempt, begun at started, may be left for another
// one, if that may follow; 0 for never.
func (c *Call) SoftLimit(n int, started int64) int64 {
	left := c.limit - n
	if !c.Safe() || left <= 1 {
		return 0
	}
	d := (c.plan.Deadline - started) / int64(left)
	if p99 := c.cell.p99.Load(); p99 > 0 {
		d = min(d, max(2*p99, int64(c.cell.cfg.TryTimeout)))
	}
	return started + d
}

// TooLong reports whether an answer that has not come after so long would have come
// from a member that is well, to which it takes connect at most to connect.
func (c *Cell) TooLong(took, connect time.Duration) bool {
	return took > max(2*time.Duration(c.p99.Load()), connect)
}

// Settle learns from an attempt that is over.
func (c *Call) Settle(t *Try) {
	now := t.Over
	if now == 0 {
		now = c.cell.Now()
	}
	if t.Probe {
		defer t.Member.probing.Store(false)
	}
	switch t.Outcome {
	case Good:
		c.cell.Succeeded(c.ten, t.Member, t.Took, now)
		if t.N > 0 && len(c.failed) > 0 {
			c.Refund()
			c.acquitted(now)
		}
		return
	case Limited, Misdealt:
		c.cell.Succeeded(c.ten, t.Member, t.Took, now)
	case Ended:
		t.Member.atLeast(int64(t.Took), now)
	case Lost:
		t.Member.atLeast(int64(t.Took), now)
		return
	default:
		if t.Outcome == Silent {
			t.Member.atLeast(int64(t.Took), now)
		}
		t.counted = c.cell.Failed(c.ten, t.Member, t.Outcome == Unsent, t.Outcome == Broken, now)
	}
	c.failed = append(c.failed, *t)
}

// acquitted is called when a call succeeded after failures: then these were
// their members' fault, not the request's.
func (c *Call) acquitted(now int64) {
	for i := range c.failed {
		t := &c.failed[i]
		if t.counted || t.Outcome != Broken && t.Outcome != Silent && t.Outcome != Unable {
			continue
		}
		t.counted = true
		if t.Member.convict(now) {
			c.cell.setAside(t.Member, now)
		}
	}
}

// Decide returns the wait before the attempt that follows t, and whether it goes to
// the same member; or why there is none. A retry is paid for here, and begins
// with Start.
func (c *Call) Decide(t *Try, now int64) (same bool, wait time.Duration, stop error) {
	back := -1
	if c.Begun() >= c.limit {
		if back = c.mayReturn(t); back < 0 {
			return false, 0, ErrAttempts
		}
	}
	switch {
	case !c.plan.Kept:
		return false, 0, ErrNotKept
	case !c.plan.Idempotent && !t.Unprocessed():
		return false, 0, ErrNotSafe
	case c.ten.Suspected(now):
		c.cell.poisoned.Add(1)
		return false, 0, ErrPoison
	}
	n := c.Begun() - 1
	wait = c.cell.backoff.Wait(n)
	if n == 0 && len(c.order.hand) > 1 && t.Refused {
		wait = 0
	}
	if t.Status != 0 {
		whole := true
		if t.Waits {
			wait, whole = c.cell.backoff.Obey(n, t.After)
		}
		if t.Outcome == Limited {
			// The limit is the tenant's: the others of its hand would say the same,
			// or worse, wouldn't.
			if !t.Waits || !whole {
				return false, 0, ErrAttempts
			}
			same = true
		}
		if t.Outcome == Limited || t.Status == 503 && t.Waits {
			c.cell.overloaded.Store(now + int64(max(time.Second, min(t.After, c.cell.cfg.MaxRetryAfter))))
		}
	}
	if now+int64(wait)+c.cell.p50.Load() >= c.plan.Deadline {
		c.cell.late.Add(1)
		return false, 0, ErrTooLate
	}
	if !c.Spend() {
		if !c.Reserve(now) {
			return false, 0, ErrBudget
		}
		c.Spend()
	}
	if back >= 0 {
		c.order.turn(back)
	}
	return same, wait, nil
}

// mayReturn returns the place of a member that one attempt more than usual may go back
// to, or -1: one that was left only since it was slow. That was right as long as
// another one could take its place, and t, the last of those, has brought nothing.
func (c *Call) mayReturn(t *Try) (at int) {
	if c.cell.cfg.Attempts != 0 || c.Begun() > c.limit || t.Outcome != Unsent && t.Outcome != Broken {
		return -1
	}
	for i := range c.failed {
		if f := &c.failed[i]; f.Outcome == Silent && f.Member != t.Member {
			if at = slices.Index(c.order.hand, f.Member); at >= 0 {
				return at
			}
		}
	}
	return -1
}

// Over returns what was reserved and not used. Call it when the call has ended.
func (c *Call) Over() {
	for c.Spend() {
		c.Refund()
	}
}
