package cellhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client/cellhttp"
)

func TestDirect(t *testing.T) {
	for name, cfg := range map[string]func(*fleet) cellhttp.Config{
		"control plane": func(f *fleet) cellhttp.Config { return cellhttp.Config{Locate: f.locate} },
		"router":        func(*fleet) cellhttp.Config { return cellhttp.Config{Router: "http://router:80", Endpoints: endpoints} },
		"both":          func(f *fleet) cellhttp.Config { return cellhttp.Config{Locate: f.locate, Router: "http://router:80"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				rt := f.transport(cfg(f))
				if code, _, err := do(rt, http.MethodPost, "acme", "first"); code != 200 {
					t.Fatal(code, err)
				}
				f.count("router")
				asked := f.asked
				start := time.Now()
				for range 50 {
					want(t, rt, "cell-001")
				}
				if time.Since(start) != 0 || f.asked != asked || f.count("router") != 0 {
					t.Errorf("50 requests took %v, %d questions", time.Since(start), f.asked-asked)
				}
			})
		})
	}
}

// Lasting: for a month, over a restart, with the control plane and all routers
// gone or, what is worse, hanging.
func TestLasting(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			cfg := cellhttp.Config{Locate: f.locate, Router: "http://router:80"}
			rt := f.transport(cfg)
			want(t, rt, "cell-001")
			f.stop("router")
			f.set(func() { f.dark, f.swallow = true, hangs })
			for range 30 {
				time.Sleep(24 * time.Hour)
				start := time.Now()
				want(t, rt, "cell-001")
				if d := time.Since(start); d > 0 {
					t.Errorf("a request waited %v", d)
				}
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			saved, err := json.Marshal(rt.Places())
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(saved, &cfg.Known); err != nil {
				t.Fatal(err)
			}
			want(t, f.transport(cfg), "cell-001")
			time.Sleep(time.Minute)
		})
	}
}

// The same for a client that only has a router: its looks go with requests.
func TestLastingWithRouterOnly(t *testing.T) {
	for name, break_ := range map[string]func(f *fleet){
		"gone": func(f *fleet) { f.stop("router") },
		"not ready": func(f *fleet) {
			f.stop("router")
			f.serve("router", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
		},
		"hanging": func(f *fleet) {
			f.stop("router")
			f.serve("router", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				rt := f.transport(cellhttp.Config{Router: "http://router:80", Endpoints: endpoints})
				want(t, rt, "cell-001 by router")
				break_(f)
				for range 20 {
					time.Sleep(time.Hour)
					want(t, rt, "cell-001")
					want(t, rt, "cell-001")
				}
				if n := f.count("router"); n > 21 {
					t.Errorf("the router was asked %d times in 20 hours", n)
				}
			})
		})
	}
}

func TestLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate})
		want(t, rt, "cell-001")
		for range 60 * 60 {
			time.Sleep(time.Second)
			want(t, rt, "cell-001")
		}
		time.Sleep(time.Second)
		if n := f.asked; n < 9 || n > 16 {
			t.Errorf("%d questions in an hour, want one in about five minutes", n)
		}
		f.set(func() { f.owner, f.epoch = "cell-002", 8 })
		// Nobody uses the key until the time has come; then the look comes first.
		time.Sleep(10 * time.Minute)
		want(t, rt, "cell-002") // refused by cell-001, which tells
		if p := rt.Places(); len(p) != 1 || p[0].Cell != "cell-002" || p[0].Epoch != 8 {
			t.Errorf("%+v", p)
		}
	})
}

func TestLooksAgainThroughRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Router: "http://router:80", Endpoints: endpoints})
		want(t, rt, "cell-001 by router")
		f.set(func() { f.owner, f.epoch = "cell-002", 8 })
		time.Sleep(10 * time.Minute)
		if _, got, err := do(rt, http.MethodPost, "acme", "order"); got != "cell-002 order" {
			t.Errorf("an unsafe request: %q, %v", got, err)
		}
		f.set(func() { f.owner, f.epoch = "cell-001", 9 })
		time.Sleep(10 * time.Minute)
		want(t, rt, "cell-001 by router")
		want(t, rt, "cell-001")
	})
}

