package handhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// RoundTrip sends req to members of its tenant's hand until one answers
// usefully, or nothing more may be tried. If the last attempt got an answer,
// though one that says failure, that answer is returned; otherwise the error is
// an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.begin(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	defer c.over()
	to, probe := c.order.pick(t.now(), c.safe)
	for {
		a := c.newAttempt(to, probe)
		for _, a = range c.run(a) {
			t.settle(c, a)
		}
		if a.outcome == good {
			return a.resp, nil
		}
		if a.outcome == misdealt {
			fresh, err := c.redeal(a)
			if err != nil || !fresh {
				return a.resp, nil
			}
			a.drop()
			to, probe = c.order.pick(t.now(), c.safe)
			continue
		}
		same, wait, stop := c.decide(a, t.now())
		if stop != nil {
			t.stats.failures.Add(1)
			if a.resp != nil {
				return a.resp, nil
			}
			return nil, c.error(stop)
		}
		a.drop()
		if err := sleep(req.Context(), wait); err != nil {
			c.budget().give()
			t.stats.failures.Add(1)
			return nil, c.error(fmt.Errorf("%w: %w", ErrAbandoned, err))
		}
		t.stats.retries.Add(1)
		if to, probe = same, false; to == nil {
			to, probe = c.order.pick(t.now(), c.safe)
		}
	}
}

// run performs a, with a hedge if there is to be one, and returns the attempts
// that are over, the deciding one last.
func (c *call) run(a *attempt) []*attempt {
	if delay, ok := c.hedgeDelay(c.t.now()); ok {
		return c.race(a, delay)
	}
	a.run()
	return []*attempt{a}
}

// settle learns from a.
func (t *Transport) settle(c *call, a *attempt) {
	now := t.now()
	if a.probe {
		defer a.to.probing.Store(false)
	}
	switch a.outcome {
	case good:
		t.succeed(c.ten, a.to, a.took, now)
		if a.n > 0 && len(c.failed) > 0 {
			c.budget().give()
			t.acquitted(c, now)
		}
	case limited, misdealt:
		c.failed = append(c.failed, a)
		t.succeed(c.ten, a.to, a.took, now)
	case ended:
		c.failed = append(c.failed, a)
		a.to.atLeast(a.took, now)
	case lost:
		a.to.atLeast(a.took, now)
	default:
		c.failed = append(c.failed, a)
		if a.outcome == silent {
			a.to.atLeast(a.took, now)
		}
		t.blame(a, a.outcome == unsent)
	}
}

// succeed records an answer that is no failure. It is all that a call costs
// when nothing goes wrong, together with enter and pick.
func (t *Transport) succeed(ten *tenant, e *endpoint, took, now int64) {
	news, back := e.succeeded(ten, took, now)
	if news {
		t.typical(now)
	}
	if back {
		t.log.Info("member taken back", "member", e.id)
	}
	ten.bucket.add(t.tenantRule, t.tenantRule.deposit)
	t.cell.add(t.cellRule, t.cellRule.deposit)
	if t.cfg.Hedge {
		t.hedges.add(hedgeRule, hedgeRule.deposit)
	}
}

// blame records a failure of a's member. anybodys says that any tenant's
// request would have failed.
func (t *Transport) blame(a *attempt, anybodys bool) {
	now := t.now()
	counted, away := a.to.failed(a.c.ten, anybodys, now, jitter)
	a.counted = counted
	if away {
		t.setAside(a.to)
	}
	if a.outcome == broken && a.c.ten.dossier.broke(a.c.ten, a.to, now) {
		t.log.Warn("tenant suspected of poison", "tenant", a.c.ten.name, "member", a.to.id)
	}
}

// acquitted is called when a call succeeded after failures: then these were
// their members' fault, not the request's.
func (t *Transport) acquitted(c *call, now int64) {
	for _, a := range c.failed {
		if a.counted || a.outcome != broken && a.outcome != silent && a.outcome != unable {
			continue
		}
		a.counted = true
		if a.to.convict(now, jitter) {
			t.setAside(a.to)
		}
	}
}

func (t *Transport) setAside(e *endpoint) {
	t.stats.asides.Add(1)
	t.log.Warn("member set aside", "member", e.id, "for", time.Duration(e.aside.Load()-t.now()).Round(time.Second))
}

// typical computes what is usual in the cell: the medians of its members'
// quantiles, so that a slow member does not make slowness usual.
func (t *Transport) typical(now int64) {
	last := t.typicalAt.Load()
	if last != 0 && now-last < int64(250*time.Millisecond) || !t.typicalAt.CompareAndSwap(last, now) {
		return
	}
	var p50, p95, p99 []int64
	t.endpoints.all(func(e *endpoint) {
		if v := e.p99.Load(); v != 0 {
			p50, p95, p99 = append(p50, e.p50.Load()), append(p95, e.p95.Load()), append(p99, v)
		}
	})
	if len(p99) == 0 {
		return
	}
	for _, q := range []struct {
		all []int64
		to  interface{ Store(int64) }
	}{{p50, &t.p50}, {p95, &t.p95}, {p99, &t.p99}} {
		slices.Sort(q.all)
		q.to.Store(q.all[len(q.all)/2])
	}
}

// redeal gets the hand that the member of a, which refused, would have served.
// It reports whether there is another one now. That is done once in a call.
func (c *call) redeal(a *attempt) (bool, error) {
	t := c.t
	t.stats.misses.Add(1)
	if c.refreshed || t.cfg.Refresh == nil || !c.kept {
		return false, nil
	}
	c.refreshed = true
	if err := t.refresh(c.req.Context(), c.hand.source, a.resp.Header.Get(HandHeader)); err != nil {
		return false, err
	}
	_, h, err := t.enter(c.req.Context(), c.ten.name)
	if err != nil || h.source == c.hand.source {
		return false, err
	}
	c.failed = slices.DeleteFunc(c.failed, func(b *attempt) bool { return b == a })
	c.deal(h)
	return true, nil
}

// refresh fetches the hands of version, unless those in use are others than old
// by now.
func (t *Transport) refresh(ctx context.Context, old *source, version string) error {
	select {
	case t.refreshing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.refreshing }()
	now := t.now()
	if t.source.Load() != old || now-t.refreshed < int64(time.Second) {
		return nil
	}
	t.refreshed = now
	hands, err := t.cfg.Refresh(ctx, version)
	if err != nil {
		return fmt.Errorf("fetch hands of version %s: %w", version, err)
	}
	t.Use(hands)
	return nil
}
