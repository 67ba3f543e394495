package router

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// An exchange is one request on its way through the router. It edits the
// messages that are forwarded for it.
type exchange struct {
	rt     *Router
	in     front.Inbound
	start  time.Time
	st     *state // nil before the first map
	head   Head
	out    Decision
	to     target // where it was sent last
	peer   netip.Addr
	no     refusal // of the last attempt, if it was swallowed
	parent []byte  // of the trace; empty until the request is forwarded
	text   []byte  // a value under construction

	seat front.Seat // in the router's own limit

	code           cellway.Code
	err            error
	status         int
	bytesIn, sent  int64
	attempts       int
	refusals       int // by guards
	atCell, queued time.Duration
	report         engine.Report // of the last attempt
	options        engine.Options

	call   front.Called           // what in is, if it is a call
	unlike func(name string) bool // deceives, bound once
}

// begin makes x a new exchange. It keeps the memory of the one before.
func (x *exchange) begin(in front.Inbound, start time.Time) {
	*x = exchange{
		rt: x.rt, in: in, start: start, st: x.rt.state.Load(), peer: in.Peer(),
		parent: x.parent[:0], text: x.text[:0], call: x.call, unlike: x.unlike,
	}
	if x.unlike == nil {
		x.unlike = x.deceives
	}
}

// forget drops what belongs to the request, as its memory may be used again.
func (x *exchange) forget() {
	x.head, x.out, x.no = Head{}, Decision{}, refusal{}
	x.options, x.st, x.err = engine.Options{}, nil, nil
	x.text = front.Kept(x.text)
}

// serve takes the request through the steps.
func (x *exchange) serve() {
	if x.decide() {
		x.forward()
	}
}

// decide finds out whose the request is, and reports whether that has come about:
// otherwise it is answered.
func (x *exchange) decide() bool {
	switch {
	case x.rt.desk.Sit(&x.seat) > x.rt.cfg.maxInFlight():
		x.answer(cellway.RouterSaturated, "")
	case x.st == nil:
		x.answer(cellway.NotReady, "")
	case x.head.Method == http.MethodConnect:
		x.answer(cellway.BadRequest, "CONNECT is not served here.")
	case passes(x.head.Fields.Values("Via"), x.st.d.settings.Fleet) > 1:
		x.answer(cellway.Loop, "")
	default:
		x.out = x.st.d.Decide(&x.head)
		x.countLookup()
		return true
	}
	return false
}

// forward sends the request where the decision says, and once more if a guard
// says no and a newer map says where.
func (x *exchange) forward() {
	if x.out.Code == "" {
		x.in.KeepBody()
		defer x.in.DropBody()
	}
	for x.aim() && x.landed(x.in.Forward(x.to.pool, &x.options)) {
	}
}

// aim makes ready to send the request, and reports whether there is anywhere to
// send it: otherwise it is answered.
func (x *exchange) aim() bool {
	if x.out.Code != "" {
		x.answer(x.out.Code, x.detail())
		return false
	}
	to := x.st.targets[x.out.Cell.ID]
	if to.pool == nil {
		x.answer(cellway.CellUnreachable, "")
		return false
	}
	x.to = to
	key := x.out.Found.Key
	if x.out.PassThrough {
		key = ""
	}
	x.options = engine.Options{
		Tenant: x.out.Route.Key.Tenant(), Edit: x,
		KeepCellHeaders: x.rt.cfg.ExplainHeaders, MaxBody: x.rt.cfg.MaxBody,
	}
	x.in.Track(key, x.out.Cell.ID)
	if x.rt.state.Load() != x.st {
		x.rt.sweepLater() // the sweep of that swap may have missed it
	}
	return true
}

// landed takes in what became of one try, and reports whether there is to be
// another. If a guard refused the request, it may wait for another map.
func (x *exchange) landed(rep *engine.Report) bool {
	x.report = *rep
	x.attempts += rep.Attempts
	x.atCell += rep.AtCell
	x.queued += rep.Queued
	x.bytesIn, x.sent = rep.BytesIn, rep.BytesOut
	if !rep.Swallowed {
		x.conclude()
		return false
	}
	x.refusals++
	asked, began := x.rt.refresher.wake(x.out.Cell.ID)
	if x.refusals == 1 && x.redirect(asked) {
		if x.out.Code == "" && !x.in.Rewind() {
			// It could be sent, had it been smaller: no cause for an alarm.
			x.answer(cellway.CellMismatch, "")
			return false
		}
		if x.out.Code == "" {
			x.to.figures.resent.Add(1)
		}
		return true
	}
	if x.in.Gone() {
		x.code, x.status = ClientGone, engine.StatusClientGone
		return false
	}
	x.mismatch(began)
	return false
}

