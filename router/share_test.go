package router

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

// Requests for a tunnel that never comes fill their own cell, not the router.
func TestCellThatHangsOnUpgradesStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *Config) { c.MaxInFlight = 40 }, pinned("hung", "fine"))
		b.serve(1, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		b.serve(2, echo(2))
		b.front()
		for range 60 {
			c, err := b.net.DialContext(t.Context(), "tcp", "front:80")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: front\r\nX-Tenant-Id: hung\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			go io.Copy(io.Discard, c)
		}
		synctest.Wait()
		if rec := b.ask(request("GET", "/", "fine")); rec.Code != 200 {
			t.Errorf("the other cell: got %d %s", rec.Code, rec.Body)
		}
		time.Sleep(time.Second)
		if f := figures(t, b.rt, "cell-001").Bulkhead; f.InFlight != 10 || f.Tunnels != 0 {
			t.Errorf("%d in flight and %d tunnels of the cell that hangs", f.InFlight, f.Tunnels)
		}
	})
}

// A guard that refuses everything, and a map that no one has: what waits for it
// is bounded.
func TestCellThatRefusesAllStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *Config) { c.MaxInFlight = 40 }, pinned("refused", "fine"))
		b.serve(1, fenced(1, 1<<40, nil))
		b.serve(2, echo(2))
		var wg sync.WaitGroup
		waited := make([]time.Duration, 30)
		for i := range waited {
			wg.Go(func() {
				start := time.Now()
				wantProblem(t, b.ask(request("GET", "/", "refused")).Result(), cellway.CellMismatch)
				waited[i] = time.Since(start)
			})
			synctest.Wait()
		}
		if rec := b.ask(request("GET", "/", "fine")); rec.Code != 200 {
			t.Errorf("the other cell: got %d %s", rec.Code, rec.Body)
		}
		if n := b.rt.desk.InFlight.Load(); n != 2 {
			t.Errorf("%d requests wait for another map, want 2", n)
		}
		wg.Wait()
		long := 0
		for _, d := range waited {
			if d > 0 {
				long++
			}
		}
		if n := figures(t, b.rt, "cell-001").Mismatches; long != 2 || n != 30 {
			t.Errorf("%d waited, %d mismatches", long, n)
		}
		if n := b.rt.none.waiting.Load() + b.rt.figures["cell-001"].waiting.Load(); n != 0 {
			t.Errorf("%d are said to wait in the end", n)
		}
	})
}

func TestLimitsThatLetOneCellTakeAllAreRefused(t *testing.T) {
	for _, tt := range []struct {
		most   int
		limits Limits
		ok     bool
	}{
		{0, Limits{}, true},
		{1, Limits{}, true},
		{100, Limits{}, true},
		{100, Limits{Pending: -1}, true},
		{100, Limits{InFlight: 40}, true},
		{100, Limits{InFlight: 40, Pending: 40}, true},
		{100, Limits{InFlight: 40, Pending: 50}, false},
		{100, Limits{InFlight: 100, Pending: -1}, false},
		{100, Limits{Pending: 90}, false},
		{2048, Limits{InFlight: 1024, Pending: 1024}, false},
		{0, Limits{InFlight: 16384}, false},
		{0, Limits{InFlight: -1}, false},
	} {
		rt, err := New(Config{MaxInFlight: tt.most, Cells: Bulkhead{Limits: tt.limits}})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%d places, %+v: %v", tt.most, tt.limits, err)
		}
		if err == nil {
			rt.Close()
		}
	}
}

// A refusal for want of room closes the connection where those are scarce, and
// no other answer does.
func TestSaturationClosesConnectionsWhereTheyAreScarce(t *testing.T) {
	for _, crowded := range []bool{true, false} {
		b := newBench(t, 1, func(c *Config) { c.Crowded = func() bool { return crowded } })
		for code, want := range map[cellway.Code]bool{cellway.CellSaturated: crowded, cellway.RouterSaturated: crowded, cellway.NotReady: false, cellway.KeyUnknown: false} {
			for _, major := range []int{1, 2} {
				rec, r := httptest.NewRecorder(), request("GET", "/", "acme")
				r.ProtoMajor = major
				b.rt.Refuse(rec, r, code, "")
				if got := rec.Header().Get("Connection") == "close"; got != (want && major == 1) {
					t.Errorf("%s over HTTP/%d, crowded %v: closes %v", code, major, crowded, got)
				}
			}
		}
	}
}

// What is said to a connection that there is no room for is a whole answer of
// the table.
func TestTurnAwayIsAWholeAnswer(t *testing.T) {
	b := newBench(t, 1, nil)
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b.rt.TurnAway())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Close || res.Header.Get("Retry-After") == "" {
		t.Errorf("%v", res.Header)
	}
	wantProblem(t, res, cellway.RouterSaturated)
}
