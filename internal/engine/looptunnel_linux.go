package engine

import "syscall"

// A tunnel is relayed by a loop. What one end sends is written to the other one as it
// comes. What that does not take is kept until it does, and nothing more is read
// meanwhile. The goroutine of the call waits until the tunnel is over.
type tunnel struct {
	l    *loop
	c    *client
	ends [2]tunnelEnd // the client's, the cell's
	late *fuse        // ends the tunnel after one direction has
	over bool
	done chan struct{}
}

// A tunnelEnd is the connection at one end of a tunnel.
type tunnelEnd struct {
	t     *tunnel
	peer  *tunnelEnd
	sock  *socket
	fd    int
	stay  uint32
	ready bool    // there is more to read, perhaps
	wary  bool    // a read that comes short need not be the last
	ended bool    // all that it sends was read
	left  []byte  // for it, but not taken yet
	mem   *[]byte // where left stands; nil: elsewhere
	count int64   // bytes that it took
}

// relayInLoop relays a tunnel in a loop until it is over. It reports whether it has:
// not if an end can't be moved to one.
func (k *Call) relayInLoop(ln *link) bool {
	l, cell := k.c.srv.loopFor(), socketOf(ln.conn)
	if l == nil || k.c.sock == nil || cell == nil {
		return false
	}
	t := &tunnel{l: l, c: k.c, done: make(chan struct{})}
	client, far := &t.ends[0], &t.ends[1]
	*client = tunnelEnd{t: t, peer: far, sock: k.c.sock}
	*far = tunnelEnd{t: t, peer: client, sock: cell, left: k.body.behind()}
	if !t.leave() {
		return false
	}
	k.c.srv.entered()
	l.post(t.begin)
	<-t.done
	k.rep.BytesIn += far.count
	k.rep.BytesOut += client.count
	return true
}

// leave takes both ends out of the runtime's poller, or none.
func (t *tunnel) leave() bool {
	c, client, cell := t.c, &t.ends[0], &t.ends[1]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil || c.late || c.doomed {
		return false
	}
	client.fd, cell.fd = leaveTogether(client.sock, cell.sock)
	return client.fd >= 0
}

// begin has the loop take the tunnel in.
func (t *tunnel) begin() {
	t.l.tick()
	for i := range t.ends {
		e := &t.ends[i]
		e.stay = e.sock.arrive(func(stay uint32) { t.l.post(func() { e.attend(stay) }) })
		if t.l.watch(e.fd, slot{end: e}) != nil {
			t.end()
			return
		}
	}
	for i := range t.ends {
		e := &t.ends[i]
		e.attend(e.stay)
		e.push()
	}
}

// attend does what others have asked for, which is that the tunnel ends: see socket.
func (e *tunnelEnd) attend(stay uint32) {
	if closed, late, here := e.sock.wants(stay); here && (closed || late) {
		e.t.end()
	}
}

// event takes in what the poller says of an end.
func (e *tunnelEnd) event(events uint32) {
	defer func() {
		if p := recover(); p != nil { // others' tunnels go on
			e.t.l.srv.logPanic(p)
			e.t.end()
		}
	}()
	e.t.l.tick()
	if events&syscall.EPOLLOUT != 0 {
		e.push()
	}
	if events&^syscall.EPOLLOUT != 0 {
		e.ready = true
		e.wary = e.wary || events&^(syscall.EPOLLOUT|syscall.EPOLLIN) != 0
		e.pass()
	}
}

// pass passes on what the end has sent.
func (e *tunnelEnd) pass() {
	t, l := e.t, e.t.l
	for turns := 0; e.ready && !e.ended && len(e.peer.left) == 0 && !t.over; turns++ {
		if turns == max(1, readsInTurn/(1+max(len(l.again), len(l.turn)))) { // less each, the more of them have more
			l.later(e.fd)
			return
		}
		if l.mem == nil {
			l.mem = l.srv.pools.get()
		}
		n, err := readDescriptor(e.fd, *l.mem)
		switch {
		case n > 0:
			e.ready = n == len(*l.mem) || e.wary
			t.c.moveAt(t.c.srv.when(l.now))
			e.peer.take((*l.mem)[:n])
		case err == nil:
			e.ended = true
			e.peer.shut()
		case err == errAgain:
			e.ready = false
		default:
			t.end()
		}
	}
}

// take writes b, which stands in the loop's buffer, to the end.
func (e *tunnelEnd) take(b []byte) {
	n := e.write(b)
	if n == len(b) || e.t.over {
		return
	}
	e.left, e.mem = b[n:], e.t.l.mem
	e.t.l.mem = nil
}

// push writes what the end did not take before.
func (e *tunnelEnd) push() {
	if len(e.left) == 0 || e.t.over {
		return
	}
	n := e.write(e.left)
	if e.t.over {
		return
	}
	if e.left = e.left[n:]; len(e.left) > 0 {
		return
	}
	e.giveBack()
	e.peer.pass()
}

func (e *tunnelEnd) write(b []byte) (n int) {
	n, err := writeDescriptor(e.fd, b)
	if n > 0 {
		e.count += int64(n)
		e.t.c.moveAt(e.t.c.srv.when(e.t.l.now))
	}
	if err != nil && err != errAgain {
		e.t.end()
	}
	return max(n, 0)
}

// shut tells the end, which has taken all, that no more comes for it. The other
// direction has some time from then on.
func (e *tunnelEnd) shut() {
	t := e.t
	if e.ended || syscall.Shutdown(e.fd, syscall.SHUT_WR) != nil {
		t.end()
		return
	}
	t.late = newFuse(t.c.silent, func() { t.l.post(t.end) })
}

func (e *tunnelEnd) giveBack() {
	if e.mem != nil {
		e.t.l.srv.pools.put(e.mem)
	}
	e.left, e.mem = nil, nil
}

// end closes both ends.
func (t *tunnel) end() {
	if t.over {
		return
	}
	t.over = true
	l := t.l
	for i := range t.ends {
		e := &t.ends[i]
		if e.fd < len(l.slots) && l.slots[e.fd].end == e {
			l.unwatch(e.fd)
		}
		e.giveBack()
		e.sock.drop()
	}
	t.late.putOut()
	l.srv.left()
	l.spawn = true
	close(t.done)
}
