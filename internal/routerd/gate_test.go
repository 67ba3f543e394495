package routerd

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A stub is a connection from some address that knows whether it was closed.
type stub struct {
	net.Conn
	from   string
	closed bool
}

func (s *stub) RemoteAddr() net.Addr { return stubAddr(s.from) }
func (s *stub) Close() error         { s.closed = true; return nil }

type stubAddr string

func (stubAddr) Network() string  { return "tcp" }
func (a stubAddr) String() string { return string(a) }

// enter has connections come from these addresses, in that order.
func (g *gate) enterAll(from ...string) (all []*gatedConn) {
	for _, a := range from {
		all = append(all, g.enter(&stub{from: a}))
	}
	return all
}

func (c *gatedConn) isClosed() bool { return c.Conn.(*stub).closed }

// At the limit the connection goes that can best be spared.
func TestWhoMakesRoom(t *testing.T) {
	const a, b, c, d = "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"
	for name, tt := range map[string]struct {
		trusted string
		open    []string
		states  map[int][]http.ConnState
		comes   string
		want    int // who goes; -1: the new one
		silent  bool
	}{
		"the one silent for longest": {open: []string{a, b, c}, comes: d, want: 0, silent: true},
		"the one idle for longest": {open: []string{a, b, c}, comes: d, want: 1,
			states: map[int][]http.ConnState{0: {http.StateActive}, 1: {http.StateActive, http.StateIdle}, 2: {http.StateActive}}},
		"of the address with most": {open: []string{a, b, b}, comes: d, want: 1, silent: true},
		"not of that with most in use": {open: []string{a, b, b}, comes: d, want: 0, silent: true,
			states: map[int][]http.ConnState{1: {http.StateActive}, 2: {http.StateActive}}},
		"not a tunnel": {open: []string{a, b, c}, comes: d, want: 1, silent: true,
			states: map[int][]http.ConnState{0: {http.StateActive, http.StateHijacked}}},
		"of one network of IPv6": {open: []string{a, "[2001:db8::1]:1", "[2001:db8::2]:1"}, comes: d, want: 1, silent: true},
		"of two of them":         {open: []string{a, "[2001:db8::1]:1", "[2001:db8:0:1::2]:1"}, comes: d, want: 0, silent: true},
		"a proxy is many":        {trusted: "10.0.0.2/32", open: []string{a, b, b}, comes: d, want: 0, silent: true},
		"one mapped into IPv6":   {trusted: "10.0.0.2/32", open: []string{a, "[::ffff:10.0.0.2]:1", b}, comes: d, want: 0, silent: true},
		"none if all are in use": {open: []string{a, b, c}, comes: d, want: -1,
			states: map[int][]http.ConnState{0: {http.StateActive}, 1: {http.StateActive}, 2: {http.StateActive}}},
	} {
		t.Run(name, func(t *testing.T) {
			var trusted []netip.Prefix
			if tt.trusted != "" {
				trusted = []netip.Prefix{netip.MustParsePrefix(tt.trusted)}
			}
			g := newGate(len(tt.open), trusted)
			all := g.enterAll(tt.open...)
			for i := range all {
				for _, st := range tt.states[i] {
					all[i].setState(st)
				}
			}
			last := g.enter(&stub{from: tt.comes})
			if (last == nil) != (tt.want < 0) {
				t.Fatalf("the new one got %v", last)
			}
			for i := range all {
				if all[i].isClosed() != (i == tt.want) || all[i].wasEvicted() != (i == tt.want) {
					t.Errorf("%d: closed %v, evicted %v", i, all[i].isClosed(), all[i].wasEvicted())
				}
			}
			silent, idle, full := g.evictedSilent.Load(), g.evictedIdle.Load(), g.refusedFull.Load()
			if tt.want < 0 && full != 1 || tt.want >= 0 && (silent != 1) == tt.silent || silent+idle+full != 1 {
				t.Errorf("counted: %d silent, %d idle, %d refused", silent, idle, full)
			}
			if n := g.open(); n != len(tt.open) {
				t.Errorf("%d are open", n)
			}
		})
	}
}

