package http2

import (
	"runtime"
	"sync"
	"time"
)

const (
	// gathered is how many bytes are gathered while others are being written. Who has
	// more waits.
	gathered = 32 << 10
	// turns is how often who writes goes on for others.
	turns = 8
)

// An output is what is sent to the client. Frames are appended to it under the
// connection's mutex, and written by whoever finds that nobody is writing; so what
// several streams have to say at a time goes in one piece. The connection's mutex
// guards all of it.
type output struct {
	buf     []byte
	spare   []byte
	busy    bool // somebody is writing
	err     error
	waiting int       // how many wait for room, or for the end
	room    sync.Cond // for who is no stream
}

// full reports whether who appends has to wait first.
func (o *output) full() bool { return len(o.buf) >= gathered && o.busy }

// appendingLocked makes room for frames.
func (c *Conn) appendingLocked() {
	if c.out.buf == nil {
		c.out.buf = getFrames()
	}
}

// waitLocked waits for room; it is for who is no stream.
func (c *Conn) waitLocked() error {
	o := &c.out
	for o.full() && o.err == nil {
		o.waiting++
		o.room.Wait()
		o.waiting--
	}
	return o.err
}

// send has whole frames written by another goroutine: who reads the connection goes on,
// as a client may take nothing before it has sent something. It waits where too much is
// gathered.
func (c *Conn) send(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.waitLocked(); err != nil {
		return err
	}
	c.postLocked(b)
	return nil
}

// postLocked is send for what is short, and sent seldom: it waits for nothing.
func (c *Conn) postLocked(b []byte) {
	c.appendingLocked()
	o := &c.out
	o.buf = append(o.buf, b...)
	if !o.busy {
		o.busy = true
		go c.commitOn()
	}
}

// commitLocked has what there is written. It does not wait for who is writing.
func (c *Conn) commitLocked() error {
	o := &c.out
	if o.busy || o.err != nil || len(o.buf) == 0 {
		return o.err
	}
	o.busy = true
	if c.running > 1 && len(o.buf) < gathered/2 {
		// Others may be as far.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for turn := 0; len(o.buf) > 0 && o.err == nil; turn++ {
		if turn == turns {
			go c.commitOn()
			return nil
		}
		c.writeLocked()
	}
	c.doneLocked()
	return o.err
}

// commitOn goes on where commitLocked has done enough for others.
func (c *Conn) commitOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out.buf) > 0 && c.out.err == nil {
		c.writeLocked()
	}
	c.doneLocked()
}

// writeLocked writes what there is. The mutex is not held meanwhile.
func (c *Conn) writeLocked() {
	o := &c.out
	b := o.buf
	o.buf, o.spare = o.spare[:0], nil
	c.wakeLocked()
	c.mu.Unlock()
	var err error
	for rest := b; len(rest) > 0 && err == nil; {
		part := rest[:min(len(rest), maxFrame)] // so that the time is one for so much
		rest = rest[len(part):]
		c.writing.Store(time.Now().UnixNano())
		_, err = c.conn.Write(part)
	}
	c.writing.Store(0)
	c.mu.Lock()
	o.spare, o.err = b, err
}

// doneLocked says that nobody writes any more.
func (c *Conn) doneLocked() {
	o := &c.out
	o.busy = false
	putFrames(o.buf)
	putFrames(o.spare)
	o.buf, o.spare = nil, nil
	c.wakeLocked()
}

// wakeLocked has those go on who wait for room.
func (c *Conn) wakeLocked() {
	if c.out.waiting == 0 {
		return
	}
	c.out.room.Broadcast()
	for _, s := range c.streams {
		if s.waits {
			s.cond.Broadcast()
		}
	}
}

// drainLocked waits until nobody writes any more.
func (c *Conn) drainLocked() {
	for c.out.busy {
		c.out.waiting++
		c.out.room.Wait()
		c.out.waiting--
	}
}
