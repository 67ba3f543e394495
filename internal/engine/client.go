package engine

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// A stage is what a client's connection is doing, and so what its time is
// measured by: see sweep.
type stage uint8

const (
	atStart  stage = iota // nothing came yet
	atIdle                // between two requests
	atHead                // in the middle of a head
	atWork                // with the handler, or waiting for a place: these have limits of their own
	atCell                // for an answer's head
	atStream              // for more of an answer
	atWrite               // for the client to take more of an answer
	atAnswer              // for the client to take an answer that is not a cell's
	atTunnel              // for bytes of a tunnel
	atEnd                 // for the client to finish
)

// What the goroutine of a connection does when it is not to read on.
type action uint8

const (
	toRead    action = iota
	toServe          // the call that has begun
	toHand           // over to HTTP/2
	toClose          // at once
	toLinger         // close, but let the client finish for a moment
	toDestroy        // close so that the client sees that something is missing
	toResume         // what a loop has begun of the call
	toWait           // for the call's cell, in a loop
	toJoin           // a loop
)

// Why the time of a connection without a call is up.
type expiry uint32

const (
	notExpired  expiry = iota
	idleExpired        // or the server is shut down
	headExpired
)

// A client is a client's connection. While it is idle it holds no memory beside
// this, and the goroutine that waits for it.
type client struct {
	flow
	srv    *Server
	peer   netip.AddrPort
	secure bool

	// These belong to the goroutine of the connection.
	call   *Call // has what was read; nil if nothing was
	next   action
	heads  bool // a whole head has come
	one    [1]byte
	heeded time.Duration // how often the server looks at all connections for this one's sake; 0: nobody has asked

	// These belong to the goroutine of the connection, or to the loop that has it.
	sock    *socket // nil: it can't be moved
	loop    *loop   // that has it, or nil
	simple  bool    // the last call would have been one for a loop
	pending bool    // the call is with its cell, in the loop
	ready   bool    // the loop has more to read
	fin     bool    // the client sends no more than there is
	gather  int     // how many bytes of a request the loop waits for, or 0
	gathers uint32  // how often it has waited so
	stuck   []byte  // what the loop could not write, as the client takes no more

	state  atomic.Int64 // since when in which stage: see enter
	waits  atomic.Int64 // since when more of a request's body is waited for; 0: it isn't
	over   atomic.Uint32
	peeked atomic.Int64             // the beginning of the pause in which peekIdle looked last
	rested atomic.Bool              // it is asleep, and State was told that it is idle, or counts it so
	limits atomic.Pointer[Timeouts] // of the cell that the call goes to
	began  atomic.Int64             // the call, if it is limited as a whole
	soft   atomic.Int64             // when to ask patient; 0: never

	// The server's mutex guards these.
	roster *roster // that has it; nil: it has ended
	spot   int     // where

	mu      sync.Mutex
	tracked bool // a call is under way that may be ended, and these are its
	tunnel  bool
	key     cellway.Key
	cell    cellway.CellID
	link    *link
	cause   error           // why it was ended
	ctx     context.Context // ends with it; nil: nobody asked for it
	cancel  context.CancelCauseFunc
	patient Patience // of a call that waits for an answer's head; nil: it is not asked any more
	gaveUp  bool     // it has given up, which is no end of the call
	late    bool     // deadlines have been set
	doomed  bool     // and stay
}

func newClient(s *Server, conn net.Conn, secure bool) *client {
	c := &client{srv: s, secure: secure}
	c.init(conn)
	if !secure {
		c.sock = socketOf(conn)
	}
	c.rested.Store(true)
	c.peer = addrPort(conn.RemoteAddr())
	c.enter(atStart, s.now())
	return c
}

