package engine

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// A Call is one request of a client over HTTP/1 and its answer. It belongs to
// the goroutine that serves it, and to nobody when [Handler.ServeCall] has
// returned; so do all strings and slices that its methods return, for its memory
// is used again.
type Call struct {
	// Local is the handler's own. It is kept for other calls, of whatever
	// connection, which one after the other use the same memory.
	Local any

	c    *client
	in   inbuf
	head Head
	size int // of the head
	at   time.Time

	*scratch      // nil while nothing is done
	owns     bool // the scratch is the call's; otherwise a loop lends it, for one step
	rep      Report
	pool     *Pool
	o        *Options
	body     body
	tried    []*endpoint

	answered bool   // an answer has begun
	last     []byte // of the answer: see sendLast
	lastAt   stage
	broken   bool      // it will not be whole
	short    bool      // which what was sent of it says by itself
	placed   bool      // it has a place among the cell's requests
	endp     *endpoint // among whose calls it counts, or nil
	since    time.Time // when that was
	flight   flight
	interims int  // how many interim answers there were
	fd       int  // of the connection, within a turn of its poller; otherwise -1
	closing  bool // the connection ends after it
	overTLS  bool // it went to a cell behind TLS
}

// A scratch is what a call works with and does not need while it waits, so that
// calls in a loop share one.
type scratch struct {
	out    []byte // what is to be sent
	fields fields // of a message on its way
	values []string
	reply  reply
	answer answerBody
}

// use makes k work with w.
func (k *Call) use(w *scratch) {
	k.scratch = w
	w.reply.c, w.answer.c = k, k
}

// odd reports whether w has more memory than others need.
func (w *scratch) odd() bool {
	return cap(w.out) > 4*smallBuffer || cap(w.fields.lines)+cap(w.reply.head.Fields) > 1024
}

// lease returns a Call for a connection.
func (s *Server) lease(c *client) *Call {
	k, ok := s.calls.Get().(*Call)
	if !ok {
		k = &Call{}
		k.in.from = &s.pools
		k.body.c = k
	}
	k.c = c
	if c.loop != nil {
		c.loop.lend(k)
	} else {
		k.own(s.scratch())
	}
	return k
}

// giveBack ends that.
func (s *Server) giveBack(k *Call) {
	k.in.reset()
	k.disown()
	k.c = nil
	if cap(k.head.Fields) <= 1024 { // else the next shall not carry that
		s.calls.Put(k)
	}
}

// own makes k work with w, which is its alone.
func (k *Call) own(w *scratch) {
	k.use(w)
	k.owns = true
}

// disown gives its scratch back, if it has one.
func (k *Call) disown() {
	if w := k.scratch; k.owns && !w.odd() {
		k.c.srv.scratches.Put(w)
	}
	k.scratch, k.owns = nil, false
}

// scratch returns one that nobody uses.
func (s *Server) scratch() *scratch {
	if w, ok := s.scratches.Get().(*scratch); ok {
		return w
	}
	return new(scratch)
}

// begin takes in the head, which has that many bytes.
func (k *Call) begin(length int) Reason {
	k.at = k.Now()
	k.size, k.fd = length, k.c.fd
	k.answered, k.broken, k.short, k.closing, k.overTLS, k.interims = false, false, false, false, false, 0
	if r := k.head.Parse(k.in.bytes()[:length], k.c.srv.limits); r != OK {
		return r
	}
	k.body.begin()
	k.c.enter(atWork, k.c.srv.when(k.at))
	return OK
}

// refuse makes k a call without a head.
func (k *Call) refuse() {
	k.at, k.size, k.fd = k.Now(), 0, -1
	if k.c.loop != nil {
		k.fd = k.c.fd
	}
	k.answered, k.broken, k.closing = false, false, true
	k.head = Head{Fields: k.head.Fields[:0], Length: -1, Close: true, Minor: 1}
	k.in.start, k.in.end = 0, 0
	k.body.begin()
	k.c.enter(atWork, int64(k.at.Sub(k.c.srv.epoch)))
}

// whole reports whether nothing more is to be read from the client to serve the
// call.
func (k *Call) whole() bool {
	return k.body.kind != bodyStreamed && !k.head.Upgrade
}

// gatherable reports whether the request has a body that is short enough to wait
// for, so that both are sent as one.
func (k *Call) gatherable() bool {
	h := &k.head
	return h.Length > 0 && h.Length <= MaxReplay && !h.Expect && !h.Upgrade && k.size <= 2*smallBuffer
}

// end ends the call and returns what its connection does next.
func (k *Call) end() action {
	c := k.c
	k.sendLast()
	k.reply.drop()
	k.answer.giveBack()
	c.mu.Lock()
	if c.tracked {
		c.tracked, c.tunnel, c.key, c.cell, c.link, c.cause = false, false, "", "", nil, nil
		if c.cancel != nil {
			c.cancel(errDone)
			c.ctx, c.cancel = nil, nil
		}
		c.calmLocked()
	}
	c.mu.Unlock()
	k.pool, k.o = nil, nil
	k.rep.Err = nil
	rest := k.body.end()
	c.enter(atIdle, c.srv.when(k.Now()))
	switch {
	case k.broken && k.short && !c.isDoomed():
		return toLinger // a reset would take with it what the client has not read yet
	case k.broken || !k.answered:
		return toDestroy
	case k.rep.Tunnel:
		k.rep.Tunnel = false
		return toClose
	case rest:
		return toLinger
	case k.closing || k.head.Close:
		return toLinger
	}
	return toRead
}

