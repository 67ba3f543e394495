package handhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
)

// These tests are of faults that retrying clients have had in public. Each says
// what went wrong.

// A budget of a fifth let all of a thousand failing requests be retried, since
// those waiting to be were not counted.
// https://github.com/envoyproxy/envoy/issues/30205
func TestBudgetCountsRetriesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		c.all(status(503))
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() { get(rt, fmt.Sprint("t", i)) })
		}
		wg.Wait()
		t.Logf("1,000 requests at once, all failing: %d retries", rt.Stats().Retries)
		if n := rt.Stats().Retries; n > 105 || n < 95 {
			t.Errorf("%d retries, want the 100 of a full budget", n)
		}
		if n := c.hits(); n != int64(1000+rt.Stats().Retries) {
			t.Errorf("%d requests reached the workers, counted are %d", n, 1000+rt.Stats().Retries)
		}
	})
}

// A budget as a share of what is in flight shrank as requests failed, and was
// nothing where little is in flight.
// https://github.com/envoyproxy/envoy-mobile/pull/811,
// https://github.com/failsafe-go/failsafe-go/issues/106
func TestBudgetDoesNotShrinkAsRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		c.all(status(503))
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { get(rt, fmt.Sprint("t", i)) })
		}
		wg.Wait()
		if n := rt.Stats().Retries; n != 12 {
			t.Errorf("%d retries for six requests, want two for each", n)
		}
	})
}

// Tokens were not returned on success, so that retries were dead until a
// restart. https://github.com/aws/aws-sdk-go-v2/issues/3550, /1413
func TestBudgetIsRefilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{Floor: -1})
		c.all(status(503))
		for range 20 {
			get(rt, "acme")
		}
		spent := rt.Stats().Retries
		if spent != 10 {
			t.Fatalf("%d retries, want the ten of the tenant's full budget", spent)
		}
		c.all(fine(time.Millisecond))
		time.Sleep(10 * time.Minute)
		for range 200 {
			get(rt, "acme")
		}
		c.all(status(503))
		for range 20 {
			get(rt, "acme")
		}
		if n := rt.Stats().Retries - spent; n < 10 || n > 12 {
			t.Errorf("%d retries after 200 successes, want ten again", n)
		}
	})
}

// A retry that succeeds gives back what it cost, and not more.
func TestBudgetRefundsOnlyWhatWasSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Floor: -1, Deposit: -1})
		var n atomic.Int64
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%2 == 1 {
				w.WriteHeader(503)
			}
		})
		before := rt.Stats().Budget
		for range 50 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if s := rt.Stats(); s.Retries != 50 || s.Budget != before {
			t.Errorf("budget is %v after %d retries that succeeded, want %v as before", s.Budget, s.Retries, before)
		}
	})
}

// A 404 after a retry was not taken for a sign of health.
// https://github.com/aws/aws-sdk-go-v2/issues/3186
func TestNotFoundAfterRetryIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Floor: -1, Deposit: -1})
		var n atomic.Int64
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%2 == 1 {
				w.WriteHeader(503)
				return
			}
			w.WriteHeader(404)
		})
		before := rt.Stats().Budget
		for range 50 {
			if r := get(rt, "acme"); r.status != 404 {
				t.Fatalf("%+v", r)
			}
		}
		if got := rt.Stats().Budget; got != before {
			t.Errorf("budget is %v, want %v", got, before)
		}
	})
}

// One bad dependency ate the budget that all shared; elsewhere there was none,
// without a word. https://github.com/linkerd/linkerd/issues/737,
// https://github.com/awslabs/aws-sdk-rust/issues/1234
func TestOneTenantsFailuresLeaveBudgetForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		rt := c.transport(handhttp.Config{})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") == "noisy" || r.Header.Get("X-Cell-Attempt") == "1" {
				w.WriteHeader(503)
			}
		})
		for range 1000 {
			get(rt, "noisy")
		}
		spent := rt.Stats().Retries
		if spent > 10+100 { // ten, and one a second
			t.Errorf("%d retries for one tenant", spent)
		}
		for i := range 20 {
			if r := get(rt, fmt.Sprint("quiet-", i)); !r.ok() {
				t.Errorf("another tenant got no retry: %+v", r)
			}
		}
	})
}