// One address gets not the last eighth of the places, however it holds them.
func TestAnAddressLeavesRoomForOthers(t *testing.T) {
	g := newGate(16, nil)
	var mine []*gatedConn
	for range 14 {
		c := g.enter(&stub{from: "10.0.0.1:1"})
		c.setState(http.StateActive)
		mine = append(mine, c)
	}
	if g.enter(&stub{from: "10.0.0.1:1"}) != nil || g.refusedShare.Load() != 1 {
		t.Error("the fifteenth was taken in")
	}
	mine[3].setState(http.StateIdle)
	if g.enter(&stub{from: "10.0.0.1:1"}) == nil || !mine[3].isClosed() {
		t.Error("the fifteenth did not take the place of one of its own")
	}
	for i := range 3 {
		if g.enter(&stub{from: fmt.Sprintf("10.0.1.%d:1", i)}) == nil {
			t.Errorf("%d found no room", i)
		}
	}
	if !g.crowded() || g.open() != 16 {
		t.Errorf("%d are open", g.open())
	}
}

// Whatever happens, the counts fit what is there, and who goes is idle and of an
// address that has most.
func TestGateAgainstAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		g := newGate(1+rnd.IntN(40), nil)
		var open []*gatedConn
		idle := map[*gatedConn]bool{}
		for range 2000 {
			switch n := rnd.IntN(4); {
			case n == 0 || len(open) == 0:
				before := map[string]int{}
				for c := range idle {
					before[c.RemoteAddr().String()]++
				}
				full := len(open) >= g.most
				c := g.enter(&stub{from: fmt.Sprintf("10.0.0.%d:1", rnd.IntN(5))})
				i := slices.IndexFunc(open, (*gatedConn).wasEvicted)
				if i >= 0 {
					gone := open[i]
					if !idle[gone] || full && g.share == g.most && before[gone.RemoteAddr().String()] != slices.Max(values(before)) {
						t.Fatalf("round %d: the wrong one went, idle: %v", round, before)
					}
					gone.Close() // as its server does, later
					open = slices.Delete(open, i, i+1)
					delete(idle, gone)
				} else if c == nil && full && g.share == g.most && len(idle) > 0 {
					t.Fatalf("round %d: refused, though %d are idle", round, len(idle))
				}
				if c != nil {
					open = append(open, c)
					idle[c] = true
				}
			case n == 1:
				c := open[rnd.IntN(len(open))]
				c.setState(http.StateActive)
				delete(idle, c)
			case n == 2:
				c := open[rnd.IntN(len(open))]
				c.setState(http.StateIdle)
				idle[c] = true
			default:
				i := rnd.IntN(len(open))
				open[i].Close()
				open[i].Close()
				delete(idle, open[i])
				open = slices.Delete(open, i, i+1)
			}
			held, resting, ranked := 0, 0, 0
			for _, by := range g.clients {
				held += by.held
				resting += by.idle.Len()
			}
			for n, rank := range g.ranks {
				ranked += n * rank.Len()
			}
			if g.open() != len(open) || held != len(open) || resting != len(idle) || ranked != len(idle) || len(open) > g.most ||
				(g.top == 0) != (len(idle) == 0) || g.top > 0 && g.ranks[g.top] == nil {
				t.Fatalf("round %d: %d are open and %d idle, counted are %d, %d, %d and %d in ranks up to %d", round, len(open), len(idle), g.open(), held, resting, ranked, g.top)
			}
		}
	}
}

func values(m map[string]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	return append(all, 0)
}

// A listener that fails for want of descriptors gets one from who is idle.
func TestADescriptorIsMadeFree(t *testing.T) {
	g := newGate(10, nil)
	idle := g.enter(&stub{from: "10.0.0.1:1"})
	l := g.listen(&failing{errs: []error{syscall.EMFILE, nil, syscall.EMFILE, errors.New("another")}}, nil)
	c, err := l.Accept()
	if err != nil || !idle.isClosed() {
		t.Fatalf("%v, closed %v", err, idle.isClosed())
	}
	c.(*gatedConn).setState(http.StateActive)
	if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("with nobody idle: %v", err)
	}
	if _, err := l.Accept(); err == nil || errors.Is(err, syscall.EMFILE) {
		t.Errorf("another error became %v", err)
	}
}

// A failing listener returns errors, and a connection where there is none.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	if err != nil {
		return nil, err
	}
	return &stub{from: "10.0.0.2:1"}, nil
}

