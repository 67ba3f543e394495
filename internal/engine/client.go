package engine

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/http2"
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
	toPart           // the server is shut down, which the client was not told with its last answer
)

// A client is a client's connection. While it is idle it holds no memory beside
// this, and the goroutine that waits for it.
type client struct {
	flow
	srv    *Server
	peer   netip.AddrPort
	secure bool
	stream *http2.Stream // what conn is, or nil

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
	bulky   bool    // the last request had a body that is not short, and that a loop can wait for
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
		case toPart:
			c.part()
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
	if c.stream != nil {
		return c.streamSpace()
	}
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
				c.expire(notExpired) // it has come at the last moment
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
	c.expire(notExpired) // it may have come at the last moment
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
	gatherable := k.gatherable()
	c.bulky = gatherable && k.head.Length > smallBuffer
	c.simple = (k.whole() || gatherable) && !k.overTLS && k.rep.BytesOut <= simpleBody
	c.next = k.end()
	if c.srv.closing.Load() && c.next == toRead {
		c.next = toPart
	}
}
