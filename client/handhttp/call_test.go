package handhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/shuffle"
)

// A tenant whose requests break workers is sent once after the second one, and
// nobody else has less of a cell for it.
func TestPoisonTenantIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") == "poison" {
				reset(w, r)
				return
			}
			fine(10*time.Millisecond)(w, r)
		})
		warm(t, rt, 40)
		before := c.hits()
		r := get(rt, "poison")
		e := stopOf(t, r.err, handhttp.ErrPoison)
		if len(e.Attempts) != 2 {
			t.Errorf("%d attempts of the first request, want two: %v", len(e.Attempts), e)
		}
		for range 9 {
			stopOf(t, get(rt, "poison").err, handhttp.ErrPoison)
		}
		if n := c.hits() - before; n != 11 {
			t.Errorf("10 requests of the poison tenant reached workers %d times, want 11", n)
		}
		time.Sleep(time.Minute)
		stopOf(t, get(rt, "poison").err, handhttp.ErrAttempts) // others' successes are too old to tell
	})
}

// Contained: failures of one tenant set nobody aside for others.
func TestContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 6, 6)
		rt := c.transport(handhttp.Config{})
		kinds := []http.HandlerFunc{reset, hang, status(500)}
		for i, bad := range kinds {
			c.all(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Tenant-Id") == fmt.Sprint("poison-", i) {
					bad(w, r)
					return
				}
				fine(10*time.Millisecond)(w, r)
			})
			warm(t, rt, 10)
			for range 200 {
				get(rt, fmt.Sprint("poison-", i))
				get(rt, "acme")
			}
		}
		if n := rt.Stats().SetAside; n != 0 {
			t.Errorf("members were set aside %d times for tenants whose requests nobody can serve", n)
		}
	})
}

// One tenant alone may convict a member if its requests succeed elsewhere.
func TestSingleTenantFindsBadMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{})
		c.workers["w00"].set(status(500))
		for range 200 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if n := c.workers["w00"].hits.Load(); n > 8 {
			t.Errorf("the bad member was asked %d times in 200 requests", n)
		}
	})
}

// Budgeted: however long the cell is broken, and whoever asks.
func TestBudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		c.all(fine(time.Millisecond))
		for i := range 500 {
			get(rt, fmt.Sprint("t", i%50))
		}
		c.all(status(500))
		before, start := rt.Stats(), time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for range 100 {
					get(rt, fmt.Sprint("t", i))
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		n, most := rt.Stats().Retries-before.Retries, 100+uint64(time.Since(start).Seconds())+1
		t.Logf("5,000 requests in %v, all failing: %d retries, amplification %.3f", time.Since(start), n, 1+float64(n)/5000)
		if n > most {
			t.Errorf("%d retries, want %d at most", n, most)
		}
	})
}

func TestRetryAfterIsObeyedAndClamped(t *testing.T) {
	for _, tt := range []struct {
		after    string
		min, max time.Duration
	}{
		{"2", 2 * time.Second, 2050 * time.Millisecond},
		{"3600", 5 * time.Second, 5050 * time.Millisecond},
		{"0", 0, 50 * time.Millisecond},
		{"soon", 0, 50 * time.Millisecond},
		{"-5", 0, 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCell(t, 2, 2)
			rt := c.transport(handhttp.Config{})
			var n atomic.Int64
			c.all(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 1 {
					status(503, "Retry-After", tt.after)(w, r)
				}
			})
			if r := get(rt, "acme"); !r.ok() || r.took < tt.min || r.took > tt.max {
				t.Errorf("Retry-After: %s: %+v, want success after %v to %v", tt.after, r, tt.min, tt.max)
			}
		})
	}
}

// A limit is the tenant's: nobody else of its hand is asked, and not before
// the time that the answer gives.
func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{})
		c.all(status(429, "Retry-After", "1"))
		r := get(rt, "acme")
		asked := 0
		for _, w := range c.workers {
			if w.hits.Load() > 0 {
				asked++
			}
		}
		if r.status != 429 || asked != 1 || c.hits() != 3 || r.took < 2*time.Second {
			t.Errorf("%+v: %d members were asked %d times", r, asked, c.hits())
		}
		for _, header := range [][]string{nil, {"Retry-After", "600"}} {
			c.all(status(429, header...))
			before := c.hits()
			if r := get(rt, "acme"); r.status != 429 || c.hits() != before+1 || r.took > 0 {
				t.Errorf("%v: %+v after %d attempts, want the answer at once", header, r, c.hits()-before)
			}
		}
		if n := rt.Stats().SetAside; n != 0 {
			t.Errorf("%d members set aside for a tenant's limit", n)
		}
	})
}

