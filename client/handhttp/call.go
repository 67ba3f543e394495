package handhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// A call is one request of the caller's, over all its attempts.
type call struct {
	t        *Transport
	req      *http.Request
	ten      *tenant
	hand     *hand
	order    order
	idem     bool   // may run twice
	kept     bool   // the body can be sent again
	safe     bool   // both
	key      string // Idempotency-Key that was drawn; "" if none
	deadline int64
	limit    int // attempts at most

	failed    []*attempt // over, and no success
	refreshed bool       // the hand was an old one, and fetched anew

	mu       sync.Mutex
	n        int // attempts begun; written by the call's goroutine only
	reserved int // tokens for attempts not begun
}

// begin returns the call for req.
func (t *Transport) begin(req *http.Request) (*call, error) {
	name := t.cfg.Tenant(req)
	if name == "" {
		return nil, &Error{Stop: fmt.Errorf("%w: set its header %s, or Config.Tenant", ErrNoTenant, TenantHeader)}
	}
	ten, h, err := t.enter(req.Context(), name)
	if err != nil {
		return nil, &Error{Tenant: name, Stop: err}
	}
	c := &call{t: t, req: req, ten: ten}
	c.deal(h)
	t.stats.began(h.members)
	c.idem = idempotent(req)
	if !c.idem && t.cfg.DrawKeys && (req.Method == http.MethodPost || req.Method == http.MethodPatch) {
		c.key, c.idem = newKey(), true
	}
	c.kept = replayable(req, t.cfg.ReplayBytes)
	c.safe = c.idem && c.kept
	now := t.now()
	c.deadline = now + int64(t.cfg.Timeout)
	if at, ok := req.Context().Deadline(); ok {
		c.deadline = min(c.deadline, now+int64(time.Until(at)))
	}
	return c, nil
}

// enter returns the tenant and its hand. While new hands can't tell it, such as
// when their store is down, the tenant keeps the one that it had.
func (t *Transport) enter(ctx context.Context, name string) (*tenant, *hand, error) {
	ten := t.tenants.get(name, t.newTenant)
	src := t.source.Load()
	old := ten.hand.Load()
	if old != nil && (old.source == src || t.now() < ten.ask.Load()) {
		return ten, old, nil
	}
	h, err := t.handFrom(ctx, src, name)
	switch {
	case err == nil:
		ten.hand.Store(h)
		return ten, h, nil
	case old == nil || errors.Is(err, ErrNoHand) || errors.Is(err, shuffle.ErrInvalid):
		return nil, nil, err
	}
	ten.ask.Store(t.now() + int64(time.Second))
	t.log.Warn("a tenant keeps its old hand, since the new one is not to be had", "tenant", name, "version", src.Version(), "error", err)
	return ten, old, nil
}

// handFrom asks src for a tenant's hand.
func (t *Transport) handFrom(ctx context.Context, src *source, name string) (*hand, error) {
	members, err := src.Hand(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("tenant %q has an empty hand in version %s: %w", name, src.Version(), ErrNoHand)
	}
	h := &hand{source: src}
	for _, m := range members[:min(len(members), maxHand)] {
		e, err := t.endpoints.get(m)
		if err != nil {
			return nil, err
		}
		h.members = append(h.members, e)
	}
	return h, nil
}

func (t *Transport) newTenant(name string) *tenant {
	ten := &tenant{name: name}
	ten.bucket.fill(t.tenantRule, t.now())
	return ten
}

// deal has c go on with h. What was tried stays tried.
func (c *call) deal(h *hand) {
	c.hand = h
	c.order = order{hand: h.members, last: -1}
	c.limit = c.t.cfg.Attempts
	if c.limit == 0 {
		c.limit = min(len(h.members), 3)
	}
	c.limit += c.n
	for _, a := range c.failed {
		for i, e := range h.members {
			if e == a.to && len(h.members) > 1 {
				c.order.tried |= 1 << i
				c.order.last, c.order.first = i, i
			}
		}
	}
}