// A retry went to the host that had just failed.
func TestDistinct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 30, 6)
		rt := c.transport(handhttp.Config{Attempts: 6})
		c.all(status(503))
		for i := range 8 {
			tenant := fmt.Sprint("t", i)
			for _, w := range c.workers {
				w.seen = nil
			}
			get(rt, tenant)
			var order [6]string
			for _, w := range c.hand(tenant) {
				if len(w.seen) != 1 {
					t.Fatalf("%s was asked %d times, want once", w.id, len(w.seen))
				}
				order[w.seen[0].attempt[0]-'1'] = w.id
			}
			zones := map[string]bool{}
			for _, id := range order[:3] {
				var n int
				fmt.Sscanf(id, "w%d", &n)
				zones[string(rune('a'+n%3))] = true
			}
			if len(zones) != 3 {
				t.Errorf("the first three attempts were in %d zones: %v", len(zones), order)
			}
		}
	})
}

// Nobody outside the hand hears of a tenant.
func TestInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 30, 3)
		rt := c.transport(handhttp.Config{Attempts: 9, Hedge: true})
		c.all(status(500))
		for i := range 50 {
			tenant := fmt.Sprint("t", i)
			before := c.hits()
			get(rt, tenant)
			var inside int64
			for _, w := range c.hand(tenant) {
				w.mu.Lock()
				for _, s := range w.seen {
					if s.tenant == tenant {
						inside++
					}
				}
				w.mu.Unlock()
			}
			if all := c.hits() - before; all != inside {
				t.Fatalf("tenant %s: %d requests, %d inside its hand", tenant, all, inside)
			}
		}
	})
}

// All three of three hosts were set aside, since the limit was looked at before
// the act. https://github.com/envoyproxy/envoy/issues/27066, /26877, /3263
func TestCallable(t *testing.T) {
	for k := 1; k <= 5; k++ {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, k, k)
				rt := c.transport(handhttp.Config{})
				for _, w := range c.workers {
					c.stop(w.id)
				}
				synctest.Wait()
				for i := range 100 {
					get(rt, fmt.Sprint("t", i))
				}
				for _, m := range rt.Members() {
					if !m.Aside {
						t.Fatalf("%s is not set aside", m.ID)
					}
				}
				for _, w := range c.workers {
					c.start(w.id)
				}
				asked := map[string]bool{}
				for range 200 {
					r := get(rt, "acme")
					if !r.ok() {
						t.Fatalf("%+v", r)
					}
				}
				for id, w := range c.workers {
					if w.hits.Load() > 0 {
						asked[id] = true
					}
				}
				if len(asked) < (k+1)/2 {
					t.Errorf("%d of %d members were asked, want half at least", len(asked), k)
				}
			})
		})
	}
}

// The winner's body was cut when a winner was known: 3,965 of 524,288 bytes.
// https://github.com/go-resty/resty/pull/1197,
// https://github.com/failsafe-go/failsafe-go/issues/65
// A hedged POST shared one reader of the body: a data race, and half a body.
// The first reply won, though it was an error.
// Hedges are few, whatever happens, and stop when members say that they have
// too much to do.
// A connection whose packets vanish was used again and again, for 15 minutes.
// https://github.com/golang/go/issues/39750,
// https://github.com/connectrpc/connect-go/issues/829
func TestDeadHTTP2ConnectionIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 1, 1)
		var dials atomic.Int64
		var dead atomic.Bool
		w := c.workers["w00"]
		p := new(http.Protocols)
		p.SetUnencryptedHTTP2(true)
		s := &http.Server{Handler: w, Protocols: p}
		l := c.net.Listen("h2:80")
		go s.Serve(l)
		defer s.Close()
		base := &http.Transport{Protocols: p, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			conn, err := c.net.DialContext(ctx, network, addr)
			if err != nil || dials.Load() > 1 {
				return conn, err
			}
			return &hole{Conn: conn, dead: &dead}, nil
		}}
		defer base.CloseIdleConnections()
		rt := c.transport(handhttp.Config{Base: base, Hands: &handhttp.Received{Of: "1", Tenants: map[string][]handhttp.Member{"acme": {{ID: "w00", URL: "http://h2:80"}}}}})
		if r := get(rt, "acme"); !r.ok() || dials.Load() != 1 {
			t.Fatalf("%+v after %d dials", r, dials.Load())
		}
		dead.Store(true)
		for i := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if r := send(rt, ctx, http.MethodGet, "acme", ""); !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("request %d into the void: %+v", i, r)
			}
			cancel()
		}
		synctest.Wait()
		if r := get(rt, "acme"); !r.ok() || dials.Load() != 2 {
			t.Errorf("%+v after %d dials, want success on a second connection", r, dials.Load())
		}
	})
}