func TestWhatMayBeRepeated(t *testing.T) {
	big := strings.Repeat("x", 64<<10+1)
	for name, tt := range map[string]struct {
		method, body string
		header       []string
		do           http.HandlerFunc
		cfg          handhttp.Config
		attempts     int64
		keys         bool
	}{
		"GET on a 500":                    {method: "GET", do: status(500), attempts: 3},
		"GET on 501":                      {method: "GET", do: status(501), attempts: 1},
		"GET on 400":                      {method: "GET", do: status(400), attempts: 1},
		"PUT with a body":                 {method: "PUT", body: "x", do: status(502), attempts: 3},
		"PUT with 64 KiB":                 {method: "PUT", body: big[1:], do: status(502), attempts: 3},
		"PUT with more":                   {method: "PUT", body: big, do: status(502), attempts: 1},
		"POST on a 500":                   {method: "POST", body: "x", do: status(500), attempts: 1},
		"POST on a broken connection":     {method: "POST", body: "x", do: reset, attempts: 1},
		"POST on a 503":                   {method: "POST", body: "x", do: status(503), attempts: 1},
		"POST on a 503 with Retry-After":  {method: "POST", body: "x", do: status(503, "Retry-After", "1"), attempts: 3},
		"POST with a key":                 {method: "POST", body: "x", header: []string{"Idempotency-Key", "k1"}, do: status(500), attempts: 3, keys: true},
		"POST with a drawn key":           {method: "POST", body: "x", cfg: handhttp.Config{DrawKeys: true}, do: status(500), attempts: 3, keys: true},
		"one attempt only":                {method: "GET", cfg: handhttp.Config{Attempts: 1}, do: status(500), attempts: 1},
		"a misdirection that isn't ours":  {method: "GET", do: status(421), attempts: 1},
		"an old hand, and nobody to ask":  {method: "GET", do: status(421, "X-Cell-Hand", "2"), attempts: 1},
		"more attempts than members":      {method: "GET", cfg: handhttp.Config{Attempts: 7}, do: status(500), attempts: 7},
		"a body when none may be resent":  {method: "PUT", body: "x", cfg: handhttp.Config{ReplayBytes: -1}, do: status(500), attempts: 1},
		"no body when none may be resent": {method: "PUT", cfg: handhttp.Config{ReplayBytes: -1}, do: status(500), attempts: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, 5, 5)
				rt := c.transport(tt.cfg)
				c.all(tt.do)
				send(rt, t.Context(), tt.method, "acme", tt.body, tt.header...)
				if c.hits() != tt.attempts {
					t.Errorf("%d attempts, want %d", c.hits(), tt.attempts)
				}
				keys := map[string]int{}
				for _, w := range c.workers {
					for _, s := range w.seen {
						keys[s.key]++
						if s.body != tt.body {
							t.Errorf("attempt %s had %d bytes, want %d", s.attempt, len(s.body), len(tt.body))
						}
					}
				}
				if len(keys) != 1 || tt.keys == (keys[""] > 0) {
					t.Errorf("keys: %v", keys)
				}
			})
		})
	}
}

// A POST may go elsewhere if it never left.
func TestUnsentIsAlwaysRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{})
		c.stop("w00")
		c.drop.Store("w01", true)
		synctest.Wait()
		for range 20 {
			if r := send(rt, t.Context(), http.MethodPost, "acme", "order"); !r.ok() || r.took > time.Second {
				t.Fatalf("%+v", r)
			}
		}
		if n := c.workers["w02"].hits.Load(); n != 20 {
			t.Errorf("20 orders arrived %d times", n)
		}
	})
}

// Honest: the error of a call has all that happened.
func TestHonest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{Floor: -1, TenantBurst: 1, Deposit: -1})
		cause := errors.New("no route to this rack")
		c.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, cause }
		r := get(rt, "acme")
		e := stopOf(t, r.err, handhttp.ErrBudget)
		if len(e.Attempts) != 2 || !errors.Is(e, cause) || e.Timeout() {
			t.Errorf("%v: want two attempts, and the cause kept when the budget ended them", e)
		}
		for _, want := range []string{`tenant "acme"`, "budget is spent", "no route to this rack", e.Attempts[0].Member, e.Attempts[1].Member} {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("error %q lacks %q", e, want)
			}
		}
		if ne, ok := errors.AsType[net.Error](r.err); !ok || ne.Timeout() {
			t.Errorf("%v is no net.Error, or a timeout", r.err)
		}
	})
}

func TestCallerGoesAwayDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{})
		c.all(status(503, "Retry-After", "4"))
		before := rt.Stats().Budget
		ctx, cancel := context.WithCancelCause(t.Context())
		bored := errors.New("bored")
		time.AfterFunc(time.Second, func() { cancel(bored) })
		e := stopOf(t, send(rt, ctx, http.MethodGet, "acme", "").err, handhttp.ErrAbandoned)
		if !errors.Is(e, bored) || rt.Stats().Budget != before {
			t.Errorf("%v, budget %v, want %v again", e, rt.Stats().Budget, before)
		}
	})
}

