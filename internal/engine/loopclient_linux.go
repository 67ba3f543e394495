package engine

import (
	"io"
	"os"
	"slices"
	"syscall"
	"time"
)

// joins reports whether the connection, which has a goroutine, should go to a
// loop: it is idle, and its last call would have been served there.
func (c *client) joins() bool {
	return c.simple && c.sock != nil && c.loop == nil && !c.srv.closing.Load() && (c.call == nil || c.call.in.empty())
}

// settle gives a new connection that no loop has a place in the runtime's poller.
func (c *client) settle(s *socket) {
	if c.raw == nil && s.tcp() != nil {
		c.again()
	}
}

// join gives the connection to a loop, and reports whether it has.
func (c *client) join() bool {
	l := c.srv.loopFor()
	if l == nil {
		c.sock = nil // nor will there be one
		return false
	}
	if c.call != nil {
		c.quiet()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late || c.doomed || expiry(c.over.Load()) != notExpired {
		return false
	}
	fd, ok := c.sock.leave()
	if !ok {
		c.sock = nil
		return false
	}
	c.loop, c.simple = l, false
	c.raw, c.fd, c.fin = nil, fd, false
	c.srv.entered()
	l.join(c)
	return true
}

// add takes in a connection that has joined.
func (l *loop) add(c *client, gen uint32) {
	*l.slotFor(c.fd) = slot{gen: gen, c: c}
	attend := func(stay uint32) { l.guard(c, func() { l.attend(c, stay) }) }
	attend(c.sock.arrive(func(stay uint32) { l.post(func() { attend(stay) }) }))
}

// attend does what others have asked for: see socket.
func (l *loop) attend(c *client, stay uint32) {
	closed, late, here := c.sock.wants(stay)
	if !here {
		return
	}
	l.tick()
	switch {
	case c.pending && c.call.cause() != nil, c.pending && closed:
		if closed {
			c.cut(errClientReset)
		}
		l.stop(c.call)
	case c.pending:
	case closed:
		l.discard(c)
	case late:
		if c.call != nil {
			l.lend(c.call)
		}
		c.failed(os.ErrDeadlineExceeded)
		if c.next == toRead {
			l.read(c)
			return
		}
		l.act(c)
	}
}

// readable takes in what the poller says of a client's connection.
func (l *loop) readable(c *client, events uint32) {
	c.fin = c.fin || events&syscall.EPOLLRDHUP != 0
	switch {
	case !c.pending:
		l.read(c)
	case events&(syscall.EPOLLERR|syscall.EPOLLHUP) != 0:
		c.ready = true
		c.cut(errClientReset)
	default:
		c.ready = true // it is read when its call has ended
	}
}

// read reads what a client has sent, and serves it.
func (l *loop) read(c *client) {
	if c.pending {
		return
	}
	c.ready = false
	for range readsInTurn {
		if c.call == nil {
			c.call = l.srv.lease(c)
		} else {
			l.lend(c.call)
		}
		wide := c.bulky && c.call.in.empty()
		if wide {
			c.call.in.room(wholeBuffer) // the next one may come as one, too
		}
		space := c.call.in.space()
		n, err := readDescriptor(c.fd, space)
		switch {
		case n > 0:
			l.tick()
			c.call.in.end += n
			if wide {
				c.call.in.tighten()
			}
			c.ready = n == len(space) || c.fin // nobody will tell of the end again
			if !c.advance() || len(c.stuck) > 0 {
				l.act(c)
				return
			}
			if !c.ready {
				c.quiet()
				return
			}
		case err == errAgain:
			c.quiet()
			return
		default:
			if err == nil {
				err = io.EOF
			}
			c.failed(err)
			l.act(c)
			return
		}
	}
	l.later(c.fd)
}

// A gathering is a request of which a part is there.
type gathering struct {
	at    place
	turn  uint32 // of the client's
	since time.Time
}

// collects makes the loop wait a moment for the rest of the body of the call that
// has begun, if that is not long, so that it is sent as one. The call begins
// again when all is there.
func (c *client) collects() bool {
	k := c.call
	if !k.gatherable() {
		return false
	}
	c.expire(notExpired) // it may have come at the last moment
	c.gather = k.size + int(k.head.Length)
	k.in.room(c.gather - len(k.in.bytes()))
	k.in.scanned = 0
	c.gathers++
	c.loop.parts = append(c.loop.parts, gathering{c.loop.place(c), c.gathers, c.loop.now})
	return true
}

// streamLate has those requests streamed whose rest has not come in time.
func (l *loop) streamLate() {
	n := 0
	for ; n < len(l.parts); n++ {
		c := l.at(l.parts[n].at)
		if c == nil || c.gather == 0 || c.gathers != l.parts[n].turn {
			continue // it is done
		}
		if l.now.Sub(l.parts[n].since) < gatherFor {
			break
		}
		c.gather = 0
		l.lend(c.call)
		l.promote(c, toRead)
	}
	l.parts = slices.Delete(l.parts, 0, n)
}

// stepCall serves the call that has begun as far as that takes no waiting.
func (c *client) stepCall() {
	if c.rested.Load() && !c.wake() {
		c.next = toDestroy
		return
	}
	if len(c.stuck) > 0 {
		c.next = toServe // it is not to begin before the answers to others have gone
		return
	}
	c.expire(notExpired) // it may have come at the last moment
	switch c.srv.stepper.StepCall(c.call) {
	case Served:
		c.ended()
	case Sent:
		c.next, c.pending = toWait, true
	default:
		c.next = toResume
	}
}

// act does what is next for a connection that does not just read on.
func (l *loop) act(c *client) {
	switch {
	case c.next == toWait:
	case len(c.stuck) > 0:
		l.promote(c, c.next)
	case c.next == toRead:
		l.proceed(c)
	case c.next == toClose:
		c.close()
		l.discard(c)
	case c.next == toDestroy:
		c.destroy()
		l.discard(c)
	default:
		l.promote(c, c.next)
	}
}

// proceed goes on after a call.
func (l *loop) proceed(c *client) {
	if c.next != toRead || len(c.stuck) > 0 {
		l.act(c)
		return
	}
	if c.call != nil && !c.call.in.empty() && (!c.advance() || len(c.stuck) > 0) {
		l.act(c)
		return
	}
	if c.ready {
		l.later(c.fd)
		return
	}
	c.quiet()
}

// discard forgets a connection that is closed.
func (l *loop) discard(c *client) {
	l.unwatch(c.fd)
	c.sock.drop()
	l.srv.left()
	c.loop, c.fd = nil, -1
	if c.call != nil {
		l.srv.giveBack(c.call)
		c.call = nil
	}
	c.conn.Close() // those around it have to know
	l.srv.forget(c)
}

// promote gives the connection a goroutine, which begins with that.
func (l *loop) promote(c *client, first action) {
	if l.slots[c.fd].c == c {
		l.unwatch(c.fd)
	}
	l.srv.left()
	c.mu.Lock()
	err := c.sock.enter(l.reserve)
	c.loop, c.simple = nil, false
	c.again()
	c.mu.Unlock()
	if c.call != nil {
		l.leave(c.call)
		c.call.fd = -1
	}
	if err != nil {
		l.srv.cfg.Log.Warn("a client's connection is lost", "error", err)
	}
	l.spawn = true
	go c.serve(first)
}
