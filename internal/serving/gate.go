package serving

import (
	"container/list"
	"context"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway/internal/engine"
)

// askShare is how many times as long as a server took to say which connections
// are idle it is not asked again.
const askShare = 20

// A Gate counts clients' connections over all public listeners and lets no more
// than so many stand at a time. Each further one takes the place of an idle one,
// and is refused if none is.
//
// Idle is a connection between two requests, one of HTTP/2 without a stream, and
// one that has not sent a whole head yet, unless something has come over it that is
// still to be read: so no request is lost that has arrived. The one
// that goes is of the client's address that has most of them, and there the one
// that has been idle longest. So whoever opens many connections loses his own
// first, and not those of others unless something has just come over many of his.
//
// The last eighth of the places is kept from addresses that hold an eighth
// already, idle or not. Proxies that are trusted stand for many clients: each of
// their connections counts as an address of its own.
type Gate struct {
	most    int
	near    int // from here on places are scarce
	share   int // what an address may hold then
	trusted func(netip.Addr) bool
	ask     func()       // see AskWith; may be nil
	askNext atomic.Int64 // when it may be asked again

	mu      sync.Mutex
	taken   int
	clients map[netip.Addr]*caller
	// ranks holds the callers with idle connections, by how many each has. In a
	// rank the first is who has been in it, or was passed over, longest ago.
	ranks map[int]*list.List
	top   int // the highest rank

	evictedIdle, evictedSilent atomic.Uint64 // connections that made room: between requests, or before a first whole head
	refusedFull, refusedShare  atomic.Uint64
}

// A caller is an address of clients, or a single connection that is counted by
// itself.
type caller struct {
	addr  netip.Addr // invalid for a single connection
	held  int        // connections
	idle  list.List  // of *gatedConn, the one idle, or passed over, longest ago first
	place *list.Element
}

