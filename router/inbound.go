package router

import (
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// ServeHTTP serves a request of net/http.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := rt.exchangeOf(w, r)
	defer x.leave()
	x.serve()
	x.leave()
	x.count()
	x.report.Abort()
	if x.code == ClientGone && !x.report.HeadSent {
		// A handler that returns without an answer has net/http answer 200. Whoever
		// only stopped sending, or a cache in front, would believe it.
		panic(http.ErrAbortHandler)
	}
}

// Refuse answers a request that never came so far: its head can't be read in
// one way, is too large, or came too late. It is for what checks heads in
// front of the router.
func (rt *Router) Refuse(w http.ResponseWriter, r *http.Request, code cellway.Code, detail string) {
	x := rt.exchangeOf(w, r)
	x.st, x.head = nil, unread
	x.answer(code, detail)
	x.count()
}

// exchangeOf returns a new exchange for a request of net/http.
func (rt *Router) exchangeOf(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{rt: rt}
	x.begin(&front.Served{Desk: &rt.desk, W: w, R: r}, time.Now())
	x.head = HeadOf(r)
	return x
}

// unread is the head of a request of which nobody knows how to read it.
var unread = Head{Fields: noFields{}}

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
	x.in.KeepBody()
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
	x.st, x.head = nil, unread
	x.answer(r.Code(), r.Detail())
	x.count()
	x.forget()
}

// exchangeOf returns a new exchange for a call, in memory that is used again.
func (h callHandler) exchangeOf(c *engine.Call) *exchange {
	x, ok := c.Local.(*exchange)
	if !ok || x.rt != h.rt {
		x = &exchange{rt: h.rt}
		c.Local = x
	}
	x.call.Call = c
	x.begin(&x.call, c.Began())
	// These strings are valid as long as the call is.
	x.head.Method, x.head.Host, x.head.Path, x.head.Query = c.Request()
	x.head.Fields, x.head.Upgrade = c, c.Head().Upgradable()
	return x
}