// The time without an answer is bounded, the time of an answer is not, but its
// silence is.
func TestSilenceInTheMiddleOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 1, 1)
		rt := c.transport(handhttp.Config{IdleTimeout: 3 * time.Second})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("half"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		if r := get(rt, "acme"); !errors.Is(r.err, handhttp.ErrIdle) || r.body != "half" || r.took > 4*time.Second {
			t.Errorf("%+v", r)
		}
		// A caller that is slow to read is not cut.
		c.all(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(strings.Repeat("x", 1<<20))) })
		req, _ := http.NewRequest(http.MethodGet, "http://cell/", nil)
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(time.Minute)
		if b, err := io.ReadAll(resp.Body); err != nil || len(b) != 1<<20 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}

// Writers and readers may know different hands for a while: calls keep the one
// that they began with, and a member's word fetches the new one once.
func TestNewHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		old := c.hands()
		oldHand := c.hand("acme")
		c.config.Size = 4 // grown: the old hand is part of the new
		fresh := c.hands()
		newHand := c.hand("acme")
		for i, w := range oldHand {
			if newHand[i] != w {
				t.Fatalf("the grown hand does not begin with the old one")
			}
		}
		fetched := 0
		rt := c.transport(handhttp.Config{Hands: old, Refresh: func(_ context.Context, version string) (handhttp.Hands, error) {
			fetched++
			if version != fresh.Version() {
				t.Errorf("asked for version %s, want %s", version, fresh.Version())
			}
			return fresh, nil
		}})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Cell-Hand") != fresh.Version() {
				status(421, "X-Cell-Hand", fresh.Version())(w, r)
				return
			}
			fine(time.Millisecond)(w, r)
		})
		for range 3 {
			if r := send(rt, t.Context(), http.MethodPost, "acme", "order"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if s := rt.Stats(); fetched != 1 || rt.Version() != fresh.Version() || s.Misdealt != 1 || s.Retries != 0 || s.Failures != 0 {
			t.Errorf("fetched %d times, version %.8s, %+v", fetched, rt.Version(), s)
		}
		// A worker that is ahead of everybody is not asked about in a hot loop.
		c.all(status(421, "X-Cell-Hand", "ahead"))
		for range 50 {
			if r := get(rt, "acme"); r.status != 421 {
				t.Fatalf("%+v", r)
			}
		}
		if fetched > 2 {
			t.Errorf("fetched %d times at once", fetched)
		}
	})
}

func TestReceivedHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 4, 2)
		rt := c.transport(handhttp.Config{Hands: &handhttp.Received{Of: "7", Tenants: map[string][]handhttp.Member{
			"acme": {{ID: "w03", Zone: "a", URL: c.urls["w03"]}, {ID: "w01", Zone: "b", URL: c.urls["w01"]}},
			"lost": {{ID: "w03", URL: "w03:80"}},
			"none": {},
		}}})
		if r := get(rt, "acme"); !r.ok() || c.workers["w03"].hits.Load()+c.workers["w01"].hits.Load() != 1 {
			t.Errorf("%+v", r)
		}
		stopOf(t, get(rt, "other").err, handhttp.ErrNoHand)
		stopOf(t, get(rt, "none").err, handhttp.ErrNoHand)
		stopOf(t, get(rt, "lost").err, shuffle.ErrInvalid)
		stopOf(t, get(rt, "").err, handhttp.ErrNoTenant)
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	s, err := shuffle.NewSnapshot(shuffle.Config{Size: 1, Workers: shuffle.Even("w1")})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"", "w1:80", "ftp://w1", "http://w1/path", "http://u:p@w1", "http://w1?x"} {
		if _, err := handhttp.NewDealt(s, map[string]string{"w1": url}); !errors.Is(err, shuffle.ErrInvalid) || !strings.Contains(err.Error(), "w1") {
			t.Errorf("address %q: %v", url, err)
		}
	}
	hands, err := handhttp.NewDealt(s, map[string]string{"w1": "http://w1:80"})
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []handhttp.Config{{}, {Hands: hands, Attempts: -1}, {Hands: hands, Timeout: -1}} {
		if _, err := handhttp.New(cfg); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// Tenants come and go; what is kept of them is bounded.
func TestTenantsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 6, 2)
		rt := c.transport(handhttp.Config{Tenants: 128})
		for i := range 2000 {
			if r := get(rt, fmt.Sprint("t", i)); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if n := rt.Remembered(); n > 256 {
			t.Errorf("%d tenants are remembered, want about 128", n)
		}
	})
}
