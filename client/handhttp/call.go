package handhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// A call is one request of the caller's, over all its attempts.
type call struct {
	hand.Call
	t        *Transport
	req      *http.Request
	ten      *tenant
	dealt    *dealt
	idem     bool   // may run twice
	kept     bool   // the body can be sent again
	key      string // Idempotency-Key that was drawn; "" if none
	deadline int64

	failed    []*attempt // over, and no success
	refreshed bool       // the hand was an old one, and fetched anew
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
	c := &call{t: t, req: req, ten: ten, dealt: h}
	t.stats.began(h.members)
	c.idem = idempotent(req)
	if !c.idem && t.cfg.DrawKeys && (req.Method == http.MethodPost || req.Method == http.MethodPatch) {
		c.key, c.idem = newKey(), true
	}
	c.kept = replayable(req, t.cfg.ReplayBytes)
	now := t.cell.Now()
	c.deadline = now + int64(t.cfg.Timeout)
	if at, ok := req.Context().Deadline(); ok {
		c.deadline = min(c.deadline, now+int64(time.Until(at)))
	}
	c.Begin(t.cell, &ten.Tenant, h.members, hand.Plan{Idempotent: c.idem, Kept: c.kept, Deadline: c.deadline, Began: now})
	return c, nil
}

// enter returns the tenant and its hand. While new hands can't tell it, such as
// when their store is down, the tenant keeps the one that it had.
func (t *Transport) enter(ctx context.Context, name string) (*tenant, *dealt, error) {
	ten := t.tenants.Get(name)
	src := t.source.Load()
	old := ten.dealt.Load()
	if old != nil && (old.source == src || t.cell.Now() < ten.ask.Load()) {
		return ten, old, nil
	}
	h, err := t.handFrom(ctx, src, name)
	switch {
	case err == nil:
		ten.dealt.Store(h)
		return ten, h, nil
	case old == nil || errors.Is(err, ErrNoHand) || errors.Is(err, shuffle.ErrInvalid):
		return nil, nil, err
	}
	ten.ask.Store(t.cell.Now() + int64(time.Second))
	t.log.Warn("a tenant keeps its old hand, since the new one is not to be had", "tenant", name, "version", src.Version(), "error", err)
	return ten, old, nil
}

// handFrom asks src for a tenant's hand.
func (t *Transport) handFrom(ctx context.Context, src *source, name string) (*dealt, error) {
	members, err := src.Hand(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("tenant %q has an empty hand in version %s: %w", name, src.Version(), ErrNoHand)
	}
	h := &dealt{source: src}
	for _, m := range members[:min(len(members), hand.MaxMembers)] {
		e, err := t.endpoints.get(m)
		if err != nil {
			return nil, err
		}
		h.endpoints, h.members = append(h.endpoints, e), append(h.members, &e.Member)
	}
	return h, nil
}

func (t *Transport) newTenant(name string) *tenant {
	ten := &tenant{}
	t.cell.Welcome(&ten.Tenant, name)
	return ten
}

// settle learns from a.
func (c *call) settle(a *attempt) {
	try := a.try()
	c.Settle(&try)
	switch a.outcome {
	case hand.Good, hand.Limited, hand.Misdealt:
		if c.t.cfg.Hedge {
			c.t.hedges.Earn(hedgeRule)
		}
	}
	if a.outcome != hand.Good && a.outcome != hand.Lost {
		c.failed = append(c.failed, a)
	}
}

// decide returns the wait before the attempt that follows a, and whether it goes
// to the same member; or why there is none. A retry is paid for here.
func (c *call) decide(a *attempt) (same bool, wait time.Duration, stop error) {
	if ctx := c.req.Context(); ctx.Err() != nil {
		return false, 0, fmt.Errorf("%w: %w", ErrAbandoned, context.Cause(ctx))
	}
	try := a.try()
	return c.Decide(&try, c.t.cell.Now())
}

// over counts c, and returns what was reserved and not used.
func (c *call) over() {
	c.t.stats.attempts[min(c.Begun(), ManyAttempts)-1].Add(1)
	c.Over()
}

// error returns the error of a call that stopped without an answer.
func (c *call) error(stop error) error {
	e := &Error{Tenant: c.ten.Name, Stop: stop}
	for _, a := range c.failed {
		e.Attempts = append(e.Attempts, a.record())
	}
	if errors.Is(stop, ErrTooLate) {
		e.Stop = fmt.Errorf("%w: %w", stop, context.DeadlineExceeded)
	}
	return e
}
