package gateway

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// An exchange is one request on its way through the gateway. It edits the
// messages that are forwarded for it. Its memory is used again for another request.
type exchange struct {
	gw     *Gateway
	call   hand.Call    // the request's attempts
	called front.Called // what in is, if it is a call
	text   []byte       // a value under construction

	request
}

// A request is what belongs to one request.
type request struct {
	in      front.Inbound
	start   time.Time
	method  string
	host    string
	path    string
	fields  guard.Fields
	upgrade bool

	verdict  guard.Verdict
	canary   bool
	deadline int64 // when the answer must have begun
	ten      *tenant
	st       *state
	dealt    *dealt

	running   shuffle.Permit // its place among the tenant's requests
	tunnelled shuffle.Permit // its place among the tenant's tunnels
	seat      front.Seat     // its place in the gateway

	attempt
	stop error // why there was no further attempt

	code             cellway.Code
	err              error
	status           int
	bytesIn, sent    int64
	attempts         int
	atWorker, queued time.Duration
}

// begin makes x a new exchange.
func (x *exchange) begin(in front.Inbound, start time.Time) {
	x.text = x.text[:0]
	x.request = request{in: in, start: start, st: x.gw.state.Load()}
}

// forget drops what belongs to the request, as its memory may be used again.
func (x *exchange) forget() {
	x.request = request{}
	x.text = front.Kept(x.text)
}

// serve takes the request through the steps.
func (x *exchange) serve() {
	if x.decide() {
		x.serveDecided()
	}
}

// serveDecided takes it through those that may wait.
func (x *exchange) serveDecided() {
	if x.deal() {
		x.forward()
	}
}

// decide finds out whose the request is, and reports whether it is to be served:
// otherwise it is answered.
func (x *exchange) decide() bool {
	gw := x.gw
	if gw.desk.Sit(&x.seat) > gw.cfg.maxInFlight() {
		x.answer(Saturated, "")
		return false
	}
	if x.method == http.MethodConnect {
		x.answer(cellway.BadRequest, "CONNECT is not served here.")
		return false
	}
	var state *tls.ConnectionState
	if gw.judge.NamesMatter() {
		state = x.in.TLS()
	}
	x.verdict = gw.judge.Judge(x.fields, x.in.Peer(), state)
	tenant := string(x.verdict.Identity.Tenant())
	switch {
	case x.verdict.Refused != "":
		x.misrouted(state)
	case x.st == nil:
		x.answer(cellway.NotReady, "")
	case tenant != "" && tenant == gw.canary.Name:
		x.canary, x.ten = true, gw.canary
		return true
	default:
		x.ten = gw.tenants.Get(tenant)
		return x.admit()
	}
	return false
}

// deal finds out which workers the request may go to, and reports whether there are
// any: otherwise it is answered. It may wait for a dealer, or for a worker that the
// canary asks after.
func (x *exchange) deal() bool {
	if x.canary {
		return x.dealCanary()
	}
	if x.dealt, x.err = x.gw.deal(x.ten, x.st); x.err != nil {
		x.answer(HandUnreachable, "")
		return false
	}
	return true
}

// dealtBefore finds out the same without waiting, and reports whether that has come
// about: the tenant was dealt a hand, which is that of the list in use.
func (x *exchange) dealtBefore() bool {
	if d := x.ten.dealtBy(x.st); d != nil && d.err == nil {
		x.dealt = d
		return true
	}
	return false
}

// idempotent reports whether the request can do no harm when it arrives twice.
func (x *exchange) idempotent() bool {
	return hand.Idempotent(x.method) || len(x.fields.Values("Idempotency-Key")) > 0
}

// misrouted gives the guard's answer.
func (x *exchange) misrouted(state *tls.ConnectionState) {
	x.tellOfRefusal(state)
	h := x.in.Header()
	status, body := x.verdict.Answer(h.Set)
	x.closeIfStopping(h)
	x.code, x.status = Misrouted, status
	x.sent = x.in.Answer(status, body)
}

// answer writes an answer of the gateway's own. The detail is the code's own, if it
// is "".
func (x *exchange) answer(code cellway.Code, detail string) {
	a := answerOf(code)
	if detail != "" {
		a.Detail = detail
	}
	x.say(&a)
}

// say writes a.
func (x *exchange) say(a *front.Answer) {
	h := x.in.Header()
	x.explain(h)
	x.closeIfStopping(h)
	x.code, x.status = a.Code, a.Status
	x.sent = a.Say(x.in, h, x.gw.cfg.name())
}

func (x *exchange) closeIfStopping(h engine.Header) {
	if x.in.HTTP1() && x.gw.desk.Stopping() {
		h.Set("Connection", "close")
	}
}

// leave takes the request out of all limits. It does so once.
func (x *exchange) leave() {
	x.quit()
	x.call.Over()
	x.running.Release()
	x.tunnelled.Release()
	x.seat.Leave()
}

// become makes the request a tunnel, which may last for days.
func (x *exchange) become() {
	x.running.Release()
	x.seat.Tunnel(x.in)
}