// A key moves: the next request is refused, and follows.
func TestFollowsAMove(t *testing.T) {
	for name, tt := range map[string]struct {
		tells bool
		cfg   func(f *fleet) cellhttp.Config
		got   string
	}{
		"told by the guard":         {true, func(f *fleet) cellhttp.Config { return cellhttp.Config{Locate: f.locate, Endpoints: endpoints} }, "cell-002 order"},
		"told, control plane knows": {true, func(f *fleet) cellhttp.Config { return cellhttp.Config{Locate: f.locate} }, "cell-002 order"},
		"not told, control plane":   {false, func(f *fleet) cellhttp.Config { return cellhttp.Config{Locate: f.locate} }, "cell-002 order"},
		"not told, router": {false, func(*fleet) cellhttp.Config {
			return cellhttp.Config{Router: "http://router:80", Endpoints: endpoints}
		}, "cell-002 by router order"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				rt := f.transport(tt.cfg(f))
				do(rt, http.MethodGet, "acme", "")
				f.set(func() { f.owner, f.epoch, f.tells = "cell-002", 8, tt.tells })
				f.count("cell-001")
				code, got, err := do(rt, http.MethodPost, "acme", "order")
				if code != 200 || got != tt.got || err != nil {
					t.Errorf("%d %q, %v; want %q", code, got, err, tt.got)
				}
				if n := f.count("cell-001"); n != 1 {
					t.Errorf("the old cell was asked %d times", n)
				}
				want(t, rt, "cell-002")
				if n := f.count("cell-001"); n != 0 {
					t.Errorf("the old cell was asked %d times afterwards", n)
				}
			})
		})
	}
}

// Two cells that send a request to each other don't get it more than once each.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate, Endpoints: endpoints})
		want(t, rt, "cell-001")
		for _, cell := range []string{"cell-001", "cell-002"} {
			f.stop(cell)
			f.serve(cell, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Cell-Epoch", "9")
				w.Header().Set("X-Cell-Moved-To", map[string]string{"cell-001": "cell-002", "cell-002": "cell-001"}[cell])
				w.WriteHeader(421)
			})
		}
		f.base.CloseIdleConnections()
		f.count("cell-001")
		code, _, err := do(rt, http.MethodGet, "acme", "")
		if a, b := f.count("cell-001"), f.count("cell-002"); code != 421 || a != 1 || b != 1 || err != nil {
			t.Errorf("%d, %v after %d and %d requests; want 421 after one each", code, err, a, b)
		}
		// What can't be sent again is the caller's to repeat, and goes right then.
		f.stop("cell-002")
		f.serve("cell-002", f.guarded("cell-002"))
		f.set(func() { f.owner, f.epoch = "cell-002", 20 })
		req, _ := http.NewRequest(http.MethodPost, "http://api/", io.MultiReader(strings.NewReader("order")))
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 421 && resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		want(t, rt, "cell-002")
	})
}

// A 421 of the application is no refusal of a guard.
func TestApplicationsOwn421(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate, Router: "http://router:80"})
		want(t, rt, "cell-001")
		f.stop("cell-001")
		f.serve("cell-001", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(421) })
		f.base.CloseIdleConnections()
		asked := f.asked
		if code, _, err := do(rt, http.MethodGet, "acme", ""); code != 421 || err != nil || f.asked != asked {
			t.Errorf("%d, %v after %d questions", code, err, f.asked-asked)
		}
	})
}

// A control plane's replica that is behind teaches nothing.
func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.set(func() { f.owner, f.epoch = "cell-002", 8 })
		rt := f.transport(cellhttp.Config{Locate: func(ctx context.Context, key cellway.Key) (api.Location, error) {
			return api.Location{Key: key, Cell: "cell-001", Epoch: 7, Endpoints: endpoints("cell-001")}, nil
		}, Endpoints: endpoints})
		for range 20 {
			want(t, rt, "cell-002")
			time.Sleep(10 * time.Minute)
		}
		if n := f.count("cell-001"); n != 1 {
			t.Errorf("the old cell was asked %d times, want once", n)
		}
	})
}