// conclude answers in place of a cell that did not.
func (x *exchange) conclude() {
	rep := &x.report
	x.err = rep.Err
	if errors.Is(rep.Err, errMoved) || errors.Is(rep.Err, front.ErrStopping) {
		x.rt.ended.Add(1)
	}
	switch {
	case rep.Code == "" || rep.HeadSent:
		x.code, x.status = rep.Code, rep.Status
	case rep.Code == ClientGone:
		x.code, x.status = rep.Code, engine.StatusClientGone
	case rep.Code == Stopped:
		x.answer(endedAnswer(rep))
	default:
		a := answerOf(rep.Code)
		a.Status = rep.Status
		x.say(&a)
	}
}

// endedAnswer says what the client hears of a request that a swap or a stop
// has ended. No code that invites another try may say so of a request that was
// sent: it may have run.
func endedAnswer(rep *engine.Report) (code cellway.Code, detail string) {
	switch {
	case rep.Attempts > 0:
		return cellway.CellProtocol, "The router ended the request before its answer. It may have been carried out."
	case errors.Is(rep.Err, front.ErrStopping):
		return cellway.NotReady, ""
	}
	return cellway.CellDrained, ""
}

// detail says more about why the decision refused the request, if there is
// more to say.
func (x *exchange) detail() string {
	switch x.out.Code {
	case cellway.KeyMissing:
		return "The request names no tenant. Looked in " + x.st.d.looked + "."
	case cellway.KeyConflict, cellway.KeyInvalid:
		if why := x.out.Found.Why; why != "" {
			return strings.ToUpper(why[:1]) + why[1:] + "."
		}
		return "An alias and the request both name a part of the tenant."
	}
	return ""
}

// answer writes an answer of the router's own. The detail is the code's own, if it
// is "".
func (x *exchange) answer(code cellway.Code, detail string) {
	a := answerOf(code)
	if detail != "" {
		a.Detail = detail
	}
	x.say(&a)
}

// say writes a. The log and the figures have its status for clients of gRPC too.
func (x *exchange) say(a *front.Answer) {
	h := x.in.Header()
	x.explainHeaders(h)
	if x.in.HTTP1() && (x.rt.desk.Stopping() || x.rt.tooMany(a.Code)) {
		h.Set("Connection", "close")
	}
	x.code, x.status = a.Code, a.Status
	x.sent = a.Say(x.in, h, x.rt.cfg.name())
}

// leave takes the request out of the router's limits. It does so once.
func (x *exchange) leave() { x.seat.Leave() }

func (x *exchange) countLookup() {
	if x.out.Found.Code != "" {
		return
	}
	r := &x.out.Route
	if int(r.Rule) < len(x.rt.rules) {
		x.rt.rules[r.Rule].Add(1)
	}
	if r.Kind.IsOverride() {
		x.rt.overrides.Add(1)
	}
}

// count counts the request that has ended, and logs it.
func (x *exchange) count() {
	f, cell := x.rt.none, cellway.CellID("")
	var version cellway.Version
	if x.st != nil {
		version = x.st.d.m.Version()
		if owner := x.out.owner(x.st.d); owner != nil {
			f, cell = x.st.targets[owner.ID].figures, owner.ID
		}
	}
	now := x.in.Now()
	f.outcomes[outcomeIndex(x.code)].Add(1)
	f.statuses[min(x.status/100, 5)].Add(1)
	f.bytesIn.Add(uint64(max(x.bytesIn, 0)))
	f.bytesOut.Add(uint64(max(x.sent, 0)))
	if !x.report.Tunnel {
		x.rt.added.Observe(now.Sub(x.start) - x.atCell - x.queued)
	}
	switch {
	case x.out.PassThrough:
		x.rt.keyless.Add(route(&x.head))
	case cell != "":
		f.tenants.Add(string(x.out.Route.Key.Tenant()))
	}
	if x.rt.lines != nil && front.Logged(x.code == "" && x.status < 500, x.rt.cfg.AccessSample) {
		x.log(now, cell, version)
	}
}

// route names a request's method and first path segment, for a list of what
// has no key yet.
func route(h *Head) string {
	path := h.Path
	if i := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); i >= 0 {
		path = path[:i+1]
	}
	return h.Method[:min(len(h.Method), 16)] + " " + path[:min(len(path), 64)]
}
