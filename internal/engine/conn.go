package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	connBuffer = 4 << 10   // first size of a connection's own buffer
	lingerMost = 256 << 10 // bytes thrown away after a refusal, and for how long at the end
	lingerTime = 250 * time.Millisecond

	// drainTime is how long net/http may look for the end of a body that its
	// handler left unread.
	drainTime = 2 * time.Second
)

// refusedHead is what net/http reads in place of a head that was refused, so
// that the answer comes in its turn, after those to earlier requests.
const refusedHead = refusedMethod + " / HTTP/1.1\r\nHost: refused.invalid\r\nConnection: close\r\n\r\n"

// A Conn is a client's connection whose HTTP/1 heads and framing are checked
// before its reader sees them. Reads give only bytes that passed. One reader
// at a time, as net/http has it.
type Conn struct {
	net.Conn
	checker *Checker

	// These belong to the reader.
	framing framing
	buf     []byte // bytes read and not given yet; buf[:ready] passed
	ready   int
	stand   string // what is left of a refusedHead
	err     error  // after which nothing more is given

	thrown   atomic.Int64 // bytes thrown away after a refusal
	reading  atomic.Bool
	hijacked atomic.Bool
	refusal  atomic.Uint32 // the Reason of a refusal; the reader alone sets it
	linger   atomic.Bool   // Close waits for the client
	ended    atomic.Int64  // requests that arrived whole; the reader alone counts
	served   int64         // requests that reached the handler; the handlers' own

	mu      sync.Mutex
	asked   time.Time // the read deadline that the reader asked for
	head    time.Time // when the head under way must be complete; zero: none is
	drain   time.Time // when the rest of an unread body must be there; zero: none is
	until   int64     // the value of ended that ends the drain
	current time.Time // what the inner connection has
}

// A tlsConn is a Conn inside TLS. net/http asks it for the connection's state.
type tlsConn struct {
	*Conn
	connectionStater
}

func newConn(inner net.Conn, k *Checker) *Conn {
	return &Conn{Conn: inner, checker: k, framing: framing{limits: k.limits(), h2c: !k.cfg.NoH2C}}
}

// Read gives bytes that passed. If a head is refused it gives a stand-in that
// only the Checker's handler understands; if a body is refused it fails with a
// [Refusal].
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.reading.Store(true)
	defer c.reading.Store(false)
	for {
		switch {
		case c.ready > 0:
			n := copy(p, c.buf[:c.ready])
			c.drop(n)
			return n, nil
		case c.stand != "":
			n := copy(p, c.stand)
			c.stand = c.stand[n:]
			return n, nil
		case c.err != nil:
			return 0, c.err
		case c.refused() != OK:
			c.err = c.throwAway()
			continue
		}
		n, err := c.fill(p)
		if n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// refused returns why the connection was refused, if it was.
func (c *Conn) refused() Reason { return Reason(c.refusal.Load()) }

// fill reads more from the client. Bytes that pass at once go straight to p
// and are counted in the result; what does not pass yet is kept.
func (c *Conn) fill(p []byte) (int, error) {
	direct, space := len(c.buf) == 0, p
	if !direct {
		c.makeRoom(1)
		space = c.buf[len(c.buf):cap(c.buf)]
	}
	got, err := c.Conn.Read(space)
	n := 0
	if got > 0 {
		var r Reason
		if direct {
			n, r = c.framing.advance(p[:got])
			c.keep(p[n:got])
		} else {
			c.buf = c.buf[:len(c.buf)+got]
			c.ready, r = c.framing.advance(c.buf)
		}
		c.note(r)
	}
	if err != nil && c.late(err) {
		c.note(ReasonSlow)
	}
	c.ended.Store(c.framing.ended)
	c.setTimes()
	if n > 0 || c.ready > 0 || c.refused() != OK {
		return n, nil // an error comes again with the next read
	}
	if err != nil && c.drains() {
		c.err = err // or net/http would take the rest of the body for a head
	}
	return 0, err
}

// note remembers a refusal, which ends the connection.
func (c *Conn) note(r Reason) {
	if r == OK || c.refused() != OK {
		return
	}
	c.refusal.Store(uint32(r))
	c.linger.Store(true)
	c.checker.count(r)
	if c.framing.phase == inHead {
		c.stand = refusedHead
	} else {
		c.err = &Refusal{r}
	}
	c.buf = c.buf[:c.ready]
	c.giveBack()
}

// keep stores bytes that did not pass yet.
func (c *Conn) keep(b []byte) {
	if len(b) > 0 {
		c.makeRoom(len(b))
		c.buf = append(c.buf, b...)
	}
}

// makeRoom makes room for n more bytes.
func (c *Conn) makeRoom(n int) {
	if c.buf == nil {
		c.buf = c.checker.getBuffer()
	}
	if need := len(c.buf) + n; need > cap(c.buf) {
		b := append(make([]byte, 0, max(need, 2*cap(c.buf))), c.buf...)
		c.checker.putBuffer(c.buf)
		c.buf = b
	}
}

// giveBack gives the buffer back when it is empty, so that a silent connection
// holds none.
func (c *Conn) giveBack() {
	if c.buf != nil && len(c.buf) == 0 {
		c.checker.putBuffer(c.buf)
		c.buf = nil
	}
}

// drop removes n bytes that were given.
func (c *Conn) drop(n int) {
	c.ready -= n
	c.buf = c.buf[:copy(c.buf, c.buf[n:])]
	c.giveBack()
}

// throwAway reads what the client still sends after a refusal, and returns how
// that ended.
func (c *Conn) throwAway() error {
	b := c.checker.getBuffer()
	defer c.checker.putBuffer(b)
	for c.thrown.Load() < lingerMost {
		n, err := c.Conn.Read(b[:cap(b)])
		c.thrown.Add(int64(n))
		if err != nil {
			return err
		}
	}
	return io.EOF
}

// Close closes the connection. After a refusal it first lets the client finish
// for a moment: closing with unread bytes would destroy the answer on its way.
// With a read under way it is the server that closes all it has, at once.
func (c *Conn) Close() error {
	if c.linger.CompareAndSwap(true, false) && !c.reading.Load() {
		c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
		if c.CloseWrite() == nil {
			c.throwAway()
		}
	}
	return c.Conn.Close()
}

// SetReadDeadline sets when reads end. While a head is under way, its own time
// counts instead, unless t has passed already: that is how net/http ends a
// read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	return c.applyLocked()
}

