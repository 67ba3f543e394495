package router

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// An exchange is one request on its way through the router. It edits the
// messages that are forwarded for it.
type exchange struct {
	rt     *Router
	in     inbound
	start  time.Time
	st     *state // nil before the first map
	head   Head
	out    Decision
	to     target // where it was sent last
	peer   netip.Addr
	no     refusal // of the last attempt, if it was swallowed
	parent []byte  // of the trace; empty until the request is forwarded
	text   []byte  // a value under construction

	inFlight bool // counted in the router's own limit
	tunnel   bool

	code           cellway.Code
	err            error
	status         int
	bytesIn, sent  int64
	attempts       int
	refusals       int // by guards
	atCell, queued time.Duration
	report         engine.Report // of the last attempt
	options        engine.Options

	call   called                 // what in is, if it is a call
	unlike func(name string) bool // deceives, bound once
}

// begin makes x a new exchange. It keeps the memory of the one before.
func (x *exchange) begin(in inbound, start time.Time) {
	*x = exchange{
		rt: x.rt, in: in, start: start, st: x.rt.state.Load(), peer: in.peer(),
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
}

func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{rt: rt}
	x.begin(&served{rt: rt, w: w, r: r, from: peerOf(r)}, time.Now())
	x.head = HeadOf(r)
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

// serve takes the request through the steps.
func (x *exchange) serve() {
	if x.decide() {
		x.forward()
	}
}

// decide finds out whose the request is, and reports whether that has come about:
// otherwise it is answered.
func (x *exchange) decide() bool {
	x.inFlight = true
	switch n := x.rt.inFlight.Add(1); {
	case n > x.rt.cfg.maxInFlight():
		x.answer(answer{code: cellway.RouterSaturated})
	case x.st == nil:
		x.answer(answer{code: cellway.NotReady})
	case x.head.Method == http.MethodConnect:
		x.answer(answer{code: cellway.BadRequest, detail: "CONNECT is not served here."})
	case passes(x.head.Fields.Values("Via"), x.st.d.settings.Fleet) > 1:
		x.answer(answer{code: cellway.Loop})
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
		x.in.keepBody()
		defer x.in.dropBody()
	}
	for x.aim() && x.landed(x.in.forward(x.to.pool, &x.options)) {
	}
}

// aim makes ready to send the request, and reports whether there is anywhere to
// send it: otherwise it is answered.
func (x *exchange) aim() bool {
	if x.out.Code != "" {
		x.answer(answer{code: x.out.Code, detail: x.detail()})
		return false
	}
	to := x.st.targets[x.out.Cell.ID]
	if to.pool == nil {
		x.answer(answer{code: cellway.CellUnreachable})
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
	x.in.track(key, x.out.Cell.ID)
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
		if x.out.Code == "" && !x.in.rewind() {
			// It could be sent, had it been smaller: no cause for an alarm.
			x.answer(answer{code: cellway.CellMismatch})
			return false
		}
		if x.out.Code == "" {
			x.to.figures.resent.Add(1)
		}
		return true
	}
	if x.in.gone() {
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
	if errors.Is(rep.Err, errMoved) || errors.Is(rep.Err, errStopping) {
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
		x.answer(answer{code: rep.Code, status: rep.Status})
	}
}

// endedAnswer says what the client hears of a request that a swap or a stop
// has ended. No code that invites another try may say so of a request that was
// sent: it may have run.
func endedAnswer(rep *engine.Report) answer {
	switch {
	case rep.Attempts > 0:
		return answer{code: cellway.CellProtocol, detail: "The router ended the request before its answer. It may have been carried out."}
	case errors.Is(rep.Err, errStopping):
		return answer{code: cellway.NotReady}
	}
	return answer{code: cellway.CellDrained}
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

// answer writes an answer of the router's own.
func (x *exchange) answer(a answer) {
	h := x.in.header()
	x.explainHeaders(h)
	if x.in.http1() && (x.rt.phase.Load() == stopping || x.rt.tooMany(a.code)) {
		h.Set("Connection", "close")
	}
	x.code = a.code
	var body []byte
	x.status, body = a.compose(h, x.rt.cfg.name(), x.in.grpc())
	status := x.status
	if x.in.grpc() {
		status = http.StatusOK
	}
	x.sent = x.in.answer(status, body)
}

// leave takes the request out of the router's limits. It does so once.
func (x *exchange) leave() {
	if x.inFlight {
		x.inFlight = false
		x.rt.inFlight.Add(-1)
	}
	if x.tunnel {
		x.tunnel = false
		x.rt.tunnels.Add(-1)
	}
}

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
	whole := x.in.now().Sub(x.start)
	f.outcomes[outcomeIndex(x.code)].Add(1)
	f.statuses[min(x.status/100, 5)].Add(1)
	f.bytesIn.Add(uint64(max(x.bytesIn, 0)))
	f.bytesOut.Add(uint64(max(x.sent, 0)))
	if !x.report.Tunnel {
		x.rt.added.observe(whole - x.atCell - x.queued)
	}
	switch {
	case x.out.PassThrough:
		x.rt.keyless.Add(route(&x.head))
	case cell != "":
		f.tenants.Add(string(x.out.Route.Key.Tenant()))
	}
	if x.rt.logs(x.code, x.status) {
		x.log(cell, version, whole)
	}
}

// log logs the request that has ended.
func (x *exchange) log(cell cellway.CellID, version cellway.Version, whole time.Duration) {
	parent := string(x.parent)
	if v := x.head.Fields.Values(traceParent); parent == "" && len(v) == 1 {
		parent = v[0]
	}
	one := line{
		at: x.start, method: clip(x.head.Method), host: clip(x.head.Host), path: clip(x.head.Path), proto: clip(x.in.proto()), traceID: clip(traceID(parent)),
		client: x.rt.trusted.clientOf(x.head.Fields, x.peer), cell: cell, endpoint: x.report.Endpoint, key: cellway.Key(clip(string(x.out.Route.Key))), version: version,
		code: x.code, status: x.status, attempts: x.attempts, in: x.bytesIn, out: x.sent,
		whole: whole, atCell: x.atCell, queued: x.queued, tunnel: x.report.Tunnel, passThrough: x.out.PassThrough,
	}
	if x.err != nil {
		one.fault = clip(x.err.Error())
	}
	x.rt.accessLog.write(one)
}

// logs reports whether a request that ended so goes to the access log.
func (rt *Router) logs(code cellway.Code, status int) bool {
	switch s := rt.cfg.AccessSample; {
	case rt.accessLog.log == nil:
		return false
	case code != "" || status >= 500 || s == 0:
		return true
	default:
		return s > 0 && rand.Float64() < s
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

// Refuse answers a request that never came so far: its head can't be read in
// one way, is too large, or came too late. It is for what checks heads in
// front of the router.
func (rt *Router) Refuse(w http.ResponseWriter, r *http.Request, code cellway.Code, detail string) {
	x := &exchange{rt: rt}
	x.begin(&served{rt: rt, w: w, r: r, from: peerOf(r)}, time.Now())
	x.head, x.st = HeadOf(r), nil
	x.answer(answer{code: code, detail: detail})
	x.count()
}
