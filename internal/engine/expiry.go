package engine

import "time"

// Why the time of a connection without a call is up.
type expiry uint32

const (
	notExpired  expiry = iota
	idleExpired        // or the server is shut down
	headExpired
)

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

// isDoomed reports whether the connection was broken off.
func (c *client) isDoomed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doomed
}

// retire ends a connection that is idle for a while, and any other after its answer.
// One that has just had an answer may have sent its next request already: see judge.
func (c *client) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, since := c.stage()
	idle := time.Duration(c.srv.now() - since)
	if s == atIdle && idle >= lingerTime || s == atStart && idle > time.Second {
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
