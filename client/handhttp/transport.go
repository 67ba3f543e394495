package handhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cellway/cellway/shuffle/hand"
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
	at, probe := c.Next(c.Safe())
	for {
		a := c.newAttempt(at, probe)
		for _, a = range c.run(a) {
			c.settle(a)
		}
		if a.outcome == hand.Good {
			return a.resp, nil
		}
		if a.outcome == hand.Misdealt {
			fresh, err := c.redeal(a)
			if err != nil || !fresh {
				return a.resp, nil
			}
			a.drop()
			at, probe = c.Next(c.Safe())
			continue
		}
		same, wait, stop := c.decide(a)
		if stop != nil {
			t.stats.failures.Add(1)
			if a.resp != nil {
				return a.resp, nil
			}
			return nil, c.error(stop)
		}
		a.drop()
		if err := sleep(req.Context(), wait); err != nil {
			c.Refund()
			t.stats.failures.Add(1)
			return nil, c.error(fmt.Errorf("%w: %w", ErrAbandoned, err))
		}
		t.stats.retries.Add(1)
		if probe = false; !same {
			at, probe = c.Next(c.Safe())
		}
	}
}

// sleep waits for d, or until ctx ends, and returns why it ended.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run performs a, with a hedge if there is to be one, and returns the attempts
// that are over, the deciding one last.
func (c *call) run(a *attempt) []*attempt {
	if delay, ok := c.hedgeDelay(c.t.cell.Now()); ok {
		return c.race(a, delay)
	}
	a.run()
	return []*attempt{a}
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
	if err := t.refresh(c.req.Context(), c.dealt.source, a.resp.Header.Get(HandHeader)); err != nil {
		return false, err
	}
	_, h, err := t.enter(c.req.Context(), c.ten.Name)
	if err != nil || h.source == c.dealt.source {
		return false, err
	}
	c.failed = slices.DeleteFunc(c.failed, func(b *attempt) bool { return b == a })
	c.Forget()
	c.dealt = h
	c.Deal(h.members)
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
	now := t.cell.Now()
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
