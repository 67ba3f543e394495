package engine

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/http2"
)

// A CheckerConfig says how strict the front is. The zero CheckerConfig is
// usable.
type CheckerConfig struct {
	// MaxHead is the size in bytes that a request's head may not exceed. If
	// zero, 64 KiB. A larger one is answered 431.
	MaxHead int
	// MaxFields is how many fields a head may not exceed. If zero, 256.
	MaxFields int
	// HeadTimeout is how long a client may take for a head from its first
	// byte, and to send a first byte on a new connection. If zero, 10 s.
	HeadTimeout time.Duration
	// IdleTimeout is how long a connection may be silent between requests. If
	// zero, 75 s.
	IdleTimeout time.Duration
	// HandshakeTimeout bounds a TLS handshake. If zero, 10 s.
	HandshakeTimeout time.Duration
	// Unshaken is called with the other end's address for each handshake that fails,
	// from many goroutines. If nil, nothing is called.
	Unshaken func(peer net.Addr, err error)
	// NoH2C refuses cleartext HTTP/2.
	NoH2C bool
	// Refused is called once for each head or body that is refused, from many
	// goroutines. If nil, nothing is called.
	Refused func(r Reason)
	// Answer writes the answer to a refused head, whose code and details r
	// has. If nil, a problem+json.
	Answer func(w http.ResponseWriter, req *http.Request, r Reason)
}

// A Checker stands between listeners and an http.Server and lets only requests
// through that can be read in one way.
//
// net/http repairs some of what it reads: it drops a Content-Length beside a
// Transfer-Encoding, takes a bare line feed for a line's end, joins folded
// lines. Each repair is a place where the cell, or whatever stands before the
// router, may read another request from the same bytes. So every HTTP/1 head,
// the first and all later ones of a connection, and the framing of each body
// pass a stricter reader first. HTTP/2 passes as it is, for its framing has no
// such doubts; its heads are checked when they have become requests.
type Checker struct {
	cfg     CheckerConfig
	buffers sync.Pool // of *[]byte with capacity connBuffer
}

// NewChecker returns a Checker.
func NewChecker(cfg CheckerConfig) *Checker { return &Checker{cfg: cfg} }

func (k *Checker) limits() HeadLimits {
	return HeadLimits{Bytes: or(k.cfg.MaxHead, 64<<10), Fields: or(k.cfg.MaxFields, 256)}
}

func (k *Checker) headTimeout() time.Duration { return or(k.cfg.HeadTimeout, 10*time.Second) }
func (k *Checker) idleTimeout() time.Duration { return or(k.cfg.IdleTimeout, 75*time.Second) }

func (k *Checker) count(r Reason) {
	if k.cfg.Refused != nil {
		k.cfg.Refused(r)
	}
}

func (k *Checker) getBuffer() []byte {
	if b, ok := k.buffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, connBuffer)
}

func (k *Checker) putBuffer(b []byte) {
	if cap(b) == connBuffer {
		k.buffers.Put(&b)
	}
}

// Listen returns a listener whose cleartext connections are checked.
func (k *Checker) Listen(inner net.Listener) net.Listener { return &plainListener{inner, k} }

type plainListener struct {
	net.Listener
	checker *Checker
}

func (l *plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, l.checker), nil
}

