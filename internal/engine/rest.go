package engine

import "net/http"

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
	if c.rested.Load() || c.stream != nil { // a stream is no connection
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
