package serving

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/cellway/cellway/internal/engine"
)

// A visitor is a connection from some address that knows whether it was closed.
type visitor struct {
	net.Conn
	from   string
	closed bool
}

func (s *visitor) RemoteAddr() net.Addr { return visitorAddr(s.from) }
func (s *visitor) Close() error         { s.closed = true; return nil }

type visitorAddr string

func (visitorAddr) Network() string  { return "tcp" }
func (a visitorAddr) String() string { return string(a) }

// enter has connections come from these addresses, in that order.
func (g *Gate) enterAll(from ...string) (all []*gatedConn) {
	for _, a := range from {
		all = append(all, g.enter(&visitor{from: a}))
	}
	return all
}

func (c *gatedConn) isClosed() bool { return c.Conn.(*visitor).closed }

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
			g := NewGate(len(tt.open), trusted)
			all := g.enterAll(tt.open...)
			for i := range all {
				for _, st := range tt.states[i] {
					all[i].setState(st)
				}
			}
			last := g.enter(&visitor{from: tt.comes})
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
			if n := g.Open(); n != len(tt.open) {
				t.Errorf("%d are open", n)
			}
		})
	}
}

// One address gets not the last eighth of the places, however it holds them.
func TestAnAddressLeavesRoomForOthers(t *testing.T) {
	g := NewGate(16, nil)
	var mine []*gatedConn
	for range 14 {
		c := g.enter(&visitor{from: "10.0.0.1:1"})
		c.setState(http.StateActive)
		mine = append(mine, c)
	}
	if g.enter(&visitor{from: "10.0.0.1:1"}) != nil || g.refusedShare.Load() != 1 {
		t.Error("the fifteenth was taken in")
	}
	mine[3].setState(http.StateIdle)
	if g.enter(&visitor{from: "10.0.0.1:1"}) == nil || !mine[3].isClosed() {
		t.Error("the fifteenth did not take the place of one of its own")
	}
	for i := range 3 {
		if g.enter(&visitor{from: fmt.Sprintf("10.0.1.%d:1", i)}) == nil {
			t.Errorf("%d found no room", i)
		}
	}
	if !g.Crowded() || g.Open() != 16 {
		t.Errorf("%d are open", g.Open())
	}
}

