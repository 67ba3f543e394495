package engine

import (
	"io"
	"slices"
	"syscall"
	"time"
)

// take returns a link to e that the loop has, or nil.
func (l *loop) take(e *endpoint) *link {
	idle := l.links[e]
	if idle == nil {
		if e.scheme == "https" {
			return nil // TLS has a goroutine
		}
		idle = new([]*link)
		l.links[e] = idle
		e.pool.all.addLoop(l)
	}
	if n := len(*idle) - 1; n >= 0 {
		ln := (*idle)[n]
		(*idle)[n] = nil
		*idle = (*idle)[:n]
		return ln
	}
	for {
		ln := e.links.take()
		if ln == nil || l.adopt(ln) {
			return ln
		}
	}
}

// adopt makes a link the loop's, or closes it.
func (l *loop) adopt(ln *link) bool {
	s := socketOf(ln.conn)
	if s == nil {
		ln.conn.Close()
		return false
	}
	fd, ok := s.leave()
	if !ok {
		ln.conn.Close()
		return false
	}
	ln.sock, ln.loop, ln.raw, ln.fd, ln.fin = s, l, nil, fd, false
	stay := s.arrive(func(stay uint32) { l.post(func() { l.attendLink(ln, stay) }) })
	var one [1]byte
	n, err := readDescriptor(fd, one[:])
	if n > 0 {
		ln.e.strayed(ln.idle, l.now)
	}
	if closed, _, _ := s.wants(stay); closed || err != errAgain || l.watch(fd, slot{l: ln}) != nil {
		l.close(ln)
		return false
	}
	return true
}

// attendLink closes a link that somebody has closed, and ends the wait for an answer
// over one whose reads somebody has ended: see [Patience].
func (l *loop) attendLink(ln *link, stay uint32) {
	switch closed, late, here := ln.sock.wants(stay); {
	case !here:
	case closed:
		l.close(ln)
	case late && ln.call != nil:
		l.tick()
		l.stop(ln.call)
	}
}

// close closes a link that the loop has.
func (l *loop) close(ln *link) {
	if ln.fd < len(l.slots) && l.slots[ln.fd].l == ln {
		l.unwatch(ln.fd)
	}
	ln.sock.drop()
	ln.loop, ln.fd = nil, -1
	ln.conn.Close() // it counts
}

// letGo gives a link a place in the runtime's poller again.
func (l *loop) letGo(ln *link) error {
	l.unwatch(ln.fd)
	ln.loop, ln.call = nil, nil
	err := ln.sock.enter(l.reserve)
	ln.again()
	return err
}

// keep keeps a link for the next request.
func (l *loop) keep(ln *link) {
	idle := l.links[ln.e]
	if idle == nil || len(*idle) >= l.share(ln.e) || ln.fin || ln.e.gone.Load() || ln.e.loose.is(ln.idle) {
		l.close(ln)
		return
	}
	*idle = append(*idle, ln)
}

// share returns how many links to e the loop may keep.
func (l *loop) share(e *endpoint) int {
	return max(1, e.cfg.Limits.IdleConns/max(1, l.srv.cfg.Loops))
}

// reap closes links that were idle for too long.
func (l *loop) reap(now time.Time) {
	for e, idle := range l.links {
		most := e.cfg.Timeouts.IdleConn
		n := 0
		for n < len(*idle) && (e.gone.Load() || most > 0 && now.Sub((*idle)[n].idle) >= most) {
			l.close((*idle)[n])
			n++
		}
		*idle = slices.Delete(*idle, 0, n)
		if len(*idle) == 0 && e.gone.Load() {
			delete(l.links, e)
		}
	}
}

// closeIdle closes the links to e that carry nothing.
func (l *loop) closeIdle(e *endpoint) {
	if idle := l.links[e]; idle != nil {
		for _, ln := range *idle {
			l.close(ln)
		}
		clear(*idle)
		*idle = (*idle)[:0]
	}
}