// Head returns the request's head.
func (k *Call) Head() *Head { return &k.head }

// Request returns the method, the authority that the request is for, and the
// path and the query of its target, escaped as they came.
func (k *Call) Request() (method, host, path, query string) {
	h := &k.head
	path, query, _ = strings.Cut(stringOf(h.Path), "?")
	if path == "" && string(h.Method) != http.MethodOptions {
		path = "/" // of a target in absolute form
	}
	return stringOf(h.Method), stringOf(h.Host), path, query
}

// Values returns the values of the named field, as [Header] does.
func (k *Call) Values(name string) []string {
	k.values = appendValues(k.values[:0], k.head.Fields, name)
	return k.values
}

// Began returns when the head had arrived.
func (k *Call) Began() time.Time { return k.at }

// Now returns the time. A loop reads the clock when something comes of a call, and
// this is that time until it goes on to another.
func (k *Call) Now() time.Time {
	if l := k.c.loop; l != nil {
		return l.clock()
	}
	return time.Now()
}

// Peer returns the address of the connection's other end; the zero AddrPort if
// it has none.
func (k *Call) Peer() netip.AddrPort { return k.c.peer }

// Secure reports whether the connection is one of TLS.
func (k *Call) Secure() bool { return k.c.secure }

// TLS returns the state of the connection's TLS, or nil if it has none.
func (k *Call) TLS() *tls.ConnectionState {
	tc, _ := k.c.conn.(*tls.Conn)
	if k.c.stream != nil {
		tc = k.c.stream.TLS()
	}
	if tc == nil {
		return nil
	}
	state := tc.ConnectionState()
	return &state
}

// HasBody reports whether the request has a body.
func (k *Call) HasBody() bool { return k.body.kind != bodyNone }

// Track makes the call known to [Server.Sweep], as one for key that goes to
// cell, in place of what it was known as before. key is not kept beyond the
// call.
func (k *Call) Track(key cellway.Key, cell cellway.CellID) {
	c := k.c
	c.mu.Lock()
	c.tracked, c.key, c.cell = true, key, cell
	c.endIfResetLocked()
	c.mu.Unlock()
}

// Done is closed when the call is to end early, because somebody has ended it.
func (k *Call) Done() <-chan struct{} { return k.context().Done() }

// Ended reports whether somebody has ended the call.
func (k *Call) Ended() bool { return k.cause() != nil }

// cause returns why the call was ended, or nil.
func (k *Call) cause() error {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.c.cause
}

// context returns a context that ends with the call, for what needs one. It is
// made when it is first asked for.
func (k *Call) context() context.Context {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.tracked = true
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
		if c.cause != nil {
			c.cancel(c.cause)
		}
		c.endIfResetLocked()
	}
	return c.ctx
}

// calm lets the connection be used again for an answer after the call was
// ended.
func (k *Call) calm() {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked, c.cause = true, nil
	c.calmLocked()
}

// CloseAfter has the connection closed after the answer.
func (k *Call) CloseAfter() { k.closing = true }

// Header returns the header, empty at first, of an answer that is not a cell's:
// see [Call.Answer].
func (k *Call) Header() Header {
	k.fields.reset()
	return &k.fields
}

// Answer sends an answer that is not a cell's, with the fields of the last
// Header. Date, Connection and, if Header has none, Content-Length are seen to. It returns how many
// bytes of the body went out: none for HEAD.
func (k *Call) Answer(status int, body []byte) (sent int64) {
	if k.answered {
		return 0
	}
	k.answered = true
	if k.body.unread() {
		k.closing = true // nobody can say what the rest would be taken for
	}
	bodyless := string(k.head.Method) == http.MethodHead
	k.takeConnection()
	k.out = k.appendStatus(k.out[:0], status, bytesOf(http.StatusText(status)))
	k.out = appendLines(k.out, k.fields.lines)
	k.out = k.appendDate(k.out)
	if len(k.fields.Values("Content-Length")) == 0 {
		k.out = appendLength(k.out, int64(len(body)))
	}
	k.out = k.appendConnection(k.out)
	head := len(k.out)
	if !bodyless {
		k.out = append(k.out, body...)
	}
	k.last, k.lastAt = k.out, atAnswer
	return int64(len(k.out) - head)
}

// sendLast sends the last bytes of the answer. They go when all that is to be
// counted of the call was counted, and its place in the cell was given back: the
// client may act on them at once.
func (k *Call) sendLast() {
	b := k.last
	if k.last = nil; b == nil || k.broken {
		return
	}
	if _, err := k.write(b, k.lastAt); err != nil {
		k.broken = true
	}
}

// write writes b to the client. If that takes long it counts as that stage.
func (k *Call) write(b []byte, s stage) (n int, err error) {
	c := k.c
	if len(c.stuck) > 0 {
		c.stuck = append(c.stuck, b...)
		return len(b), nil
	}
	if k.fd >= 0 {
		n, err = writeDescriptor(k.fd, b)
		if n == len(b) || err != nil && err != errAgain {
			return n, err
		}
		if c.loop != nil {
			c.stuck = append(c.stuck, b[n:]...) // whoever may wait sends it
			return len(b), nil
		}
	}
	if s == atAnswer {
		k.calm()
	}
	c.enter(s, c.srv.now())
	more, err := c.conn.Write(b[n:])
	if s == atWrite {
		c.enter(atStream, c.srv.now())
	}
	return n + more, err
}
