package gateway

import (
	"net/http"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// ServeHTTP serves a request of net/http.
func (gw *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{gw: gw}
	x.ofServed(w, r)
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
// front of the gateway.
func (gw *Gateway) Refuse(w http.ResponseWriter, r *http.Request, code cellway.Code, detail string) {
	x := &exchange{gw: gw}
	x.ofServed(w, r)
	x.method, x.host, x.path = "", "", ""
	x.answer(code, detail)
	x.count()
}

// ofServed makes x that of a request of net/http.
func (x *exchange) ofServed(w http.ResponseWriter, r *http.Request) {
	x.begin(&front.Served{Desk: &x.gw.desk, W: w, R: r}, time.Now())
	x.method, x.host, x.fields, x.upgrade = r.Method, r.Host, r.Header, engine.Upgradable(r)
	if strings.HasPrefix(r.RequestURI, "/") {
		x.path, _, _ = strings.Cut(r.RequestURI, "?") // as it was sent: a parsed URL keeps not every byte
	} else if x.path = r.URL.EscapedPath(); x.path == "" {
		x.path = "/"
	}
}

// A callHandler has a Gateway serve calls.
type callHandler struct{ gw *Gateway }

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

// StepCall serves a call as far as that takes no waiting: to its first attempt, if the
// tenant has a hand.
func (h callHandler) StepCall(c *engine.Call) engine.Step {
	x := h.exchangeOf(c)
	if !x.decide() {
		x.end()
		return engine.Served
	}
	if !x.dealtBefore() {
		return engine.Stuck
	}
	x.first()
	return c.Start(x.worker.pool, &x.options)
}

// EndCall ends a call whose answer has gone out, as far as it came.
func (h callHandler) EndCall(c *engine.Call, rep *engine.Report) bool {
	if rep.Swallowed || rep.Code != "" && !rep.HeadSent {
		return false // there may be another attempt, after a pause
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
	switch {
	case rep != nil:
		x.goOn(rep)
	case x.dealt == nil:
		x.serveDecided()
	default:
		x.goOn(x.send())
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
	x.method, x.host, x.path = "", "", ""
	x.answer(r.Code(), r.Detail())
	x.count()
	x.forget()
}

// exchangeOf returns a new exchange for a call, in memory that is used again.
func (h callHandler) exchangeOf(c *engine.Call) *exchange {
	x, ok := c.Local.(*exchange)
	if !ok || x.gw != h.gw {
		x = &exchange{gw: h.gw}
		c.Local = x
	}
	x.called.Call = c
	x.begin(&x.called, c.Began())
	x.method, x.host, x.path, _ = c.Request()
	x.fields, x.upgrade = c, c.Head().Upgradable()
	return x
}