// answered takes in that there is something to read from a cell.
func (l *loop) answered(ln *link, events uint32) {
	k := ln.call
	if len(ln.left) > 0 {
		l.push(ln)
	}
	if events&^syscall.EPOLLOUT == 0 {
		return
	}
	ln.fin = ln.fin || events&syscall.EPOLLRDHUP != 0
	if k == nil {
		// It has been closed, or says something that nobody asked for.
		if idle := l.links[ln.e]; idle != nil {
			if i := slices.Index(*idle, ln); i >= 0 {
				*idle = slices.Delete(*idle, i, i+1)
				var one [1]byte
				if n, _ := readDescriptor(ln.fd, one[:]); n > 0 {
					l.tick()
					ln.e.strayed(ln.idle, l.now)
				}
				l.close(ln)
			}
		}
		return
	}
	l.guard(k.c, func() { l.step(k, ln) })
}

// push sends what could not be sent before. An error is met by whoever reads.
func (l *loop) push(ln *link) {
	if n, err := writeDescriptor(ln.fd, ln.left); err == nil {
		ln.left = ln.left[n:]
	}
}

// step reads on of an answer.
func (l *loop) step(k *Call, ln *link) {
	l.tick()
	l.equip(k)
	if k.flight.stage == flightHead {
		if !l.readHead(k, ln) {
			return
		}
	}
	b := &k.answer
	for turns := 0; !b.done; turns++ {
		if len(k.c.stuck) > 0 || b.werr != nil || b.bad != OK || turns == readsInTurn {
			l.resume(k, flightBody, nil)
			return
		}
		space := b.space()
		n, err := readDescriptor(ln.fd, space)
		ln.more = n == len(space)
		switch {
		case n > 0:
			if b.took(n) && n < len(space) && !ln.fin && len(k.c.stuck) == 0 {
				b.quiet()
				l.leave(k)
				return
			}
		case err == nil:
			l.resume(k, flightBody, io.EOF)
			return
		case err == errAgain:
			b.quiet()
			l.leave(k)
			return
		default:
			l.resume(k, flightBody, err)
			return
		}
	}
	l.finish(k, ln)
}

// readHead reads the head of an answer and sends it on. It reports whether that
// has come about.
func (l *loop) readHead(k *Call, ln *link) bool {
	for r := &k.reply; ; {
		space := r.space()
		n, err := readDescriptor(ln.fd, space)
		ln.more = n == len(space)
		switch {
		case n > 0:
			if r.took(n) {
				if n < len(space) && !ln.fin {
					l.leave(k)
					return false
				}
				continue
			}
		case err == nil:
			l.lose(k, false, io.EOF)
			return false
		case err == errAgain:
			if r.quiet(); r.buf != nil {
				l.leave(k)
			}
			return false
		default:
			l.lose(k, false, err)
			return false
		}
		break
	}
	if k.reply.bad != OK || k.reply.head.Status < 200 {
		l.resume(k, flightAwait, nil)
		return false
	}
	k.heads(ln.e, k.since)
	if k.inspect() {
		l.resume(k, flightSwallow, nil)
		return false
	}
	k.flight.stage = flightBody
	if !k.sendStart() {
		k.answer.done = k.answer.done && !k.broken
		l.finish(k, ln)
		return false
	}
	return true
}

// finish ends a forwarding whose answer is whole, or can't be.
func (l *loop) finish(k *Call, ln *link) {
	c := k.c
	ln.call = nil
	k.flight = flight{}
	if ln.more { // the poller has told of all that there was, and would not again
		var one [1]byte
		n, err := readDescriptor(ln.fd, one[:])
		ln.fin = ln.fin || err != errAgain
		if n > 0 {
			ln.e.strayed(l.now, l.now)
		}
	}
	k.release(ln)
	ln.left = nil
	k.leaveEndpoint()
	k.finish()
	k.leaveGate()
	k.pool.count(&k.rep)
	c.pending = false
	if !l.srv.stepper.EndCall(k, &k.rep) {
		k.flight.stage = flightEnded
		l.promote(c, toResume)
		return
	}
	c.ended()
	if k.owns {
		k.disown()
		k.use(l.work)
	}
	l.proceed(c)
}
