package engine

import (
	"net"
	"time"
)

// linger lets the client finish for a moment: closing with unread bytes would
// destroy the answer on its way.
func (c *client) linger() {
	if c.stream != nil {
		return // it can be told by a frame
	}
	c.enter(atEnd, c.srv.now())
	if closeWrite(c.conn) != nil && (c.call == nil || !c.call.body.unread()) {
		return // it can't be told of the end, and has nothing more to send
	}
	d := discard{until: time.Now().Add(drainTime), c: c}
	c.conn.SetReadDeadline(time.Now().Add(lingerTime))
	_ = c.run(&d) // the client ends it, or the time does
	d.quiet()
}

// part gives the client of a server that is shut down a moment for one more request,
// as its last answer had begun before and did not say that it was the last: that to
// this one will. What is there already is served in any case.
func (c *client) part() {
	c.next = toRead
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.doomed {
		c.over.Store(uint32(idleExpired))
		c.conn.SetReadDeadline(time.Now().Add(lingerTime))
	}
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
	if !now.Before(d.until) {
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