// ListenTLS returns a listener that ends TLS and checks HTTP/1 inside it. If
// cfg.NextProtos is empty, HTTP/2 and HTTP/1.1 are offered. The handshakes run
// beside Accept, at most 1024 at a time: for one more, that which has been
// silent for longest is given up, or the oldest if all have begun. Clients that
// connect and say nothing so hold nobody up.
func (k *Checker) ListenTLS(inner net.Listener, cfg *tls.Config) net.Listener {
	cfg = cfg.Clone()
	if len(cfg.NextProtos) == 0 {
		cfg.NextProtos = []string{"h2", "http/1.1"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &tlsListener{inner: inner, checker: k, cfg: cfg, ctx: ctx, cancel: cancel,
		done: make(chan accepted)}
}

const maxHandshakes = 1024

// A tlsListener shakes hands before Accept returns, because what the two sides
// agree on decides whether the connection is checked. Its goroutines start
// with the first Accept and end with Close.
type tlsListener struct {
	inner   net.Listener
	checker *Checker
	cfg     *tls.Config
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	start   sync.Once
	done    chan accepted

	mu      sync.Mutex
	shaking list.List // of *handshake, the oldest first
}

// A handshake is a connection that shakes hands.
type handshake struct {
	net.Conn
	begun atomic.Bool // the client has said something
}

func (h *handshake) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if n > 0 && !h.begun.Load() {
		h.begun.Store(true)
	}
	return n, err
}

type accepted struct {
	conn net.Conn
	err  error
}

func (l *tlsListener) Accept() (net.Conn, error) {
	l.start.Do(func() { go l.accept() })
	select {
	case a := <-l.done:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *tlsListener) accept() {
	for {
		c, err := l.inner.Accept()
		if err == nil {
			h := &handshake{Conn: c}
			go l.shake(h, l.begin(h))
			continue
		}
		select {
		case l.done <- accepted{err: err}:
		case <-l.ctx.Done():
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// begin takes in a handshake, and gives another up where there are too many.
func (l *tlsListener) begin(h *handshake) (place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shaking.Len() >= maxHandshakes {
		give := l.shaking.Front()
		for e := give; e != nil; e = e.Next() {
			if !e.Value.(*handshake).begun.Load() {
				give = e
				break
			}
		}
		l.shaking.Remove(give)
		give.Value.(*handshake).Close() // its handshake fails by that
	}
	return l.shaking.PushBack(h)
}

// end takes a handshake out.
func (l *tlsListener) end(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shaking.Remove(place) // it may have been given up
}

func (l *tlsListener) shake(raw *handshake, place *list.Element) {
	ctx, cancel := context.WithTimeout(l.ctx, or(l.checker.cfg.HandshakeTimeout, 10*time.Second))
	defer cancel()
	tc := tls.Server(raw, l.cfg)
	err := tc.HandshakeContext(ctx)
	l.end(place)
	if err != nil {
		if re, ok := errors.AsType[tls.RecordHeaderError](err); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
			l.checker.count(ReasonCleartext)
			re.Conn.SetWriteDeadline(time.Now().Add(lingerTime))
			re.Conn.Write(l.checker.answerCleartext(raw.RemoteAddr().String()))
		}
		if l.checker.cfg.Unshaken != nil {
			l.checker.cfg.Unshaken(raw.RemoteAddr(), err)
		}
		raw.Close()
		return
	}
	var c net.Conn = tc
	if tc.ConnectionState().NegotiatedProtocol != "h2" {
		checked := newConn(tc, l.checker)
		checked.framing.h2c = false
		c = &tlsConn{checked, tc}
	}
	select {
	case l.done <- accepted{conn: c}:
	case <-l.ctx.Done():
		c.Close()
	}
}

// looksLikeHTTP reports whether a client began with a method's letters where
// TLS has a record's header.
func looksLikeHTTP(b [5]byte) bool {
	for _, c := range b {
		if c != ' ' && c != '/' && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func (l *tlsListener) Close() error {
	l.cancel()
	return l.inner.Close()
}

func (l *tlsListener) Addr() net.Addr { return l.inner.Addr() }

// Install makes s ready for connections of k's listeners: it wraps s.Handler
// and sets its protocols, limits and head and idle timeouts. Call it once,
// after s.Handler is set and before Serve.
func (k *Checker) Install(s *http.Server) {
	next := s.Handler
	if next == nil {
		next = http.DefaultServeMux
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { k.serve(next, w, r) })
	outer := s.ConnContext
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if outer != nil {
			ctx = outer(ctx, c)
		}
		if conn := checkedConn(c); conn != nil {
			ctx = context.WithValue(ctx, connKey{}, conn)
		}
		return ctx
	}
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(!k.cfg.NoH2C)
	s.Protocols = p
	if s.HTTP2 == nil {
		// Else it is 1 MiB of each upload that a cell does not read. A frame is no longer
		// than that: some take the one for leave to send it whole.
		s.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: unread, MaxReadFrameSize: unread}
	}
	s.DisableGeneralOptionsHandler = true // OPTIONS * is for the cell
	// Ours come first, in both versions: net/http has an answer of its own. It
	// counts 32 bytes more for each field.
	s.MaxHeaderBytes = 2*k.limits().Bytes + 32*k.limits().Fields
	s.ReadHeaderTimeout = k.headTimeout()
	s.IdleTimeout = k.idleTimeout()
}

// connKey is the context key of a request's *Conn.
type connKey struct{}

// connOf returns the checked connection of a request, or nil.
func connOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// checkedConn returns the Conn that c is, or nil.
func checkedConn(c net.Conn) *Conn {
	switch c := c.(type) {
	case *Conn:
		return c
	case *tlsConn:
		return c.Conn
	}
	return nil
}

// Accepted returns the connection that a listener of a Checker was given, for
// one that it returned; any other connection as it is.
func Accepted(c net.Conn) net.Conn {
	if checked := checkedConn(c); checked != nil {
		c = checked.Conn
	}
	if tc, ok := c.(*tls.Conn); ok {
		c = tc.NetConn()
	}
	switch inner := c.(type) {
	case *handshake:
		c = inner.Conn
	case *begunConn:
		c = inner.Conn
	}
	return c
}

// serve hands requests on and answers those that stand for refused heads.
func (k *Checker) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	c := connOf(r.Context())
	switch {
	case r.ProtoMajor == 2:
		if reason := checkHTTP2(r, k.limits()); reason != OK {
			k.count(reason)
			k.answer(w, r, reason)
			return
		}
	case c != nil && r.Method == refusedMethod:
		w.Header().Set("Connection", "close")
		k.answer(w, r, c.refused())
		return
	case c != nil:
		c.served++
		if HasBody(r) {
			defer c.leftBy(c.served)
		}
		if r.ContentLength < 0 && r.Trailer == nil {
			// net/http puts trailers that were not announced into this very
			// request; a map is shared by its copies.
			r.Trailer = make(http.Header)
		}
		if stream, ok := c.Conn.(*http2.Stream); ok {
			r = asHTTP2(w, r, stream)
		}
	}
	next.ServeHTTP(w, r)
}

func (k *Checker) answer(w http.ResponseWriter, r *http.Request, reason Reason) {
	if k.cfg.Answer != nil {
		k.cfg.Answer(w, r, reason)
		return
	}
	writeProblem(w, reason.Code(), reason.Detail())
}

// answerCleartext returns the answer to a client at addr that began with HTTP
// where TLS is spoken, or nil if [CheckerConfig].Answer panics: no goroutine of a
// server's would catch that.
func (k *Checker) answerCleartext(addr string) (answer []byte) {
	defer func() {
		if recover() != nil {
			answer = nil
		}
	}()
	return Whole(func(w http.ResponseWriter) {
		w.Header().Set("Connection", "close")
		k.answer(w, &http.Request{Method: http.MethodGet, URL: new(url.URL), Proto: "HTTP/1.0", ProtoMajor: 1, Header: http.Header{}, RemoteAddr: addr}, ReasonCleartext)
	})
}

// connectionStater is how net/http learns of TLS under a connection.
type connectionStater interface{ ConnectionState() tls.ConnectionState }

// or returns v, or otherwise if v is zero.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// writeProblem writes an answer of the router's own, as RFC 9457 has it.
func writeProblem(w http.ResponseWriter, code cellway.Code, detail string) {
	status := code.Status()
	b := Problem(status, code, detail)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", itoa(len(b)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(b)
}
