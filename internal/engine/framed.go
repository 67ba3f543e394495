package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// errSurplus ends a connection over which a cell has sent more than its answer.
var errSurplus = errors.New("the cell sent more than its answer")

// A framed connection carries HTTP/1 for package http, and hands on no byte beyond the
// end of an answer. Package http lends a connection to the next request before it looks
// whether anything is left of the last answer, and would take that for the answer to
// whoever comes next.
type framed struct {
	net.Conn                   // a cellConn, or TLS over one
	own, below syscall.RawConn // of Conn itself, and of what it sends its bytes over, if they are known

	mu      sync.Mutex
	ends    answerEnds
	ended   time.Time // the last answer
	used    bool      // a request was to go over it
	surplus bool      // more came than was asked for
}

// frame has what dial returns framed, unless HTTP/2 was agreed on for it.
func frame(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil || protocolOf(c) == "h2" {
			return c, err
		}
		return newFramed(c), nil
	}
}

// newFramed returns c framed.
func newFramed(c net.Conn) *framed {
	f := &framed{Conn: c}
	f.own, f.below = rawConns(c)
	return f
}

// inside returns the connection that c is around, if it is framed.
func inside(c net.Conn) net.Conn {
	if f, ok := c.(*framed); ok {
		return f.Conn
	}
	return c
}

// followed says that a request of that method is to go over a connection that package
// http has chosen, and reports whether what comes next is sure to be the answer to that
// one. If it is not, as more than the last answer has come, or the end, the connection is
// closed, so that nothing is sent. Package http may have read more than its last answer
// already, and take that for the next one: it is for the caller to believe nothing that
// it says of this request.
func followed(c net.Conn, method string) (sound bool) {
	f, ok := c.(*framed)
	if !ok {
		return true
	}
	f.mu.Lock()
	sound = !f.surplus && !(f.used && f.spoiltLocked()) && f.ends.begin(method)
	f.used = true
	f.mu.Unlock()
	if !sound {
		f.Conn.Close()
	}
	return sound
}

// spoiltLocked reports whether the connection is to carry no other request.
func (c *framed) spoiltLocked() bool {
	if c.looseLocked() {
		return true
	}
	if c.below == nil {
		return false
	}
	found := peek(c.below)
	if found == peekBytes && c.own != nil { // else it may be TLS's own
		c.strayedLocked()
	}
	return found != peekNothing
}

// looseLocked reports whether the endpoint is loose.
func (c *framed) looseLocked() bool {
	cc := cellConnOf(c.Conn)
	return cc != nil && cc.of.loose.is(time.Now())
}

// strayedLocked tells the endpoint that it has sent more than an answer.
func (c *framed) strayedLocked() {
	if cc := cellConnOf(c.Conn); cc != nil {
		go cc.of.strayed(c.ended, time.Now()) // package http may hold locks of its own
	}
}

// Read reads what belongs to the answer under way. Where more has come, or may, the end of
// the answer is the end of the connection: package http lends out no connection of
// which it has read the end.
func (c *framed) Read(p []byte) (int, error) {
	c.mu.Lock()
	over := c.surplus
	c.mu.Unlock()
	if over {
		return 0, errSurplus
	}
	if c.own != nil && len(p) > 0 {
		return c.readOwn(p)
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handLocked(p[:n], err)
}

// readOwn is Read where the connection has a descriptor of its own: what has come is
// read and followed at once, so that it is no answer to a request that begins
// between the two.
func (c *framed) readOwn(p []byte) (n int, err error) {
	failed := c.own.Read(func(fd uintptr) (done bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch n, err = readDescriptor(int(fd), p); {
		case err == errAgain:
			return false
		case err != nil:
			n, err = 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("recv", err)}
		case n == 0:
			err = io.EOF
		default:
			n, err = c.handLocked(p[:n], nil)
		}
		return true
	})
	if failed != nil {
		return 0, failed
	}
	return n, err
}

// handLocked returns how much of what was read, and of the error with it, is handed on.
func (c *framed) handLocked(b []byte, err error) (int, error) {
	was := c.ends.state
	took := c.ends.take(b)
	last := c.ends.last()
	if c.ends.state == answerOver && was != answerOver {
		c.ended = time.Now()
		last = last || c.looseLocked()
	}
	if took == len(b) && !last {
		return len(b), err
	}
	if c.used && took < len(b) {
		c.strayedLocked()
	}
	if c.surplus = true; took == 0 {
		return 0, errSurplus
	}
	return took, io.EOF
}