// SetDeadline sets when reads and writes end; see SetReadDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// setTimes starts or stops the time of a head, and ends that of a drain.
func (c *Conn) setTimes() {
	under := c.framing.midHead(len(c.buf)-c.ready) && c.refused() == OK
	c.mu.Lock()
	defer c.mu.Unlock()
	drained := !c.drain.IsZero() && c.framing.ended >= c.until
	if under == !c.head.IsZero() && !drained {
		return
	}
	if under != !c.head.IsZero() {
		c.head = time.Time{}
		if under {
			c.head = time.Now().Add(c.checker.headTimeout())
		}
	}
	if drained {
		c.drain = time.Time{}
		c.linger.Store(false)
	}
	c.applyLocked()
}

// leftBy takes in that the handler of a request has returned. If part of the
// request is still to come, it must do so soon, because net/http waits for it
// without a limit, often before it sends the answer. If it does not, nothing
// more is read from this connection: net/http would go on with the next
// request wherever it stopped.
func (c *Conn) leftBy(request int64) {
	if c.ended.Load() >= request || c.hijacked.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger.Store(true)
	c.drain, c.until = time.Now().Add(drainTime), request
	c.asked = time.Time{}
	c.applyLocked()
}

// drains reports whether the rest of an unread body is awaited.
func (c *Conn) drains() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.drain.IsZero()
}

func (c *Conn) applyLocked() error {
	want := c.asked
	switch {
	case !want.IsZero() && time.Until(want) <= 0:
	case !c.drain.IsZero():
		want = c.drain
	case !c.head.IsZero():
		want = c.head
	}
	if want.Equal(c.current) {
		return nil
	}
	c.current = want
	return c.Conn.SetReadDeadline(want)
}

// late reports whether err is the end of a head's time.
func (c *Conn) late(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.head.IsZero() && c.current.Equal(c.head) && time.Until(c.head) <= 0
}

// raw lets everything through from now on, and reports whether it may: not if
// the client sent rubbish before it had the answer. Only the handler that
// hijacked the connection may call it.
func (c *Conn) raw() bool {
	if c.refused() != OK {
		return false
	}
	c.hijacked.Store(true)
	c.framing.phase = inRaw
	c.ready = len(c.buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head = time.Time{}
	c.applyLocked()
	return true
}

// CloseWrite ends the writing side, where the connection can.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
