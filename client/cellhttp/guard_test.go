package cellhttp_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/client/cellhttp"
	"github.com/cellway/cellway/guard"
)

// The real guard of the old cell tells where the key has gone, and the client
// goes there, once, with its order.
func TestFollowsTheGuardOfTheOldCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		var moved atomic.Bool
		for _, cell := range []cellway.CellID{"cell-001", "cell-002"} {
			h, err := guard.Handler(guard.Config{
				Cell: cell, Direct: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
				DirectKey: func(f guard.Fields) cellway.Key { return cellway.Key(f.Values("X-Tenant-Id")[0]) },
				Moved: func(key cellway.Key) (cellway.CellID, cellway.Epoch, bool) {
					return "cell-002", 8, cell == "cell-001" && key == "acme" && moved.Load()
				},
			}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, cell) }))
			if err != nil {
				t.Fatal(err)
			}
			f.stop(string(cell))
			f.serve(string(cell), h.ServeHTTP)
		}
		rt := f.transport(cellhttp.Config{Locate: f.locate, Endpoints: endpoints})
		want(t, rt, "cell-001")
		moved.Store(true)
		for i := range 3 {
			code, got, err := do(rt, http.MethodPost, "acme", "order")
			if code != 200 || got != "cell-002" || err != nil {
				t.Fatalf("order %d: %d %q, %v; want it in cell-002", i, code, got, err)
			}
		}
		if a, b := f.count("cell-001"), f.count("cell-002"); a != 2 || b != 3 {
			t.Errorf("%d requests to the old cell and %d to the new one; want the first, the refused one, then 3", a, b)
		}
		if p := rt.Places(); len(p) != 1 || p[0].Cell != "cell-002" || p[0].Epoch != 8 {
			t.Errorf("known is %+v", p)
		}
	})
}

// Requests that are refused together ask once where the key is; and a cell that
// refuses what the control plane says is its own makes nobody ask without an end.
func TestRefusalsAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: f.locate})
		want(t, rt, "cell-001")
		f.set(func() { f.owner, f.epoch, f.tells, f.asked = "cell-002", 8, false, 0 })
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if code, got, err := do(rt, http.MethodGet, "acme", ""); code != 200 || got != "cell-002" {
					t.Error(code, got, err)
				}
			})
		}
		wg.Wait()
		if f.asked != 1 {
			t.Errorf("%d questions for a thousand refusals, want one", f.asked)
		}
		f.stop("cell-002")
		f.serve("cell-002", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Cell-Epoch", "8")
			w.WriteHeader(http.StatusMisdirectedRequest)
		})
		f.base.CloseIdleConnections()
		f.set(func() { f.asked = 0 })
		began := time.Now()
		for range 200 {
			if code, _, err := do(rt, http.MethodGet, "acme", ""); code != 421 {
				t.Fatal(code, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if most := int(time.Since(began)/time.Second) + 2; f.asked > most {
			t.Errorf("%d questions in %v, want one a second", f.asked, time.Since(began))
		}
	})
}