// NewGate returns a gate for that many connections. The connections of trusted
// proxies count one by one.
func NewGate(most int, trusted []netip.Prefix) *Gate {
	g := &Gate{most: most, near: most, share: most, clients: map[netip.Addr]*caller{}, ranks: map[int]*list.List{}}
	if kept := most / 8; kept > 1 {
		g.near, g.share = most-kept, kept
	}
	g.trusted = func(a netip.Addr) bool {
		for _, p := range trusted {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
	return g
}

// Open returns how many connections there are.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

// A GateStats is how a gate fares.
type GateStats struct {
	Open int // connections now
	Most int // the most at a time

	EvictedIdle, EvictedSilent uint64 // closed to make room: between requests, or before a first whole head
	RefusedFull, RefusedShare  uint64 // refused: none was idle, or the address held too many
}

// Stats returns how the gate fares now.
func (g *Gate) Stats() GateStats {
	return GateStats{
		Open: g.Open(), Most: g.most,
		EvictedIdle: g.evictedIdle.Load(), EvictedSilent: g.evictedSilent.Load(),
		RefusedFull: g.refusedFull.Load(), RefusedShare: g.refusedShare.Load(),
	}
}

// Crowded reports whether places are scarce.
func (g *Gate) Crowded() bool { return g.Open() >= g.near }

// callerOf returns who opens a connection from that address. A network of IPv6
// is one caller, as whoever has one address of it has all.
func (g *Gate) callerOf(from net.Addr) *caller {
	var ap netip.AddrPort
	if tcp, ok := from.(*net.TCPAddr); ok {
		ap = tcp.AddrPort()
	} else {
		ap, _ = netip.ParseAddrPort(from.String())
	}
	if !ap.IsValid() {
		return &caller{}
	}
	a := ap.Addr().Unmap().WithZone("")
	if g.trusted(a) {
		return &caller{}
	}
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	c := g.clients[a]
	if c == nil {
		c = &caller{addr: a}
		g.clients[a] = c
	}
	return c
}

// enter takes a connection in, perhaps in the place of another one, which it
// closes. It returns nil if there is no room.
func (g *Gate) enter(inner net.Conn) *gatedConn {
	c, victim, full := g.admit(inner)
	for try := 0; c == nil && try < 2 && g.askNow(); try++ {
		c, victim, full = g.admit(inner)
		if c == nil && try == 0 {
			// A client may have its answer a moment before its connection is idle.
			time.Sleep(time.Millisecond)
		}
	}
	if c == nil {
		full.Add(1)
	}
	if victim != nil {
		_ = victim.Conn.Close() // its place is taken already, and nobody is left to tell
	}
	return c
}

// admit returns the connection with its place, and which one is to go for it; or
// nil and what counts it as refused.
func (g *Gate) admit(inner net.Conn) (c, victim *gatedConn, refused *atomic.Uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.callerOf(inner.RemoteAddr())
	switch {
	case g.taken >= g.near && by.addr.IsValid() && by.held >= g.share && g.share < g.most:
		if victim, _ = first(&by.idle, mostLooked); victim == nil {
			return nil, nil, &g.refusedShare
		}
	case g.taken >= g.most:
		if victim = g.longest(); victim == nil {
			g.forget(by)
			return nil, nil, &g.refusedFull
		}
	}
	c = &gatedConn{Conn: inner, gate: g, by: by, silent: true}
	g.taken++
	by.held++
	g.rest(c)
	if victim != nil {
		g.evict(victim)
	}
	return c, victim, nil
}

// AskWith has ask called when a place is wanted, for a server that says late which
// of its connections are idle: it has to say so of each, by the gate's State,
// before it returns. Call it before the first connection.
func (g *Gate) AskWith(ask func()) { g.ask = ask }

// askNow asks the server which connections are idle, and reports whether it did.
// It looks at all of them, and so it is asked no more often than leaves most of
// the time for other work.
func (g *Gate) askNow() bool {
	begun := time.Now()
	next := g.askNext.Load()
	if g.ask == nil || begun.UnixNano() < next || !g.askNext.CompareAndSwap(next, math.MaxInt64) {
		return false
	}
	g.ask()
	g.askNext.Store(time.Now().Add(askShare * time.Since(begun)).UnixNano())
	return true
}

// makeRoom closes an idle connection, where there is one.
func (g *Gate) makeRoom() bool {
	g.mu.Lock()
	victim := g.longest()
	if victim != nil {
		g.evict(victim)
	}
	g.mu.Unlock()
	return victim != nil && victim.Conn.Close() == nil
}

// mostLooked is how many connections are looked at for one that may go. Each look asks
// the kernel, under the mutex.
const mostLooked = 16

// longest returns the connection to go first, or nil. Where requests have come over
// those of a caller that were looked at, the next caller is one with as many idle
// connections, and then one with fewer; each gets half of the looks that are left, and
// the first one those that nobody needed. The caller holds the mutex, as for all that
// follow.
func (g *Gate) longest() *gatedConn {
	looks := mostLooked
	for n := g.top; n > 0; n = g.below(n) {
		rank := g.ranks[n]
		for range rank.Len() {
			if looks == 0 {
				return nil
			}
			e := rank.Front()
			victim, looked := first(&e.Value.(*caller).idle, (looks+1)/2)
			if victim != nil {
				return victim
			}
			looks -= looked
			rank.MoveToBack(e)
		}
	}
	if g.top == 0 {
		return nil
	}
	victim, _ := first(&g.ranks[g.top].Front().Value.(*caller).idle, looks)
	return victim
}

// below returns the next rank below n in which there is anybody, or 0.
func (g *Gate) below(n int) (next int) {
	for r := range g.ranks {
		if r < n {
			next = max(next, r)
		}
	}
	return next
}

// first returns the first one over which nothing has come that the server has still to
// read: it would be a request. It looks at no more than most of them, and says at how
// many. Those that it passes over are the last ones from now on, so that others are
// looked at next time.
func first(idle *list.List, most int) (victim *gatedConn, looked int) {
	for range min(most, idle.Len()) {
		e := idle.Front()
		looked++
		if c := e.Value.(*gatedConn); !engine.Unread(c.Conn) {
			return c, looked
		}
		idle.MoveToBack(e)
	}
	return nil, looked
}

// evict takes a connection out so that another one has its place.
func (g *Gate) evict(c *gatedConn) {
	if c.evicted = true; c.silent {
		g.evictedSilent.Add(1)
	} else {
		g.evictedIdle.Add(1)
	}
	g.leave(c)
}

// leave takes a connection out. It does so once.
func (g *Gate) leave(c *gatedConn) {
	if c.gone {
		return
	}
	c.gone = true
	g.work(c)
	g.taken--
	c.by.held--
	g.forget(c.by)
}

// forget drops a caller without connections.
func (g *Gate) forget(by *caller) {
	if by.held == 0 && by.addr.IsValid() {
		delete(g.clients, by.addr)
	}
}

// rest makes a connection idle.
func (g *Gate) rest(c *gatedConn) {
	if c.gone || c.resting != nil {
		return
	}
	g.unrank(c.by)
	c.resting = c.by.idle.PushBack(c)
	g.rank(c.by)
}

// work ends that.
func (g *Gate) work(c *gatedConn) {
	if c.resting == nil {
		return
	}
	g.unrank(c.by)
	c.by.idle.Remove(c.resting)
	c.resting = nil
	g.rank(c.by)
	for g.top > 0 && g.ranks[g.top] == nil {
		g.top--
	}
}

func (g *Gate) rank(by *caller) {
	n := by.idle.Len()
	if n == 0 {
		return
	}
	if g.ranks[n] == nil {
		g.ranks[n] = list.New()
	}
	by.place = g.ranks[n].PushBack(by)
	g.top = max(g.top, n)
}

func (g *Gate) unrank(by *caller) {
	n := by.idle.Len()
	if n == 0 {
		return
	}
	g.ranks[n].Remove(by.place)
	if g.ranks[n].Len() == 0 {
		delete(g.ranks, n)
	}
}

// connKey is the context key of a request's *gatedConn.
type connKey struct{}

// Install has a server tell which of its connections are idle. Call it before
// the checker's Install.
func (g *Gate) Install(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if gc, ok := engine.Accepted(c).(*gatedConn); ok {
			ctx = context.WithValue(ctx, connKey{}, gc)
		}
		return ctx
	}
	s.ConnState = func(c net.Conn, st http.ConnState) {
		if gc, ok := engine.Accepted(c).(*gatedConn); ok {
			gc.setState(st)
		}
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gc, ok := r.Context().Value(connKey{}).(*gatedConn); ok && gc.wasEvicted() {
			// It came while its connection was being closed. Nobody would get the
			// answer, so nothing may come of it.
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// State takes in what the engine's own server says of a connection, and returns
// whether it still has its place.
func (g *Gate) State(c net.Conn, st http.ConnState) bool {
	gc, ok := engine.Accepted(c).(*gatedConn)
	if !ok {
		return true
	}
	gc.setState(st)
	return !gc.wasEvicted()
}

// A gatedConn has a place in a gate.
type gatedConn struct {
	net.Conn
	gate *Gate
	by   *caller

	// The gate's mutex guards these.
	resting *list.Element // in by.idle, while it is idle
	silent  bool          // no whole head has come yet
	gone    bool          // its place is free
	evicted bool          // it was closed to make room
}

// setState takes in what a server says of the connection.
func (c *gatedConn) setState(st http.ConnState) {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	switch st {
	case http.StateActive, http.StateHijacked:
		c.silent = false
		c.gate.work(c)
	case http.StateIdle:
		c.gate.rest(c)
	}
}

func (c *gatedConn) wasEvicted() bool {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	return c.evicted
}

// Close closes the connection and frees its place.
func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.gate.leave(c); c.evicted {
		return nil // it was closed already
	}
	return err
}

// NetConn returns the connection itself, which is read as it is.
func (c *gatedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite passes a tunnel's half close on.
func (c *gatedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
