package router

import (
	"bufio"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/routemap"
)

// dial opens a tunnel for tenant through the front.
func (b *bench) dial(tenant string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	c, err := b.net.DialContext(b.t.Context(), "tcp", "front:80")
	if err != nil {
		b.t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /t HTTP/1.1\r\nHost: front\r\nX-Tenant-Id: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", tenant)
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != 101 {
		b.t.Fatalf("upgrade for %s: %v %v", tenant, res, err)
	}
	return c, br
}

// alive reports whether the tunnel still carries a line both ways.
func alive(c net.Conn, br *bufio.Reader) bool {
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return false
	}
	s, err := br.ReadString('\n')
	return err == nil && s == "ping\n"
}

func TestSwapEndsTunnelsOfKeysThatLeftTheirCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, func(c *Config) { c.Grace = 4 * time.Second }, pinned("moves", "drained", "stays"))
		for i := range 3 {
			b.serve(i+1, alike.Echo)
		}
		b.front()
		open := map[string]func() bool{}
		for _, tenant := range []string{"moves", "drained", "stays"} {
			c, br := b.dial(tenant)
			defer c.Close()
			open[tenant] = func() bool { return alive(c, br) }
		}
		if s := b.rt.Stats(); s.Tunnels != 3 || s.InFlight != 0 {
			t.Errorf("%d tunnels, %d in flight", s.Tunnels, s.InFlight)
		}
		b.swap(b.content(3, func(c *routemap.Content) {
			c.Cells[1].Admit = 0
			c.Entries = []cellway.Entry{{Key: "moves", Cell: "cell-003", Epoch: 2}, {Key: "drained", Cell: "cell-002"}, {Key: "stays", Cell: "cell-003"}}
			c.Holds = []cellway.Hold{{Key: "stays", Move: "m", Until: time.Unix(2e9, 0)}}
		}))
		time.Sleep(4*time.Second - 1)
		for tenant, alive := range open {
			if !alive() {
				t.Errorf("%s ended within the grace", tenant)
			}
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		for tenant, alive := range open {
			if got, want := alive(), tenant == "stays"; got != want {
				t.Errorf("%s: alive %v after the grace, want %v", tenant, got, want)
			}
		}
		if s := b.rt.Stats(); s.Tunnels != 1 || s.Ended != 2 {
			t.Errorf("%d tunnels, %d ended", s.Tunnels, s.Ended)
		}
	})
}

func TestSwapEndsStreamsAndWaitingRequestsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *Config) { c.Grace = -1 }, pinned("acme"))
		b.serve(1, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stream" {
				io.WriteString(w, "first\n")
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
		b.front()
		get := func(path string) (*http.Response, error) { return b.client().Do(acmes(path)) }
		stream, err := get("/stream")
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("first\n"))
		if _, err := io.ReadFull(stream.Body, first); err != nil || string(first) != "first\n" {
			t.Fatalf("got %q, %v", first, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			res, err := get("/silent")
			if err != nil {
				t.Error(err)
				return
			}
			wantProblem(t, res, cellway.CellProtocol) // it may have run
		})
		synctest.Wait()
		b.swap(b.content(2, at("cell-002", 2)))
		if rest, err := io.ReadAll(stream.Body); err == nil {
			t.Errorf("the stream ended with %q: want it to break off", rest)
		}
		wg.Wait()
		if f := figures(t, b.rt, "cell-001"); f.counted(Stopped) != 1 || f.counted(cellway.CellProtocol) != 1 {
			t.Errorf("figures %+v", f)
		}
	})
}

func TestKeylessTunnelEndsWithPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0, func(c *Config) { c.Grace = -1 })
		through := func(on bool) routemap.Content {
			return b.content(1, func(c *routemap.Content) { c.PassThrough = on })
		}
		b.swap(through(true))
		b.serve(1, alike.Echo)
		b.front()
		c, br := b.dial("not a key")
		defer c.Close()
		b.swap(through(true))
		synctest.Wait()
		if !alive(c, br) {
			t.Error("ended though nothing changed")
		}
		b.swap(through(false))
		synctest.Wait()
		if alive(c, br) {
			t.Error("alive though such requests are refused now")
		}
	})
}