// dial opens a connection to the router.
func (p *process) dial(url string) net.Conn {
	p.t.Helper()
	_, addr, _ := strings.Cut(url, "://")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// keep makes a request over a connection that stays.
func keep(t testing.TB, c net.Conn, path string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

// At the limit every kind of idle connection makes room for a new one.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, p *process) (gone func() error){
		"between requests": func(t *testing.T, p *process) func() error {
			c := p.dial(p.listen[0])
			keep(t, c, "/")
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"silent": func(_ *testing.T, p *process) func() error {
			c := p.dial(p.listen[0])
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"half a head": func(t *testing.T, p *process) func() error {
			c := p.dial(p.listen[0])
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHo"); err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"silent in a handshake": func(_ *testing.T, p *process) func() error {
			c := p.dial(p.listen[1])
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"between requests over TLS": func(t *testing.T, p *process) func() error {
			c := tls.Client(p.dial(p.listen[1]), &tls.Config{InsecureSkipVerify: true})
			keep(t, c, "/")
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"HTTP/2 without streams":          func(t *testing.T, p *process) func() error { return twice(t, p.listen[0]) },
		"HTTP/2 over TLS without streams": func(t *testing.T, p *process) func() error { return twice(t, p.listen[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.certificate("a", 1, "a.example")
			p := f.start(f.args("--max-connections", "1", "--drain-timeout", "300ms", "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
			p.ready()
			gone := open(t, p)
			p.eventually("the connection to be idle", func() error { return p.metric("cellway_router_connections", "1") })
			// The server may not have noticed yet that it is idle.
			p.eventually("room", func() error {
				if status, body := p.get(p.listen[0]+"/", "acme"); status != http.StatusOK {
					return fmt.Errorf("%d %s", status, body)
				}
				return nil
			})
			if err := gone(); err == nil {
				t.Error("the idle connection is still there")
			}
		})
	}
}

// twice makes a request over HTTP/2, and returns what another one over the same
// connection comes to.
func twice(t *testing.T, url string) func() error {
	var dialled net.Conn
	dial := func(_ context.Context, network, addr string) (net.Conn, error) {
		if dialled != nil {
			return nil, errors.New("the connection is gone")
		}
		c, err := net.Dial(network, addr)
		dialled = c
		return c, err
	}
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(tr.CloseIdleConnections)
	ask := func() error {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	return ask
}

// With every place in use a new connection is refused at once, and told why
// where that costs little; and none of it holds up the end.
func TestAConnectionTooManyIsTurnedAway(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	p := f.start(f.args("--max-connections", "2", "--name", "edge", "--drain-timeout", "300ms", "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
	p.ready()
	var all sync.WaitGroup
	for _, tenant := range []string{"acme", "globex"} {
		all.Go(func() { p.get(p.listen[0]+"/slow", tenant) })
	}
	p.eventually("both to be in use", func() error {
		if n := p.mapStatus().Router.InFlight; n < 2 {
			return fmt.Errorf("%d requests in flight", n)
		}
		return nil
	})
	resp := keep(t, p.dial(p.listen[0]), "/")
	if resp.StatusCode != http.StatusServiceUnavailable || !resp.Close || resp.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.HasPrefix(resp.Header.Get("Proxy-Status"), "edge;") || !strings.Contains(resp.Header.Get("Proxy-Status"), "router_saturated") || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d, %v", resp.StatusCode, resp.Header)
	}
	if err := tls.Client(p.dial(p.listen[1]), &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("a connection over TLS was taken in")
	}
	p.eventually("both to be counted", func() error { return p.metric(`cellway_router_connections_refused_total{reason="full"}`, "2") })
	close(f.release)
	all.Wait()
	p.wantCell("acme", "cell-001")
}

// Requests that hang in one cell shut nobody out: those over the cell's limit
// are answered and their connections closed when places are scarce.
func TestConnectionsToAFullCellAreGivenBack(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--max-connections", "4", "--cell-in-flight", "1", "--cell-pending", "0")...)
	p.ready()
	var all sync.WaitGroup
	all.Go(func() { p.get(p.listen[0]+"/slow", "acme") })
	p.eventually("the cell to be full", func() error {
		if n := p.mapStatus().Router.InFlight; n < 1 {
			return fmt.Errorf("%d requests in flight", n)
		}
		return nil
	})
	var last *http.Response
	for i := range 3 {
		last = keep(t, p.dial(p.listen[0]), "/")
		if crowded := i == 2; last.StatusCode != http.StatusServiceUnavailable || last.Close != crowded {
			t.Errorf("request %d: %d, closes %v", i, last.StatusCode, last.Close)
		}
	}
	for range 8 {
		p.wantCell("globex", "cell-002")
	}
	close(f.release)
	all.Wait()
}

func BenchmarkGate(b *testing.B) {
	g := newGate(1000, nil)
	all := g.enterAll(slices.Repeat([]string{"10.0.0.1:1", "10.0.0.2:1"}, 100)...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := all[i%len(all)]
		c.setState(http.StateActive)
		c.wasEvicted()
		c.setState(http.StateIdle)
	}
}