// budget returns what c may spend from.
func (c *call) budget() budget {
	return budget{tenant: &c.ten.bucket, cell: &c.t.cell, tenantRule: c.t.tenantRule, cellRule: c.t.cellRule}
}

// reserve takes a token for an attempt to come.
func (c *call) reserve(now int64) bool {
	if !c.budget().reserve(now) {
		c.t.stats.overBudget.Add(1)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved++
	return true
}

// spend uses a reserved token and reports whether there was one.
func (c *call) spend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reserved == 0 {
		return false
	}
	c.reserved--
	return true
}

// mayFollow reports whether an attempt may follow a, which goes on, and
// reserves it. sent says that a has reached its member.
func (c *call) mayFollow(a *attempt, sent bool, now int64) bool {
	if !c.kept || sent && !c.idem || a.n+1 >= c.limit || c.ten.dossier.suspected(now) {
		return false
	}
	c.mu.Lock()
	followed := c.n > a.n+1 // by a hedge, which decides for both
	c.mu.Unlock()
	if followed {
		return false
	}
	return c.reserve(now)
}

// softLimit returns when a may be left for another attempt.
func (c *call) softLimit(a *attempt) int64 {
	left := c.limit - a.n
	if !c.safe || left <= 1 {
		return 0
	}
	d := (c.deadline - a.started) / int64(left)
	if p99 := c.t.p99.Load(); p99 > 0 {
		d = min(d, max(2*p99, int64(c.t.cfg.TryTimeout)))
	}
	return a.started + d
}

// decide returns the wait before the attempt that follows a, and to whom it
// goes if not to the next member; or why there is none. A retry is paid for
// here.
func (c *call) decide(a *attempt, now int64) (same *endpoint, wait time.Duration, stop error) {
	t := c.t
	switch {
	case c.req.Context().Err() != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrAbandoned, context.Cause(c.req.Context()))
	case c.n >= c.limit:
		return nil, 0, ErrAttempts
	case !c.kept:
		return nil, 0, ErrNotKept
	case !c.idem && !a.unprocessed():
		return nil, 0, ErrNotSafe
	case c.ten.dossier.suspected(now):
		t.stats.poisoned.Add(1)
		return nil, 0, ErrPoison
	}
	n := c.n - 1
	wait = t.wait.wait(n)
	if n == 0 && len(c.order.hand) > 1 && a.refused() {
		wait = 0
	}
	if a.resp != nil {
		after, ok := retryAfter(a.resp.Header, time.Now())
		whole := true
		if ok {
			wait, whole = t.wait.obey(n, after)
		}
		if a.outcome == limited {
			// The limit is the tenant's: the others of its hand would say the same,
			// or worse, wouldn't.
			if !ok || !whole {
				return nil, 0, ErrAttempts
			}
			same = a.to
		}
		if a.outcome == limited || a.resp.StatusCode == http.StatusServiceUnavailable && ok {
			t.overloaded.Store(now + int64(max(time.Second, min(after, t.cfg.MaxRetryAfter))))
		}
	}
	if now+int64(wait)+t.p50.Load() >= c.deadline {
		t.stats.late.Add(1)
		return nil, 0, ErrTooLate
	}
	if !c.spend() {
		if !c.reserve(now) {
			return nil, 0, ErrBudget
		}
		c.spend()
	}
	return same, wait, nil
}

// over counts c, and returns what was reserved and not used.
func (c *call) over() {
	c.t.stats.attempts[min(c.n, ManyAttempts)-1].Add(1)
	for c.spend() {
		c.budget().give()
	}
}

// error returns the error of a call that stopped without an answer.
func (c *call) error(stop error) error {
	e := &Error{Tenant: c.ten.name, Stop: stop}
	for _, a := range c.failed {
		e.Attempts = append(e.Attempts, a.record())
	}
	if errors.Is(stop, ErrTooLate) {
		e.Stop = fmt.Errorf("%w: %w", stop, context.DeadlineExceeded)
	}
	return e
}
