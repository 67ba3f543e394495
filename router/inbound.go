package router

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// An inbound is a request as a server has read it, with the way back to its
// client. There is one for requests of net/http and one for calls of the
// router's own server of HTTP/1.
type inbound interface {
	proto() string // as logs have it
	via() string   // as Via has it
	http1() bool   // its connection carries one request at a time
	grpc() bool
	secure() bool
	peer() netip.Addr // the zero Addr if there is none

	// keepBody keeps the body, if there is one, so that the request can be sent
	// once more; rewind reports whether it can; and dropBody ends that.
	keepBody()
	rewind() bool
	dropBody()

	// track makes it known as one for key that goes to cell, so that it may be
	// swept, and forward sends it there.
	track(key cellway.Key, cell cellway.CellID)
	forward(to *engine.Pool, o *engine.Options) *engine.Report
	// upgraded says that it becomes a tunnel, within forward.
	upgraded()
	// done is closed when the client has gone, or somebody has ended the
	// request.
	done() <-chan struct{}
	gone() bool
	// now is the time, which is read once for all that a loop does at once.
	now() time.Time

	// header is what answer sends as the head of an answer of the router's own.
	header() engine.Header
	answer(status int, body []byte) (sent int64)
}

// A served is a request of net/http.
type served struct {
	rt     *Router
	w      http.ResponseWriter
	r      *http.Request
	from   netip.Addr
	body   *engine.Replay
	ctx    context.Context
	flight *engine.Flight
	rep    engine.Report
}

func (s *served) proto() string    { return s.r.Proto }
func (s *served) via() string      { return viaVersion(s.r) }
func (s *served) http1() bool      { return s.r.ProtoMajor == 1 }
func (s *served) grpc() bool       { return engine.IsGRPC(s.r) }
func (s *served) secure() bool     { return s.r.TLS != nil }
func (s *served) peer() netip.Addr { return s.from }

func (s *served) keepBody() {
	if engine.HasBody(s.r) {
		s.body = engine.NewReplay(s.r, engine.MaxReplay)
	}
}

func (s *served) rewind() bool { return s.body == nil || s.body.Rewind() }

func (s *served) dropBody() {
	if s.body != nil {
		s.body.Close()
	}
}

func (s *served) track(key cellway.Key, cell cellway.CellID) {
	s.ctx, s.flight = s.rt.requests.Add(s.r.Context(), key, cell)
}

func (s *served) forward(to *engine.Pool, o *engine.Options) *engine.Report {
	defer s.flight.Done()
	with := *o
	with.Body = s.body
	s.rep = to.Forward(s.w, s.r.WithContext(s.ctx), with)
	return &s.rep
}

func (s *served) upgraded()             { s.flight.Move(&s.rt.upgraded) }
func (s *served) done() <-chan struct{} { return s.r.Context().Done() }
func (s *served) gone() bool            { return s.r.Context().Err() != nil }
func (s *served) now() time.Time        { return time.Now() }
func (s *served) header() engine.Header { return engine.HTTPHeader(s.w.Header()) }

func (s *served) answer(status int, body []byte) (sent int64) {
	s.w.WriteHeader(status)
	if s.r.Method == http.MethodHead {
		return 0
	}
	n, _ := s.w.Write(body) // the client may be gone: there is nobody to tell
	return int64(n)
}

// A called is a call of the router's own server.
type called struct {
	rt *Router
	c  *engine.Call
}

func (s *called) proto() string {
	if s.c.Head().Minor == 0 {
		return "HTTP/1.0"
	}
	return "HTTP/1.1"
}

func (s *called) via() string      { return s.proto()[len("HTTP/"):] }
func (s *called) http1() bool      { return true }
func (s *called) grpc() bool       { return false } // it needs HTTP/2
func (s *called) secure() bool     { return s.c.Secure() }
func (s *called) peer() netip.Addr { return s.c.Peer().Addr() }
func (s *called) keepBody()        { s.c.KeepBody(engine.MaxReplay) }
func (s *called) rewind() bool     { return s.c.Rewind() }
func (s *called) dropBody()        {}

func (s *called) track(key cellway.Key, cell cellway.CellID) { s.c.Track(key, cell) }

func (s *called) forward(to *engine.Pool, o *engine.Options) *engine.Report {
	return s.c.Forward(to, o)
}

func (s *called) upgraded()             {} // its server knows
func (s *called) done() <-chan struct{} { return s.c.Done() }
func (s *called) gone() bool            { return s.c.Ended() }
func (s *called) now() time.Time        { return s.c.Now() }
func (s *called) header() engine.Header { return s.c.Header() }

func (s *called) answer(status int, body []byte) (sent int64) { return s.c.Answer(status, body) }

// headOf fills in the head of a call. Its strings are valid as long as the call
// is.
func (s *called) headOf(h *Head) {
	h.Method, h.Host, h.Path, h.Query = s.c.Request()
	h.Fields, h.Upgrade = s.c, s.c.Head().Upgradable()
}

// A callHandler has a Router serve calls.
type callHandler struct{ rt *Router }

// ServeCall serves one call.
func (h callHandler) ServeCall(c *engine.Call) {
	x := h.exchangeOf(c)
	defer x.leave()
	x.serve()
	x.end()
}

// end takes in that the call has its answer.
func (x *exchange) end() {
	x.leave()
	x.count()
	x.forget()
}

// StepCall serves a call as far as that takes no waiting.
func (h callHandler) StepCall(c *engine.Call) engine.Step {
	x := h.exchangeOf(c)
	if !x.decide() || !x.aim() {
		x.end()
		return engine.Served
	}
	x.in.keepBody()
	return c.Start(x.to.pool, &x.options)
}

// EndCall ends a call that StepCall has sent, unless a guard has refused it.
func (h callHandler) EndCall(c *engine.Call, rep *engine.Report) bool {
	if rep.Swallowed {
		return false // it may have to wait for another map
	}
	x := c.Local.(*exchange)
	x.landed(rep)
	x.end()
	return true
}

// ResumeCall serves the rest of a call that StepCall has begun.
func (h callHandler) ResumeCall(c *engine.Call, rep *engine.Report) {
	x := c.Local.(*exchange)
	defer x.leave()
	if rep == nil {
		rep = c.Forward(x.to.pool, &x.options)
	}
	for x.landed(rep) && x.aim() {
		rep = c.Forward(x.to.pool, &x.options)
	}
	x.end()
}

// DropCall ends a call that ended in a panic.
func (h callHandler) DropCall(c *engine.Call) {
	if x, ok := c.Local.(*exchange); ok {
		x.leave()
	}
}

// RefuseCall answers a call that has no head.
func (h callHandler) RefuseCall(c *engine.Call, r engine.Reason) {
	x := h.exchangeOf(c)
	x.st = nil
	x.answer(answer{code: r.Code(), detail: r.Detail()})
	x.count()
	x.forget()
}

// exchangeOf returns a new exchange for a call, in memory that is used again.
func (h callHandler) exchangeOf(c *engine.Call) *exchange {
	x, ok := c.Local.(*exchange)
	if !ok || x.rt != h.rt {
		x = &exchange{rt: h.rt}
		x.call.rt = h.rt
		c.Local = x
	}
	x.call.c = c
	x.begin(&x.call, c.Began())
	x.call.headOf(&x.head)
	return x
}