// addrPort returns an address as a number and a port; the zero AddrPort if it
// has none.
func addrPort(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	if tcp, ok := a.(*net.TCPAddr); ok {
		ap = tcp.AddrPort()
	} else if ap, _ = netip.ParseAddrPort(a.String()); !ap.IsValid() {
		return ap
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// enter begins a stage, at a time since the server's epoch.
func (c *client) enter(s stage, now int64) { c.state.Store(now<<4 | int64(s)) }

// stage returns the stage and since when it is.
func (c *client) stage() (s stage, since int64) {
	v := c.state.Load()
	return stage(v & 15), v >> 4
}

// move says that something moved, whatever the stage.
func (c *client) move() {
	v := c.state.Load()
	c.state.CompareAndSwap(v, c.srv.now()<<4|v&15) // or another one has said it
}

// serve serves the connection until it ends, or joins a loop. It begins with
// first.
func (c *client) serve(first action) {
	joined := false
	defer func() {
		if !joined {
			c.srv.forget(c)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			c.srv.logPanic(p)
			c.destroy()
		}
	}()
	c.next = first
	c.flush()
	for {
		switch c.next {
		case toRead:
			if c.advance() {
				if err := c.run(c); err != nil {
					c.failed(err)
				}
			}
		case toServe:
			c.serveCall()
		case toResume:
			c.resumeCall()
		case toJoin:
			if joined = c.join(); joined {
				return
			}
			c.next, c.simple = toRead, false
		case toHand:
			c.handOver()
			return
		case toLinger:
			c.linger()
			c.close()
			return
		case toDestroy:
			c.destroy()
			return
		default:
			c.close()
			return
		}
	}
}

// flush writes what a loop could not.
func (c *client) flush() {
	left := c.stuck
	if c.stuck = nil; len(left) == 0 {
		return
	}
	k := c.call
	if c.next == toResume && k.flight.stage == flightBody {
		_, k.answer.werr = k.write(left, atWrite)
		return
	}
	// The call has ended, but its answer has its time still.
	c.mu.Lock()
	c.tracked = true
	c.mu.Unlock()
	s, since := c.stage()
	c.enter(atAnswer, c.srv.now())
	if _, err := c.conn.Write(left); err != nil {
		if c.next == toResume {
			k.broken = true // but the handler has to hear of its end
		} else {
			c.next = toDestroy
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked, c.cause = false, nil
	c.calmLocked()
	c.enter(s, since)
}

// space is where the next bytes of a head go.
func (c *client) space() []byte {
	if c.call == nil {
		if c.raw == nil {
			return c.one[:] // nobody knows when they come
		}
		c.call = c.srv.lease(c)
	}
	return c.call.in.space()
}

// took takes bytes in. It is called within a turn of the poller, and serves
// there what can be served without reading more from the client.
func (c *client) took(n int) (more bool) {
	if c.call == nil {
		c.call = c.srv.lease(c)
		c.call.in.add(c.one[:n])
		return true // the rest is there, without another wait
	}
	c.call.in.end += n
	return c.advance()
}

// quiet gives the memory back between two requests. A read that came short is
// trusted to have been the last, which saves one that would find nothing.
// The poller will tell of bytes that come later, but not of an end that came with
// these: see peekIdle.
func (c *client) quiet() {
	if c.call != nil && c.call.in.empty() {
		c.srv.giveBack(c.call)
		c.call = nil
	}
}

// advance serves the requests that are there, as far as it can. It returns
// false when c.next says what is to be done.
func (c *client) advance() (more bool) {
	c.next = toRead
	for c.call != nil && !c.call.in.empty() {
		if c.gather > len(c.call.in.bytes()) {
			return true
		}
		c.gather = 0
		if !c.heads && c.preface() {
			return c.next == toRead
		}
		in := &c.call.in
		length, next, r := ScanHead(in.bytes(), in.scanned)
		switch {
		case r != OK:
			c.refuse(r)
			return false
		case length == 0:
			in.scanned = next
			if most := c.srv.limits.Bytes; most > 0 && len(in.bytes()) > most {
				c.refuse(ReasonTooLarge)
				return false
			}
			if s, _ := c.stage(); s != atHead {
				c.enter(atHead, c.srv.now())
			}
			return true
		}
		in.scanned, c.heads = 0, true
		if r := c.call.begin(length); r != OK {
			c.refuse(r)
			return false
		}
		if !c.call.whole() {
			if c.loop != nil && c.collects() {
				continue
			}
			c.next = toServe // not from within: its body is still to be read
			return false
		}
		if c.loop != nil {
			c.stepCall()
		} else {
			c.serveCall()
		}
		if c.next != toRead {
			return false
		}
	}
	if c.raw == nil {
		c.quiet()
	}
	if c.joins() {
		c.next = toJoin
		return false
	}
	return true
}

// preface reports whether the first bytes are those of HTTP/2, or may be.
func (c *client) preface() bool {
	b := c.call.in.bytes()
	if len(b) < 3 || !bytes.HasPrefix(bytesOf(preface), b[:min(len(b), len(preface))]) {
		return false
	}
	switch {
	case c.secure || c.srv.cfg.Checker.cfg.NoH2C:
		c.heads = true
		c.refuse(ReasonH2)
	case len(b) >= len(preface):
		c.next = toHand
	}
	return true
}

// handOver gives the connection to the server of HTTP/2.
func (c *client) handOver() {
	c.expire(notExpired)
	began := bytes.Clone(c.call.in.bytes())
	c.srv.giveBack(c.call)
	c.call = nil
	c.srv.other.give(newConn(&begunConn{Conn: c.conn, begun: began}, c.srv.cfg.Checker))
}

// A begunConn is a connection of which some bytes were read already.
type begunConn struct {
	net.Conn
	begun []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		return n, nil
	}
	c.begun = nil
	return c.Conn.Read(p)
}

// CloseWrite ends the writing side, where the connection can.
func (c *begunConn) CloseWrite() error { return closeWrite(c.Conn) }

// NetConn returns the connection itself.
func (c *begunConn) NetConn() net.Conn { return c.Conn }

// refuse answers a head that can't be read in one way, and ends the connection.
func (c *client) refuse(r Reason) {
	c.srv.cfg.Checker.count(r)
	c.call.refuse()
	c.srv.cfg.Handler.RefuseCall(c.call, r)
	if c.next = c.call.end(); c.next != toDestroy {
		c.next = toLinger
	}
}

// serveCall has the handler serve the call that has begun.
func (c *client) serveCall() {
	if c.rested.Load() && !c.wake() {
		c.next = toDestroy
		return
	}
	c.srv.cfg.Handler.ServeCall(c.call)
	c.ended()
}

// resumeCall has the handler serve the rest of a call that a loop has begun.
func (c *client) resumeCall() {
	c.srv.stepper.ResumeCall(c.call, c.call.resume())
	c.ended()
}

// ended ends the call.
func (c *client) ended() {
	k := c.call
	c.simple = (k.whole() || k.gatherable()) && k.rep.BytesOut <= simpleBody
	c.next = k.end()
	if c.srv.closing.Load() && c.next == toRead {
		c.next = toLinger
	}
}

// wake says that the connection is idle no more, and returns whether it may go
// on.
func (c *client) wake() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested.Store(false)
	c.srv.move(c, &c.srv.awake)
	return c.srv.cfg.State == nil || c.srv.cfg.State(c.conn, http.StateActive)
}

// peekIdle ends a connection that is idle, and whose client had said before that
// it would send no more: see quiet.
func (c *client) peekIdle(since int64) {
	if c.peeked.Swap(since) != since && c.flow.look() == peekEnd {
		c.expireFrom(atIdle, since, idleExpired)
	}
}

// rest says that the connection has been idle for a while. Those that are busy
// pause for less, and nobody is told each time.
func (c *client) rest(since int64) {
	if c.rested.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil { // others' time is looked after on the same goroutine
			c.srv.logPanic(p)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested.Store(true) // from here on a call that begins wakes it, or has begun
	if s, at := c.stage(); s != atIdle || at != since {
		c.rested.Store(false)
		return
	}
	c.srv.move(c, &c.srv.asleep)
	if c.srv.cfg.State != nil {
		c.srv.cfg.State(c.conn, http.StateIdle)
	}
}

// failed sorts the error of a read between two calls.
func (c *client) failed(err error) {
	c.next = toClose
	why := expiry(c.over.Load())
	switch {
	case !isDeadline(err) || why == notExpired:
	case why == headExpired && c.call != nil && !c.call.in.empty():
		c.expire(notExpired)
		c.refuse(ReasonSlow)
	case why == idleExpired && c.flow.look() == peekBytes:
		// A request came at the last moment. It is answered, and no more.
		c.expire(notExpired)
		c.next = toRead
	}
}

// expire says why the time of a connection without a call is up, and ends its
// read; or takes that back.
func (c *client) expire(why expiry) {
	if why == notExpired && expiry(c.over.Load()) == notExpired {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expireLocked(why)
}

func (c *client) expireLocked(why expiry) {
	c.over.Store(uint32(why))
	if why != notExpired {
		c.conn.SetReadDeadline(past)
	} else {
		c.unlimitLocked()
	}
}

// unlimitLocked takes the deadline of reads back.
func (c *client) unlimitLocked() {
	if !c.doomed {
		c.conn.SetReadDeadline(time.Time{})
	}
}

// calmLocked takes back the deadlines that a call was ended by.
func (c *client) calmLocked() {
	if c.late && !c.doomed {
		c.late = false
		c.conn.SetDeadline(time.Time{})
	}
}

// retire ends an idle connection, and any other after its answer.
func (c *client) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, since := c.stage(); s == atIdle || s == atStart && c.srv.now()-since > int64(time.Second) {
		c.expireLocked(idleExpired)
	}
}

// abandon breaks the connection off.
func (c *client) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(ErrServerClosed)
	c.doomed = true
	c.conn.SetDeadline(past)
}

// linger lets the client finish for a moment: closing with unread bytes would
// destroy the answer on its way.
func (c *client) linger() {
	c.enter(atEnd, c.srv.now())
	if closeWrite(c.conn) != nil && (c.call == nil || !c.call.body.unread()) {
		return // it can't be told of the end, and has nothing more to send
	}
	d := discard{until: time.Now().Add(drainTime), c: c}
	c.conn.SetReadDeadline(time.Now().Add(lingerTime))
	_ = c.run(&d) // the client ends it, or the time does
	d.quiet()
}

// A discard throws away what comes, for a while.
type discard struct {
	c     *client
	until time.Time
	mem   *[]byte
}

func (d *discard) space() []byte {
	if d.mem == nil {
		d.mem = d.c.srv.pools.getSmall()
	}
	return *d.mem
}

func (d *discard) took(int) bool {
	now := time.Now()
	if !now.Before(d.until) || d.c.srv.closing.Load() {
		return false
	}
	d.c.conn.SetReadDeadline(now.Add(lingerTime))
	return true
}

func (d *discard) quiet() {
	if d.mem != nil {
		d.c.srv.pools.putSmall(d.mem)
		d.mem = nil
	}
}

// close closes the connection.
func (c *client) close() {
	if c.call != nil {
		c.srv.giveBack(c.call)
		c.call = nil
	}
	c.conn.Close() // nobody is left to tell
}

// destroy closes the connection so that the client sees that its answer is not
// whole.
func (c *client) destroy() {
	resetOnClose(c.conn)
	c.call = nil // nobody knows what state it is in
	c.mu.Lock()
	l := c.link
	c.link, c.tracked = nil, false
	c.mu.Unlock()
	if l != nil {
		l.conn.Close()
	}
	c.conn.Close()
}

// resetOnClose has the other side see a reset when c is closed, where that can
// be.
func resetOnClose(c net.Conn) {
	for {
		if l, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0) // then it is only closed
			return
		}
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		c = inner.NetConn()
	}
}