// ReadFrom copies a request's body as the connection inside does.
func (c *framed) ReadFrom(r io.Reader) (int64, error) {
	if from, ok := c.Conn.(io.ReaderFrom); ok {
		return from.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite ends the writing side, where the connection can.
func (c *framed) CloseWrite() error { return closeWrite(c.Conn) }

// An answerEnds follows the answers over a connection of HTTP/1 to where each ends. The
// zero answerEnds expects none.
type answerEnds struct {
	state  answerState
	lost   bool // nobody knows where answers end: all belongs to this one
	method []byte
	held   []byte // a line, or head, that is incomplete
	seen   int    // bytes of an incomplete head that were looked at
	head   AnswerHead
	chunks chunks
	left   int64 // of a body that has a length
}

type answerState uint8

const (
	answerOver answerState = iota
	answerHeads
	answerLength
	answerChunks
	answerRest // until the connection ends
)

// mostHeld is how much of a head is kept to find its end. Package http gives up sooner.
const mostHeld = 1 << 20

// begin says that a request was sent, and reports whether its answer can be followed.
func (a *answerEnds) begin(method string) bool {
	if a.state != answerOver || a.lost {
		return false
	}
	a.state, a.method = answerHeads, append(a.method[:0], method...)
	return true
}

// last says that the answers have ended and no other one can be followed.
func (a *answerEnds) last() bool { return a.state == answerOver && a.lost }

// take takes in b, and returns how many bytes of it belong to the answer.
func (a *answerEnds) take(b []byte) (n int) {
	for n < len(b) {
		switch a.state {
		case answerOver:
			return n
		case answerRest:
			return len(b)
		case answerLength:
			took := int(min(a.left, int64(len(b)-n)))
			n += took
			if a.left -= int64(took); a.left == 0 {
				a.state = answerOver
			}
		default:
			n += a.line(b[n:])
		}
	}
	return n
}

// line takes in b up to the end of the next part of a head or of a chunked body, or all
// of it if that is incomplete.
func (a *answerEnds) line(b []byte) (took int) {
	part, had := b, len(a.held)
	if had > 0 {
		a.held = append(a.held, b...)
		part = a.held
	}
	length, r := 0, OK
	if a.state == answerHeads {
		length, r = a.readHead(part)
	} else if length, r = a.chunks.step(part); a.chunks.phase == inHead {
		a.state = answerOver
	}
	switch {
	case r != OK, length == 0 && len(part) > mostHeld:
		a.lose()
		return len(b)
	case length > 0:
		if a.held = a.held[:0]; cap(a.held) > smallBuffer {
			a.held = nil // the connection may be idle for long
		}
		return length - had
	case had == 0:
		a.held = append(a.held[:0], b...)
	}
	return len(b)
}

// readHead reads a head, if b has it whole, and returns its length.
func (a *answerEnds) readHead(b []byte) (length int, r Reason) {
	if length, a.seen, r = ScanHead(b, a.seen); length == 0 || r != OK {
		return 0, r
	}
	a.seen = 0
	switch r = a.head.Parse(b[:length], a.method, HeadLimits{}); {
	case r == ReasonNoBody && a.head.Status >= 200: // package http reads none, whatever is announced
		a.state, a.lost = answerOver, true
		return length, OK
	case r != OK:
		return 0, r
	}
	switch h := &a.head; {
	case h.Status == 101:
		a.lose()
	case h.Status < 200: // another one follows
	case h.NoBody:
		a.state = answerOver
	case h.Chunked:
		a.state = answerChunks
		a.chunks.begin()
	case h.Length > 0:
		a.state, a.left = answerLength, h.Length
	case h.Length == 0:
		a.state = answerOver
	default:
		a.state = answerRest
	}
	return length, OK
}

// lose gives up: package http may read the answer otherwise, and the connection carries
// no other one.
func (a *answerEnds) lose() {
	a.state, a.lost, a.held = answerRest, true, nil
	a.head = AnswerHead{}
}