func TestRefusedMapChangesNothing(t *testing.T) {
	b := newBench(t, 1, nil, at("cell-001", 5))
	b.serve(1, echo(1))
	publish := func(version uint32, c routemap.Content) *routemap.Map {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := routemap.Publish(build(t, c), routemap.Publication{
			Version: cellway.NewVersion(1, version), Signers: []routemap.Signer{routemap.LocalSigner(key)}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	good := publish(7, b.content(1, at("cell-001", 5)))
	if err := b.rt.Swap(good); err != nil {
		t.Fatal(err)
	}
	other := b.content(1)
	other.Fleet = "other"
	for name, tt := range map[string]struct {
		m    *routemap.Map
		want error
	}{
		"nothing":                  {nil, ErrUnusable},
		"one that ends in a panic": {new(routemap.Map), ErrUnusable},
		"lower version":            {publish(6, b.content(1, at("cell-001", 9))), routemap.ErrOld},
		"another fleet":            {publish(8, other), routemap.ErrFleet},
	} {
		if err := b.rt.Swap(tt.m); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	if s := b.rt.Stats(); b.rt.Map() != good || s.Version != cellway.NewVersion(1, 7) || s.Refused != 4 || s.Swaps != 2 {
		t.Errorf("map %v, figures %+v", b.rt.Map().Version(), s)
	}
	if rec := b.ask(request("GET", "/", "acme")); rec.Code != 200 {
		t.Errorf("got %d", rec.Code)
	}
	// A map that is no longer trusted gives way to any other of the fleet.
	lower := publish(3, b.content(1, at("cell-001", 5)))
	if err := b.rt.Replace(lower); err != nil || b.rt.Map() != lower {
		t.Errorf("Replace = %v, map %v", err, b.rt.Map().Version())
	}
	if err := b.rt.Replace(publish(9, other)); !errors.Is(err, routemap.ErrFleet) {
		t.Errorf("Replace by another fleet's: %v", err)
	}
}

// Under load and a storm of swaps, each request is answered, and by the cell
// that one of the maps named for its tenant.
func TestSwapsUnderLoadLoseNoRequest(t *testing.T) {
	b := newBench(t, 3, nil)
	for i := range 3 {
		b.serve(i+1, func(w http.ResponseWriter, r *http.Request) {
			if want := fmt.Sprintf("cell-%03d", i+1); r.Header.Get("X-Cell-Id") != want {
				t.Errorf("%s got a request for %s", want, r.Header.Get("X-Cell-Id"))
			}
			fmt.Fprintf(w, "%s %s", r.Header.Get("X-Cell-Id"), r.Header.Get("X-Cell-Epoch"))
		})
	}
	// acme goes back and forth, with an epoch that names the map.
	cellAt := func(e cellway.Epoch) cellway.CellID { return [...]cellway.CellID{"cell-001", "cell-002"}[e%2] }
	b.swap(b.content(3, at(cellAt(1), 1)))
	var stop atomic.Bool
	var wg sync.WaitGroup
	var served atomic.Int64
	for w := range 4 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				tenant := "acme"
				if i%2 == 0 {
					tenant = fmt.Sprintf("other-%d", w)
				}
				rec := b.ask(request("GET", "/", tenant))
				var cell cellway.CellID
				var epoch string
				fmt.Sscan(rec.Body.String(), &cell, &epoch)
				if rec.Code != 200 {
					t.Errorf("%s: got %d %s", tenant, rec.Code, rec.Body)
					return
				}
				if e, err := cellway.ParseEpoch(epoch); tenant == "acme" && (err != nil || cell != cellAt(e)) {
					t.Errorf("acme at epoch %s was served by %s", epoch, cell)
				}
				served.Add(1)
			}
		})
	}
	for e := cellway.Epoch(2); e < 100; e++ {
		b.swap(b.content(3, at(cellAt(e), e)))
		for n := served.Load(); served.Load() < n+4 && !t.Failed(); {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	if served.Load() < 300 {
		t.Errorf("only %d requests were served", served.Load())
	}
}

// A drain asks nothing of the cell, and works with it dead, hung or refusing.
func TestDrainWorksWithTheCellDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil, pinned("acme", "zenith"))
		b.serve(2, echo(2))
		drained := b.content(2, pinned("acme", "zenith"), func(c *routemap.Content) { c.Cells[0].Admit = 0 })
		wantProblem(t, b.ask(request("GET", "/", "acme")).Result(), cellway.CellUnreachable, 502, 503)
		b.swap(drained)
		start := time.Now()
		wantProblem(t, b.ask(request("GET", "/", "acme")).Result(), cellway.CellDrained)
		if time.Since(start) != 0 {
			t.Errorf("the answer took %v", time.Since(start))
		}
		if rec := b.ask(request("GET", "/", "zenith")); rec.Code != 200 {
			t.Errorf("the other cell: got %d", rec.Code)
		}
	})
}

// All of a cell is down or hangs: its tenants get errors, nobody else notices,
// and no request of theirs goes elsewhere.
func TestBrokenCellStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, func(c *Config) {
			c.Cells.Timeouts.FirstByte = 5 * time.Second
			c.Cells.Limits = Limits{InFlight: 4, Pending: 4, QueueWait: 100 * time.Millisecond}
			c.MaxInFlight = 100
		}, pinned("down", "hung", "fine"))
		b.serve(2, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		var strangers atomic.Int64
		b.serve(3, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") != "fine" {
				strangers.Add(1)
			}
		})
		var wg sync.WaitGroup
		for range 20 {
			for _, tenant := range []string{"down", "hung"} {
				wg.Go(func() {
					rec := b.ask(request("GET", "/", tenant))
					if rec.Code < 502 || !strings.HasPrefix(string(codeOf(rec)), "cell_") {
						t.Errorf("%s: got %d %s", tenant, rec.Code, rec.Body)
					}
				})
			}
		}
		synctest.Wait()
		for range 20 {
			start := time.Now()
			if rec := b.ask(request("GET", "/", "fine")); rec.Code != 200 || time.Since(start) != 0 {
				t.Errorf("the cell that is well: got %d after %v", rec.Code, time.Since(start))
			}
		}
		wg.Wait()
		if strangers.Load() > 0 {
			t.Errorf("%d requests went to a cell that the map did not name", strangers.Load())
		}
	})
}
