package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// A connectError says that no connection to an endpoint came about, so that
// nothing was sent.
type connectError struct {
	endpoint string
	err      error
}

func (e *connectError) Error() string { return fmt.Sprintf("connect to %s: %v", e.endpoint, e.err) }
func (e *connectError) Unwrap() error { return e.err }

var errConnectSlow = errors.New("no connection in time")

// dial opens a cleartext connection to e. http.Transport calls it.
func (e *endpoint) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	c, err := e.connect(ctx, network, nil)
	if err != nil {
		return nil, err // not a typed nil
	}
	return c, nil
}

// dialTLS returns what opens a connection to e and ends TLS with it, offering
// protos.
func (e *endpoint) dialTLS(protos ...string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	cfg := e.client(protos...)
	return func(ctx context.Context, network, _ string) (net.Conn, error) { return e.connect(ctx, network, cfg) }
}

// connect connects to one of e's addresses and tells the breakers how it went.
func (e *endpoint) connect(outer context.Context, network string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(outer, endless(e.cfg.Timeouts.Connect), errConnectSlow)
	defer cancel()
	c, err := e.shake(ctx, network, secure)
	if err != nil {
		switch {
		case outer.Err() != nil: // nobody wanted it any longer
		case isLocal(err): // it never left this machine
		case disagrees(err) && len(secure.NextProtos) == 1: // it is there, and speaks another protocol
		default:
			if reason, ok := certificateAlert(err); ok {
				e.unwelcome(reason)
			}
			e.pool.connectFailed(e, err)
		}
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			err = cause
		}
		return nil, &connectError{e.name, err}
	}
	e.pool.connected(e)
	return c, nil
}

// shake connects to one of e's addresses, and shakes hands if secure is not nil.
func (e *endpoint) shake(ctx context.Context, network string, secure *tls.Config) (net.Conn, error) {
	c, err := e.reach(ctx, network)
	if err != nil || secure == nil {
		return c, err
	}
	tc := tls.Client(c, secure)
	if err := tc.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	if cc, ok := c.(*cellConn); ok {
		cc.shaken.Store(true)
		cc.made = time.Now() // it could not be used before
	}
	return tc, nil
}

// isLocal reports whether a connection failed for want of what this machine has
// none left of: descriptors, ports, memory. No cell is to blame.
func isLocal(err error) bool {
	for _, e := range outOf {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// reach connects to the first of e's addresses that answers, starting with
// another one each time.
func (e *endpoint) reach(ctx context.Context, network string) (net.Conn, error) {
	addrs := e.literal
	if e.name2addr != nil {
		var err error
		if addrs, err = e.name2addr.addresses(ctx); err != nil {
			return nil, err
		}
	}
	var errs error
	start := int(e.turn.Add(1)-1) % len(addrs)
	for i := range addrs {
		a := netip.AddrPortFrom(addrs[(start+i)%len(addrs)], e.port)
		// Each address gets its share of the time that is left.
		try, cancel := ctx, context.CancelFunc(func() {})
		if end, ok := ctx.Deadline(); ok && i < len(addrs)-1 {
			try, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(len(addrs)-i))
		}
		e.pool.all.reserve(ctx)
		c, err := e.cfg.Dial(try, network, a.String())
		cancel()
		if err == nil {
			return newCellConn(newSocket(c), e), nil
		}
		e.pool.all.conns.Add(-1)
		errs = errors.Join(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs
}

// A cellConn is a connection to a cell. It knows what was sent over it.
type cellConn struct {
	net.Conn
	buffers *buffers
	of      *endpoint
	made    time.Time
	closed  atomic.Bool

	sent  atomic.Int64 // bytes in all
	start atomic.Int64 // sent when the HTTP/1 request under way began; -1: none
	cut   atomic.Bool  // the cell takes nothing more

	shaken   atomic.Bool // it carries TLS, the handshake of which is over on this side
	answered atomic.Bool // it carries many requests, and one has had its answer
}

// newCellConn returns c as a connection to e that reserve has counted.
func newCellConn(c net.Conn, e *endpoint) *cellConn {
	cc := &cellConn{Conn: c, buffers: e.buffers, of: e, made: time.Now()}
	cc.start.Store(-1)
	e.conns.Add(1)
	return cc
}

// Close closes the connection and gives its place back.
func (c *cellConn) Close() error {
	if !c.closed.Swap(true) {
		c.of.conns.Add(-1)
		c.of.pool.all.conns.Add(-1)
	}
	return c.Conn.Close()
}

// Write hides an error in mid-request. A cell may answer early and close, and
// its answer is then what counts: it is still on its way, or the reader will
// meet the error as well. The same holds for TLS, where it may have refused the
// handshake.
func (c *cellConn) Write(p []byte) (int, error) {
	if c.cut.Load() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	sent := c.sent.Add(int64(n))
	switch start := c.start.Load(); {
	case err == nil:
		return n, nil
	case start >= 0 && sent > start && !errors.Is(err, net.ErrClosed),
		c.shaken.Load() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
		c.cut.Store(true)
		return len(p), nil
	}
	return n, err
}

// begin marks the start of an HTTP/1 request.
func (c *cellConn) begin() { c.start.Store(c.sent.Load()) }

// untouched reports whether nothing was sent of the request under way.
func (c *cellConn) untouched() bool { return c.sent.Load() == c.start.Load() }

// ReadFrom copies a request's body with a buffer that is used again.
func (c *cellConn) ReadFrom(r io.Reader) (int64, error) {
	b := c.buffers.get()
	defer c.buffers.put(b)
	return io.CopyBuffer(struct{ io.Writer }{c}, r, *b)
}

// CloseWrite ends the writing side, where the connection can.
func (c *cellConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// madeBefore reports whether a connection that a transport has chosen for a request
// was there before the request began, so that the cell may have closed it since. The
// transport's own word, that it is used again, is no for one that it has dialled for
// another request, which then went elsewhere.
func madeBefore(i httptrace.GotConnInfo, began time.Time) bool {
	cc := cellConnOf(i.Conn)
	return i.Reused || cc != nil && cc.made.Before(began)
}

// A streamError is what package http has for the end of one stream of HTTP/2: its own
// type takes on this shape for errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string {
	return fmt.Sprintf("stream %d ended with code %d", e.StreamID, e.Code)
}

// endsStream reports whether err is of one stream of HTTP/2 alone, whose connection
// goes on: then the cell has had the request, and wants no more of it; or has refused it
// unread (REFUSED_STREAM), and package http has sent it again by itself, as far as it may.
func endsStream(err error) bool {
	_, ok := errors.AsType[streamError](err)
	return ok
}

// cellConnOf returns the cellConn under a connection of a transport.
func cellConnOf(c net.Conn) *cellConn {
	c = inside(c)
	if tc, ok := c.(*tls.Conn); ok {
		c = tc.NetConn()
	}
	cc, _ := c.(*cellConn)
	return cc
}