// Whatever happens, the counts fit what is there, and who goes is idle and of an
// address that has most.
func TestGateAgainstAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 30 {
		g := NewGate(1+rnd.IntN(40), nil)
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
				c := g.enter(&visitor{from: fmt.Sprintf("10.0.0.%d:1", rnd.IntN(5))})
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
			if g.Open() != len(open) || held != len(open) || resting != len(idle) || ranked != len(idle) || len(open) > g.most ||
				(g.top == 0) != (len(idle) == 0) || g.top > 0 && g.ranks[g.top] == nil {
				t.Fatalf("round %d: %d are open and %d idle, counted are %d, %d, %d and %d in ranks up to %d", round, len(open), len(idle), g.Open(), held, resting, ranked, g.top)
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
	g := NewGate(10, nil)
	idle := g.enter(&visitor{from: "10.0.0.1:1"})
	l := g.Listen(&failing{errs: []error{syscall.EMFILE, nil, syscall.EMFILE, errors.New("another")}}, nil)
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
	return &visitor{from: "10.0.0.2:1"}, nil
}

func BenchmarkGate(b *testing.B) {
	g := NewGate(1000, nil)
	all := g.enterAll(slices.Repeat([]string{"10.0.0.1:1", "10.0.0.2:1"}, 100)...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := all[i%len(all)]
		c.setState(http.StateActive)
		c.wasEvicted()
		c.setState(http.StateIdle)
	}
}

// Nobody makes room whose request has come and was not read yet.
func TestWhoHasSentSomethingMakesNoRoom(t *testing.T) {
	street := newStreet(t)
	g := NewGate(3, nil)
	held := make([]*gatedConn, 3)
	for i := range held {
		held[i] = g.enter(street.comes("10.0.0.1:1"))
	}
	street.speaks(held[0])
	street.speaks(held[2])
	if g.enter(street.comes("10.0.0.1:1")) == nil || held[0].wasEvicted() || !held[1].wasEvicted() || held[2].wasEvicted() {
		t.Errorf("gone: %v %v %v, want the second", held[0].wasEvicted(), held[1].wasEvicted(), held[2].wasEvicted())
	}
	var one [1]byte
	if _, err := held[2].Read(one[:]); err != nil { // a part of a head is no request
		t.Fatal(err)
	}
	if g.enter(street.comes("10.0.0.1:1")) == nil || held[0].wasEvicted() || !held[2].wasEvicted() {
		t.Errorf("gone: %v, %v, want the third", held[0].wasEvicted(), held[2].wasEvicted())
	}
}

// Requests that have just come over the oldest connections of an address don't shut
// others out while somebody is idle.
func TestWhoHasSentMuchShutsNobodyOut(t *testing.T) {
	const many, few = "10.0.0.1:1", "10.0.0.2:1"
	for name, tt := range map[string]struct {
		speaking, silent int      // connections of many
		few              int      // and of few, all of them silent
		gone             []string // as one after the other comes; "" for one that is refused
	}{
		"one of few goes where all of many speak":                       {speaking: 12, few: 2, gone: []string{few, few}},
		"even where more of them speak than are looked at":              {speaking: 40, few: 2, gone: []string{few, few}},
		"those of many that speak don't hide those that don't for long": {speaking: 40, silent: 10, gone: []string{"", "", many, many}},
	} {
		t.Run(name, func(t *testing.T) {
			street := newStreet(t)
			g := NewGate(tt.speaking+tt.silent+tt.few, nil)
			g.near, g.share = g.most, g.most
			for range tt.speaking {
				street.speaks(g.enter(street.comes(many)))
			}
			open := g.enterAll(slices.Concat(slices.Repeat([]string{many}, tt.silent), slices.Repeat([]string{few}, tt.few))...)
			for i, want := range tt.gone {
				c := g.enter(&visitor{from: fmt.Sprintf("10.0.1.%d:1", i)})
				if c != nil {
					c.setState(http.StateActive)
				}
				gone := ""
				if at := slices.IndexFunc(open, (*gatedConn).wasEvicted); at >= 0 {
					gone = open[at].RemoteAddr().String()
					open = slices.Delete(open, at, at+1)
				}
				if gone != want || (c == nil) != (want == "") {
					t.Errorf("the connection %d took the place of one of %q, want %q; refused: %v", i, gone, want, c == nil)
				}
			}
		})
	}
}

// Callers with one connection each are all looked at in the end, wherever in the rank
// the idle one is.
func TestNoCallerIsPassedOverForEver(t *testing.T) {
	street := newStreet(t)
	g := NewGate(41, nil)
	g.near, g.share = g.most, g.most
	for i := range 40 {
		street.speaks(g.enter(street.comes(fmt.Sprintf("10.0.0.%d:1", i))))
	}
	idle := g.enter(&visitor{from: "10.0.1.1:1"})
	for try := range 12 {
		if c := g.enter(&visitor{from: "10.0.2.1:1"}); c != nil {
			if !idle.wasEvicted() {
				t.Error("another one went")
			}
			return
		} else if try == 0 && g.refusedFull.Load() != 1 {
			t.Errorf("%d counted as refused", g.refusedFull.Load())
		}
	}
	t.Error("nobody made room")
}

// A street is where connections come from that can speak.
type street struct {
	t       *testing.T
	l       net.Listener
	clients map[net.Conn]net.Conn // by the server's side
}

func newStreet(t *testing.T) *street {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &street{t, l, map[net.Conn]net.Conn{}}
}

// A passer is a connection that seems to come from elsewhere.
type passer struct {
	net.Conn
	from string
}

func (p *passer) RemoteAddr() net.Addr { return visitorAddr(p.from) }
func (p *passer) NetConn() net.Conn    { return p.Conn }

// comes returns the server's side of a new connection.
func (s *street) comes(from string) net.Conn {
	s.t.Helper()
	client, err := net.Dial("tcp", s.l.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := s.l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close(); server.Close() })
	p := &passer{server, from}
	s.clients[p] = client
	return p
}

// speaks has something come over a connection, which is there on return.
func (s *street) speaks(c *gatedConn) {
	s.t.Helper()
	if _, err := s.clients[c.Conn].Write([]byte("G")); err != nil {
		s.t.Fatal(err)
	}
	for range 10_000 {
		if engine.Unread(c.Conn) {
			return
		}
		runtime.Gosched()
	}
	s.t.Skip("it can't be told here whether something has come")
}
