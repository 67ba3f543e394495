package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/orders"
	"github.com/cellway/cellway/internal/memnet"
)

// byNumber gives the tenants in turn to cell-001, cell-002 and so on.
func byNumber(cells int) func(cellway.TenantID) cellway.CellID {
	return func(t cellway.TenantID) cellway.CellID {
		var n int
		fmt.Sscanf(string(t), "tenant-%d", &n)
		return cellway.CellID(fmt.Sprintf("cell-%03d", n%cells+1))
	}
}

func newGenerator(t *testing.T, cfg Config, endpoints ...string) *Generator {
	t.Helper()
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetOwners(byNumber(4)); err != nil {
		t.Fatal(err)
	}
	if err := g.Use(Stack{Endpoints: endpoints}); err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs g while test does, and ends it.
func run(t *testing.T, g *Generator, test func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	test()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A fakeFleet answers as cells would that forget nothing; wrong may change an
// answer or answer itself.
type fakeFleet struct {
	mu    sync.Mutex
	seen  map[cellway.TenantID]int
	kept  map[string]orders.Order
	owner func(cellway.TenantID) cellway.CellID
	wrong func(w http.ResponseWriter, tenant cellway.TenantID, a *orders.Answer) (done bool)
}

func newFakeFleet() *fakeFleet {
	return &fakeFleet{seen: map[cellway.TenantID]int{}, kept: map[string]orders.Order{}, owner: byNumber(4)}
}

func (f *fakeFleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := cellway.TenantID(r.Header.Get("X-Tenant-Id"))
	a := orders.Answer{Cell: f.owner(tenant), Tenant: tenant}
	status := http.StatusOK
	f.mu.Lock()
	f.seen[tenant]++
	id := strings.TrimPrefix(r.URL.Path, "/orders/")
	switch {
	case r.Method == http.MethodPost:
		var o orders.Order
		_ = json.NewDecoder(r.Body).Decode(&o)
		o.Tenant, o.ID = tenant, fmt.Sprintf("%s.%d", tenant, f.seen[tenant])
		f.kept[o.ID] = o
		a.Order, status = &o, http.StatusCreated
	case id != r.URL.Path:
		a.Order = new(f.kept[id])
	default:
		a.Orders = []orders.Order{{Tenant: tenant}}
	}
	f.mu.Unlock()
	if f.wrong != nil && f.wrong(w, tenant, &a) {
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

// serve runs a handler in memory at http://NAME.
func serve(t *testing.T, n *memnet.Net, name string, h http.Handler) (stop func()) {
	srv := &http.Server{Handler: h}
	l := n.Listen(name + ":80")
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	return func() { _ = srv.Close(); <-done }
}

func closeRecord(t *testing.T, r *Record) Result {
	t.Helper()
	res, err := r.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestEveryTenantIsSentForInEachRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		fleet := newFakeFleet()
		defer serve(t, &n, "router", fleet)()
		g := newGenerator(t, Config{Tenants: Tenants(100), Dial: n.DialContext}, "http://router")
		run(t, g, func() {
			g.SetRate(100, 50)
			time.Sleep(333 * time.Millisecond)
			rec, err := g.Begin(time.Second)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Second + 5*time.Millisecond)
			synctest.Wait()
			if rec.Rounds() != 2 {
				t.Errorf("%d rounds, want 2", rec.Rounds())
			}
			res := closeRecord(t, rec)
			sum := 0
			for _, tr := range res.Tenants {
				sum += tr.Requests
				if tr.Requests < 2 || tr.Touched() || tr.Cell != byNumber(4)(tr.ID) {
					t.Errorf("%+v", tr)
				}
			}
			if sum < 295 || sum > 305 {
				t.Errorf("%d requests in 2 s, want 300", sum)
			}
			cells := 0
			for _, c := range res.Cells {
				cells += c.Requests
				if c.Tenants != 25 || c.Errors != 0 || c.Touched != 0 {
					t.Errorf("%+v", c)
				}
			}
			if cells != sum || len(res.Cells) != 4 {
				t.Errorf("cells saw %d of %d requests: %+v", cells, sum, res.Cells)
			}
			g.SetRate(0, 0)
		})
	})
}

func TestAStalledFleetIsSlowAndTheLoadGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		fleet := newFakeFleet()
		fleet.wrong = func(_ http.ResponseWriter, tenant cellway.TenantID, _ *orders.Answer) bool {
			if fleet.owner(tenant) == "cell-002" {
				time.Sleep(2 * time.Second)
			}
			return false
		}
		defer serve(t, &n, "router", fleet)()
		g := newGenerator(t, Config{Tenants: Tenants(100), Dial: n.DialContext}, "http://router")
		run(t, g, func() {
			g.SetRate(100, 0)
			rec, err := g.Begin(time.Second)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Second + 5*time.Millisecond)
			g.SetRate(0, 0)
			res := closeRecord(t, rec)
			for _, c := range res.Cells {
				if c.Requests != 50 {
					t.Errorf("%s: %d requests in 2 s, want 50", c.ID, c.Requests)
				}
				if want := map[bool]int{true: 25, false: 0}[c.ID == "cell-002"]; c.Touched != want || c.Slow != 2*want || c.Errors != 0 {
					t.Errorf("%s: %d touched, %d slow, want %d and %d", c.ID, c.Touched, c.Slow, want, 2*want)
				}
			}
			if p50 := res.Cells[1].P50; p50 < 2*time.Second || p50 > 2100*time.Millisecond {
				t.Errorf("p50 of the stalled cell %v, want 2 s", p50)
			}
		})
	})
}

func TestLatencyCountsFromWhenTheRequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		defer serve(t, &n, "router", newFakeFleet())()
		g := newGenerator(t, Config{Tenants: Tenants(4), Dial: n.DialContext}, "http://router")
		rec, err := g.Begin(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		g.SetRate(10, 0)
		time.Sleep(5 * time.Second) // the generator's own machine stalls
		run(t, g, func() {
			synctest.Wait()
			g.SetRate(0, 0)
			res := closeRecord(t, rec)
			worst, sum := time.Duration(0), 0
			for _, tr := range res.Tenants {
				worst = max(worst, tr.Worst)
				sum += tr.Requests
			}
			if sum != 50 || worst != 4900*time.Millisecond {
				t.Errorf("%d requests, the worst took %v; want 50 and 4.9s", sum, worst)
			}
		})
	})
}

func TestWrongAnswersAreFailures(t *testing.T) {
	for cause, wrong := range map[string]func(http.ResponseWriter, cellway.TenantID, *orders.Answer) bool{
		"answered by cell-009 instead of cell-002": func(_ http.ResponseWriter, _ cellway.TenantID, a *orders.Answer) bool {
			a.Cell = "cell-009"
			return false
		},
		"the answer is another tenant's": func(_ http.ResponseWriter, _ cellway.TenantID, a *orders.Answer) bool {
			a.Tenant = "tenant-0002"
			return false
		},
		"the answer is another order": func(_ http.ResponseWriter, _ cellway.TenantID, a *orders.Answer) bool {
			a.Order.Quantity++
			return false
		},
		"503 cell_drained": func(w http.ResponseWriter, _ cellway.TenantID, _ *orders.Answer) bool {
			w.WriteHeader(503)
			_ = json.NewEncoder(w).Encode(orders.Problem{Code: "cell_drained"})
			return true
		},
		"502": func(w http.ResponseWriter, _ cellway.TenantID, _ *orders.Answer) bool {
			w.WriteHeader(502)
			return true
		},
		"the answer is not JSON": func(w http.ResponseWriter, _ cellway.TenantID, _ *orders.Answer) bool {
			w.WriteHeader(201)
			return true
		},
		"connection broken": func(http.ResponseWriter, cellway.TenantID, *orders.Answer) bool {
			panic(http.ErrAbortHandler)
		},
		"no answer in time": func(http.ResponseWriter, cellway.TenantID, *orders.Answer) bool {
			time.Sleep(time.Minute)
			return false
		},
	} {
		t.Run(cause, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet.Net
				fleet := newFakeFleet()
				fleet.wrong = wrong
				defer serve(t, &n, "router", fleet)()
				g := newGenerator(t, Config{Tenants: Tenants(1), Dial: n.DialContext}, "http://router")
				run(t, g, func() {
					g.SetRate(10, 0)
					rec, err := g.Begin(time.Hour)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(105 * time.Millisecond)
					g.SetRate(0, 0)
					res := closeRecord(t, rec)
					if got := res.Cells[0].Causes; len(got) != 1 || got[cause] != 1 {
						t.Errorf("causes %v, want one %q", got, cause)
					}
					if tr := res.Tenants[0]; tr.First != cause || tr.Errors != 1 || !tr.Touched() {
						t.Errorf("%+v", tr)
					}
					if res.Cells[0].Errors != 1 || res.Cells[0].Touched != 1 {
						t.Errorf("%+v", res.Cells[0])
					}
				})
				time.Sleep(2 * time.Minute) // the sleepers wake
			})
		})
	}
}

func TestALostOrderIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		var lose atomic.Bool
		fleet := newFakeFleet()
		fleet.wrong = func(_ http.ResponseWriter, _ cellway.TenantID, a *orders.Answer) bool {
			if a.Order != nil && lose.Load() {
				a.Order.Quantity = 0
			}
			if lose.Load() {
				a.Orders = nil
			}
			return false
		}
		defer serve(t, &n, "router", fleet)()
		g := newGenerator(t, Config{Tenants: Tenants(1), Dial: n.DialContext}, "http://router")
		run(t, g, func() {
			g.SetRate(100, 0)
			time.Sleep(time.Second)
			lose.Store(true)
			rec, err := g.Begin(time.Second)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			g.SetRate(0, 0)
			got := closeRecord(t, rec).Cells[0].Causes
			for _, cause := range []string{"the order has changed", "the tenant's orders have gone", "the answer is another order"} {
				if got[cause] == 0 {
					t.Errorf("never found: %s", cause)
				}
			}
		})
	})
}

func TestTheOtherRouterIsTriedAfterAConnectFailureOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		fleet := newFakeFleet()
		defer serve(t, &n, "router-1", fleet)()
		g := newGenerator(t, Config{Tenants: Tenants(10), Dial: n.DialContext}, "http://router-1", "http://router-2")
		run(t, g, func() {
			g.SetRate(10, 0)
			rec, err := g.Begin(time.Second)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Second + 5*time.Millisecond)
			res := closeRecord(t, rec)
			if res.Rerouted != 10 {
				t.Errorf("%d rerouted, want each second one of 20", res.Rerouted)
			}
			for _, c := range res.Cells {
				if c.Errors != 0 {
					t.Errorf("%+v", c)
				}
			}
			stop := serve(t, &n, "router-2", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
			defer stop()
			if rec, err = g.Begin(time.Second); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2*time.Second + 5*time.Millisecond)
			g.SetRate(0, 0)
			res = closeRecord(t, rec)
			failed := 0
			for _, c := range res.Cells {
				failed += c.Causes["503"]
			}
			if failed != 10 || res.Rerouted != 0 {
				t.Errorf("%d failed and %d rerouted, want 10 and 0", failed, res.Rerouted)
			}
		})
	})
}

func TestAFullCellCostsNoOtherCellARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		fleet := newFakeFleet()
		fleet.wrong = func(_ http.ResponseWriter, tenant cellway.TenantID, _ *orders.Answer) bool {
			if fleet.owner(tenant) == "cell-003" {
				time.Sleep(time.Second)
			}
			return false
		}
		defer serve(t, &n, "router", fleet)()
		g := newGenerator(t, Config{Tenants: Tenants(100), Dial: n.DialContext, PerCell: 5}, "http://router")
		run(t, g, func() {
			g.SetRate(100, 0)
			rec, err := g.Begin(time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + 5*time.Millisecond)
			g.SetRate(0, 0)
			for _, c := range closeRecord(t, rec).Cells {
				want := 0
				if c.ID == "cell-003" {
					want = 20
				}
				if c.Requests != 25 || c.Errors != want {
					t.Errorf("%s: %d of %d failed, want %d of 25: %v", c.ID, c.Errors, c.Requests, want, c.Causes)
				}
			}
		})
	})
}

func TestASurgeIsPoisonFromOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		poison := map[string]int{}
		defer serve(t, &n, "router", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var o orders.Order
			_ = json.NewDecoder(r.Body).Decode(&o)
			poison[r.Header.Get("X-Tenant-Id")+" "+o.Item]++
		}))()
		g := newGenerator(t, Config{Tenants: Tenants(100), Dial: n.DialContext}, "http://router")
		run(t, g, func() {
			if err := g.Surge("tenant-0007", orders.PoisonItem, 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second + 5*time.Millisecond)
			if err := g.Surge("tenant-0007", "", 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		})
		if len(poison) != 1 || poison["tenant-0007 poison"] != 10 {
			t.Errorf("got %v", poison)
		}
		if err := g.Surge("nobody", "", 1); !errors.Is(err, cellway.ErrNotFound) {
			t.Errorf("surge of nobody: %v", err)
		}
	})
}

// TestAgainstRealCells runs real servers: two front ends that send each tenant
// to the cell of its own, and lose one of the cells.
func TestAgainstRealCells(t *testing.T) {
	cells := map[cellway.CellID]*httptest.Server{}
	for i := range 4 {
		id := cellway.CellID(fmt.Sprintf("cell-%03d", i+1))
		store, err := orders.OpenStore(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s, err := orders.New(orders.Config{Cell: id, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		cells[id] = httptest.NewServer(s)
		defer cells[id].Close()
	}
	owner := byNumber(4)
	front := func() *httptest.Server {
		return httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				u, _ := url.Parse(cells[owner(cellway.TenantID(r.In.Header.Get("X-Tenant-Id")))].URL)
				r.SetURL(u)
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(503) },
		})
	}
	one, two := front(), front()
	defer one.Close()
	defer two.Close()
	g := newGenerator(t, Config{Tenants: Tenants(40)}, one.URL, two.URL)
	run(t, g, func() {
		g.SetRate(400, 100)
		measure := func() Result {
			rec, err := g.Begin(5 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for rec.Rounds() < 3 {
				<-tick.C
			}
			return closeRecord(t, rec)
		}
		for _, c := range measure().Cells {
			if c.Errors != 0 || c.Touched != 0 || c.Requests < 30 {
				t.Errorf("all well: %+v", c)
			}
		}
		cells["cell-003"].CloseClientConnections()
		cells["cell-003"].Close()
		for _, c := range measure().Cells {
			if lost := c.ID == "cell-003"; lost != (c.Errors > 0) || lost != (c.Touched == 10) {
				t.Errorf("one lost: %+v", c)
			}
		}
	})
	if len(g.Live()) != 4 {
		t.Errorf("live: %+v", g.Live())
	}
}

func TestLoadIsChecked(t *testing.T) {
	if _, err := New(Config{}); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("without tenants: %v", err)
	}
	g, err := New(Config{Tenants: Tenants(2)})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Use(Stack{}); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("without endpoints: %v", err)
	}
	if _, err := g.Begin(time.Second); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a record without owners: %v", err)
	}
	if err := g.SetOwners(func(cellway.TenantID) cellway.CellID { return "" }); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("a tenant without an owner: %v", err)
	}
}

// The generator owns up to being late itself.
func TestTheLoadTellsHowLateItWasItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		defer serve(t, &n, "router", newFakeFleet())()
		g := newGenerator(t, Config{Tenants: Tenants(4), Dial: n.DialContext}, "http://router")
		rec, err := g.Begin(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		g.SetRate(10, 0)
		time.Sleep(2 * time.Second) // the generator's own machine stalls
		run(t, g, func() {
			synctest.Wait()
			g.SetRate(0, 0)
			if res := closeRecord(t, rec); res.Lag < 1800*time.Millisecond || res.Lag > 2*time.Second {
				t.Errorf("late by %v", res.Lag)
			}
		})
	})
}