// Endpoints that are gone: another one of the cell, or the router, if nothing
// was sent.
func TestUnreachableEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate, Endpoints: func(cellway.CellID) []string { return []string{"http://gone:80", one} }})
		for range 10 {
			if code, got, err := do(rt, http.MethodPost, "acme", "order"); code != 200 || got != "cell-001 order" {
				t.Fatal(code, got, err)
			}
		}
		if n := f.count("cell-001"); n != 10 {
			t.Errorf("10 orders arrived %d times", n)
		}
		rt = f.transport(cellhttp.Config{Locate: f.locate, Router: "http://router:80", Endpoints: func(cellway.CellID) []string { return []string{"http://gone:80"} }})
		if code, got, err := do(rt, http.MethodPost, "acme", "order"); code != 200 || got != "cell-001 by router order" {
			t.Fatal(code, got, err)
		}
		f.stop("router")
		_, _, err := do(rt, http.MethodGet, "acme", "")
		if err == nil || !strings.Contains(err.Error(), "gone:80") || !strings.Contains(err.Error(), "router") {
			t.Errorf("error %v, want one that names what was tried", err)
		}
	})
}

// A thousand requests for a new key ask once, and a control plane that hangs is
// not waited for by each of them.
func TestAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate, Router: "http://router:80"})
		all := func(key string) {
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					if code, _, err := do(rt, http.MethodGet, key, ""); code != 200 {
						t.Error(code, err)
					}
				})
			}
			wg.Wait()
		}
		all("acme")
		if f.asked != 1 {
			t.Errorf("%d questions", f.asked)
		}
		f.set(func() { f.swallow = true })
		start := time.Now()
		all("other")
		if d := time.Since(start); d > 2*time.Second || f.asked > 2 {
			t.Errorf("took %v and %d questions", d, f.asked-1)
		}
	})
}

func TestUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate})
		if _, _, err := do(rt, http.MethodGet, "nobody", ""); !errors.Is(err, cellway.ErrNotFound) {
			t.Error(err)
		}
		for _, key := range []string{"", "a/b/c", "ä"} {
			if _, _, err := do(rt, http.MethodPost, key, "x"); !errors.Is(err, cellway.ErrInvalid) {
				t.Errorf("key %q: %v", key, err)
			}
		}
		want(t, rt, "cell-001")
		rt = f.transport(cellhttp.Config{Locate: f.locate, Keys: 10})
		for i := range 1000 {
			do(rt, http.MethodGet, fmt.Sprint("t", i), "")
		}
		if n := len(rt.Places()); n < 10 || n > 20 {
			t.Errorf("%d places are remembered, want 10 to 20", n)
		}
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	locate := func(context.Context, cellway.Key) (api.Location, error) { return api.Location{}, nil }
	for _, cfg := range []cellhttp.Config{
		{},
		{Router: "http://router:80"},
		{Router: "router", Locate: locate},
		{Locate: locate, Recheck: -1},
		{Locate: locate, Known: []cellhttp.Place{{Key: "acme", Cell: "cell-001"}}},
		{Locate: locate, Known: []cellhttp.Place{{Key: "acme", Cell: "Cell", Endpoints: []string{two}}}},
		{Locate: locate, Known: []cellhttp.Place{{Cell: "cell-001", Endpoints: []string{two}}}},
		{Locate: locate, Known: []cellhttp.Place{{Key: "acme", Cell: "cell-001", Endpoints: []string{"cell"}}}},
	} {
		if _, err := cellhttp.New(cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A guard that knows less than the client sends nobody anywhere.
func TestGuardThatIsBehind(t *testing.T) {
	for _, epoch := range []string{"0", "3", "x"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t)
			rt := f.transport(cellhttp.Config{Locate: f.locate, Endpoints: endpoints})
			want(t, rt, "cell-001")
			f.stop("cell-001")
			f.serve("cell-001", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Cell-Epoch", epoch)
				w.Header().Set("X-Cell-Moved-To", "cell-002")
				w.WriteHeader(421)
			})
			f.base.CloseIdleConnections()
			if code, _, err := do(rt, http.MethodGet, "acme", ""); code != 421 || err != nil || f.count("cell-002") != 0 {
				t.Errorf("epoch %s: %d, %v; want the refusal", epoch, code, err)
			}
			if p := rt.Places(); p[0].Cell != "cell-001" {
				t.Errorf("epoch %s: %+v", epoch, p)
			}
		})
	}
}