// A hole is a connection that swallows everything once it is dead.
type hole struct {
	net.Conn
	dead *atomic.Bool
}

func (h *hole) Write(p []byte) (int, error) {
	if h.dead.Load() {
		return len(p), nil
	}
	return h.Conn.Write(p)
}

// Every waiting request was let through when the time aside had ended.
func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{})
		warm(t, rt, 3)
		bad := c.hand("acme")[0]
		bad.set(status(500))
		for range 60 {
			get(rt, "acme")
		}
		time.Sleep(time.Minute)
		bad.set(hang)
		before := bad.hits.Load()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if r := get(rt, fmt.Sprint("t", i)); !r.ok() {
					t.Errorf("%+v", r)
				}
			})
		}
		wg.Wait()
		if n := bad.hits.Load() - before; n != 1 {
			t.Errorf("%d requests probed the member, want one", n)
		}
	})
}

// Retries went on for five hours under a total timeout of five seconds.
// https://github.com/linkerd/linkerd/issues/2369
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 9, 9)
		rt := c.transport(handhttp.Config{Attempts: 1000, Timeout: 5 * time.Second, TenantBurst: 1000, CellBurst: 1000})
		for _, do := range []http.HandlerFunc{status(503), hang, reset, status(503, "Retry-After", "3")} {
			c.all(do)
			r := get(rt, "acme")
			if r.took > 5*time.Second {
				t.Errorf("a call took %v, its limit is 5s: %v", r.took, r.err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			if r := send(rt, ctx, http.MethodGet, "acme", ""); r.took > 700*time.Millisecond {
				t.Errorf("a call took %v, its caller's limit is 700ms", r.took)
			}
			cancel()
		}
	})
}

// What was in flight was not counted until it was over, so that a hung
// member looked idle. https://github.com/zeromicro/go-zero/issues/5011
func TestWorkInFlightCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Attempts: 1})
		warm(t, rt, 2)
		for _, w := range c.workers {
			w.hits.Store(0)
		}
		c.workers["w00"].set(fine(8 * time.Second))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { get(rt, "acme") })
			time.Sleep(10 * time.Millisecond)
		}
		n := c.workers["w00"].hits.Load()
		if n > 3 {
			t.Errorf("%d of 100 requests went to the member that had answered none yet", n)
		}
		wg.Wait()
	})
}

// A body that is not done counts as in flight, too.
func TestOpenBodiesAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 1, 1)
		rt := c.transport(handhttp.Config{})
		req, _ := http.NewRequest(http.MethodGet, "http://cell/", nil)
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if n := rt.Members()[0].InFlight; n != 1 {
			t.Errorf("%d in flight before the body ended", n)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n := rt.Members()[0].InFlight; n != 0 {
			t.Errorf("%d in flight after the body ended", n)
		}
	})
}

// A request and its hedge both fell into a black hole: a third member is asked
// while there is time.
// What the cell's budget refused was not paid by the tenant's.
func TestRefusedRetryCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{CellBurst: 1, TenantBurst: 3, Floor: -1, Deposit: 1})
		c.all(status(503))
		for range 20 {
			get(rt, "acme") // the first retry empties the cell's bucket
		}
		spent := rt.Stats().Retries
		c.all(fine(time.Millisecond))
		get(rt, "other") // which pays one in again
		c.all(status(503))
		get(rt, "acme")
		if n := rt.Stats().Retries - spent; spent != 1 || n != 1 {
			t.Errorf("%d retries, then %d, want one each", spent, n)
		}
	})
}

// A hand that was fetched anew leaves a call all its attempts.
func TestNewHandLeavesAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		old := c.hands()
		c.config.Size = 4
		fresh := c.hands()
		rt := c.transport(handhttp.Config{Hands: old, Refresh: func(context.Context, string) (handhttp.Hands, error) { return fresh, nil }})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Cell-Hand") != fresh.Version() {
				status(421, "X-Cell-Hand", fresh.Version())(w, r)
				return
			}
			w.WriteHeader(503)
		})
		get(rt, "acme")
		if n := c.hits(); n != 4 {
			t.Errorf("%d requests, want the one with the old hand and three attempts", n)
		}
	})
}
