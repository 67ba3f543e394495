package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// maxFresh is how often a request is sent again because a used connection
// turned out closed before anything was sent.
const maxFresh = 2

var (
	errOpen       = errors.New("the cell is left alone for a while")
	errNoEndpoint = errors.New("the cell has no endpoint left to try")
	errInterim    = errors.New("the cell sent too many interim answers")
	errSwitch     = errors.New("the cell switched protocols unasked")
	errStatus     = errors.New("the cell's status is none")
	errLength     = errors.New("the length of the cell's answer can't be read in one way")
	errDone       = errors.New("the request has ended")
	errOnce       = errors.New("the connection broke before an answer")
)

// A kind says which connections a request needs.
type kind uint8

const (
	plain kind = iota
	upgrade
	grpc
)

// A transfer is one call of Forward.
type transfer struct {
	pool *Pool
	w    http.ResponseWriter
	rc   *http.ResponseController
	in   *http.Request
	o    Options
	rep  Report
	kind kind

	outside bool           // the place among the cell's requests is given back
	resp    *http.Response // the answer, if there is one
	whole   bool           // all was done that there was to do

	ctx    context.Context // ends with the client, the watch, the caller, or us
	cancel context.CancelCauseFunc
	watch  watch
	header http.Header // what goes to the cell
	came   time.Time   // when Forward was called
	began  time.Time   // the first attempt
	tried  time.Time   // the last attempt
	at     []*endpoint // those of all attempts

	hasBody  bool
	expects  bool        // the client waits for a 100
	duplex   bool        // net/http leaves the body to us
	trailers http.Header // filled when the body has ended

	bytesIn   atomic.Int64
	bodyEOF   atomic.Bool
	bodyErr   atomic.Pointer[error]
	streaming atomic.Bool // the answer's head is out
	asked     atomic.Bool // the cell sent a 100
	heard     atomic.Bool // the cell sent anything

	mu     sync.Mutex
	endp   *endpoint
	conn   *cellConn // of the last attempt, if it is HTTP/1
	shared *cellConn // of the last attempt, if it is HTTP/2
	secure *tls.Conn // of the last attempt, if it is over TLS
	reused bool
	anew   bool // the next attempt is to have a connection of its own
	try    *try // the last attempt
	bodies []*sentBody

	interim interims
	invited atomic.Bool // the client was sent a 100
}

func newTransfer(p *Pool, w http.ResponseWriter, r *http.Request, o Options) *transfer {
	t := &transfer{pool: p, w: w, rc: http.NewResponseController(w), in: r, o: o, hasBody: HasBody(r), came: time.Now()}
	switch {
	case Upgradable(r):
		t.kind = upgrade
	case IsGRPC(r):
		t.kind = grpc
	}
	t.expects = t.hasBody && r.ProtoAtLeast(1, 1) && hasListToken([]byte(r.Header.Get("Expect")), "100-continue")
	return t
}

// run does it all and fills rep.
func (t *transfer) run() {
	t.pool.requests.Add(1)
	if t.o.MaxBody > 0 && t.in.ContentLength > t.o.MaxBody {
		t.fail(cellway.BodyTooLarge, 413, errBodyTooLarge)
		return
	}
	start := time.Now()
	if t.pool.breaker.refuses(start, t.o.Tenant) {
		t.fail(cellway.CellUnreachable, 503, errOpen)
		return
	}
	if t.kind == upgrade {
		// Its place among the tunnels is kept for it; until the 101 it is a
		// request like any other.
		if t.pool.tunnels.enter(t.in.Context(), 0) != nil {
			t.fail(cellway.CellSaturated, 503, errFull)
			return
		}
		defer t.pool.tunnels.leave()
	}
	err := t.pool.gate.enter(t.in.Context(), t.o.QueueWait)
	t.began = time.Now()
	t.rep.Queued = t.began.Sub(start)
	switch {
	case err == errFull:
		t.fail(cellway.CellSaturated, 503, err)
		return
	case err != nil:
		t.failGone()
		return
	}
	defer t.leaveGate()

	limits := &t.pool.all.cfg.Timeouts
	t.ctx, t.cancel = context.WithCancelCause(t.in.Context())
	silence := limits.ClientBody
	if t.kind == grpc {
		silence = limits.Idle // a stream may be silent for its own reasons
	}
	t.watch.log = t.pool.all.cfg.Log
	t.watch.start(limits, silence, t.o.Patience, t.cancel)
	defer t.watch.stop()
	if t.hasBody {
		if t.o.Body != nil {
			t.o.Body.rc.Store(t.rc)
		}
		if t.in.ProtoMajor == 1 {
			// Else net/http reads the body to its end before the answer's head.
			t.duplex = t.rc.EnableFullDuplex() == nil
		}
	}
	unblocked := make(chan struct{})
	letGo := context.AfterFunc(t.ctx, func() {
		defer close(unblocked)
		t.unblock()
	})

	defer t.end(letGo, unblocked)
	if t.resp = t.reach(); t.resp != nil {
		t.take(t.resp)
	}
	t.whole = true
}

// end ends what has begun, also if somebody has panicked in between. letGo keeps
// unblock from being called; if it can't, unblocked is closed when that is over.
func (t *transfer) end(letGo func() bool, unblocked <-chan struct{}) {
	if !t.whole {
		t.cancel(errDone) // so that nobody waits for the client
		<-unblocked
		t.silence()
	} else if !letGo() {
		<-unblocked // w is not to be touched when the handler has returned
	}
	t.cancel(errDone) // before the body is closed: over HTTP/2 that waits
	if t.resp != nil {
		t.resp.Body.Close()
	}
	t.releaseBody()
	if t.endp != nil {
		t.endp.leave()
	}
	t.rep.BytesIn += t.bytesIn.Load()
	t.rep.AtCell = time.Since(t.began)
}

// leaveGate gives the place among the cell's requests back. It does so once.
func (t *transfer) leaveGate() {
	if !t.outside {
		t.outside = true
		t.pool.gate.leave()
	}
}

// reach sends the request to endpoint after endpoint until an answer's head is
// there, and reports what stands against it if there is none.
func (t *transfer) reach() *http.Response {
	p := t.pool
	switch p.breaker.ask(time.Now(), t.o.Tenant) {
	case refused:
		t.fail(cellway.CellUnreachable, 503, errOpen)
		return nil
	case asProbe:
		defer p.breaker.ended(t.o.Tenant)
	}
	t.header = t.outHeader()
	err := errNoEndpoint
	var tried []*endpoint
	for tries, fresh := 0, 0; tries < p.all.cfg.Attempts+maxFresh; tries++ {
		e, probe := p.pick(time.Now(), t.o.Tenant, tried)
		if e == nil {
			break
		}
		if probe {
			defer e.breaker.ended(t.o.Tenant) // when the outcome is known
		}
		var resp *http.Response
		resp, err = t.attempt(e)
		if err == nil {
			return resp
		}
		if t.ctx.Err() != nil || !t.mayResend() {
			break
		}
		if _, ok := errors.AsType[*connectError](err); ok {
			if tried = append(tried, e); len(tried) == p.all.cfg.Attempts {
				break
			}
		} else if fresh++; fresh > maxFresh || !t.foundClosed(err) {
			break
		}
		t.anew = fresh == maxFresh // connections that are left may be like the last two
		e.leave()
		t.mu.Lock()
		t.endp = nil
		t.mu.Unlock()
	}
	t.failReach(err)
	return nil
}

// attempt sends the request to e once. Where it returns an answer, that one's
// body is the caller's to close.
func (t *transfer) attempt(e *endpoint) (*http.Response, error) {
	if !slices.Contains(t.at, e) {
		t.at = append(t.at, e)
		t.rep.Attempts++
	}
	t.rep.Endpoint = e.name
	t.tried = time.Now()
	e.enter()
	ctx, end := context.WithCancelCause(t.ctx) // which its answer needs until the transfer ends
	a := &try{end: end}
	t.mu.Lock()
	t.endp, t.conn, t.shared, t.secure, t.reused, t.try = e, nil, nil, nil, false, a
	t.mu.Unlock()
	t.watch.enter(connecting)
	out := t.outRequest(httptrace.WithClientTrace(ctx, t.hooks(a)), e)
	tr := e.plain
	switch {
	case t.anew || e.alone(t.kind, out.Trailer):
		tr = e.anew(t.kind)
	case t.kind == upgrade:
		tr = e.switchable
	case t.kind == grpc:
		tr = e.grpc
	}
	resp, err := tr.RoundTrip(out)
	if a.unsound.Load() {
		if err == nil {
			resp.Body.Close()
		}
		return nil, errStale
	}
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, ok := errors.AsType[*connectError](err); ok && t.sentOnce() {
			err = errOnce // net/http has tried to connect once more
		} else if last := lastWord(t.secure, err); t.broughtNothing(last) {
			err = e.unshaken(last, t.conn != nil && t.conn.untouched())
		}
		return nil, err
	}
	if !t.watch.answered() {
		resp.Body.Close()
		return nil, errGaveUp
	}
	t.rep.FirstByte = time.Since(t.tried)
	t.rep.Status = resp.StatusCode
	p := t.pool
	p.answered(e)
	p.answers.Add(1)
	p.observe(t.rep.FirstByte)
	if resp.StatusCode >= 500 {
		p.serverErrors.Add(1)
	}
	return resp, nil
}

// outRequest returns the request for e.
func (t *transfer) outRequest(ctx context.Context, e *endpoint) *http.Request {
	in := t.in
	out := &http.Request{
		Method: in.Method, Host: in.Host, Header: t.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{Scheme: e.scheme, Host: e.authority},
	}
	if t.kind == plain {
		// Whoever sends TE says so, but not over HTTP/2, which https may be.
		delete(t.header, "Connection")
		if e.scheme == "http" && t.header["Te"] != nil {
			t.header["Connection"] = []string{"TE"}
		}
	}
	host := in.Host
	if host == "" {
		host = e.authority
	}
	setTarget(out.URL, in, host)
	if b := t.newBody(); b != nil {
		out.Body = b
		out.ContentLength = in.ContentLength
		if in.ContentLength < 0 {
			out.TransferEncoding = []string{"chunked"} // else a GET's body is waited for
			t.trailers = make(http.Header)
			for name := range in.Trailer {
				if mayTrail(name) {
					t.trailers[name] = nil
				}
			}
			out.Trailer = t.trailers
		}
		if t.o.Body != nil {
			out.GetBody = t.bodyAgain
		}
	}
	return out.WithContext(ctx)
}

// sentOnce reports whether some of the request was sent, so that none of it may
// be sent again. The caller holds the mutex.
func (t *transfer) sentOnce() bool { return t.o.Once && t.conn != nil && !t.conn.untouched() }

// broughtNothing reports whether err may be the end of a handshake: over the connection
// of the last attempt no answer has come. Over HTTP/2 others may be the first to use
// one whose handshake the cell has yet to refuse.
func (t *transfer) broughtNothing(err error) bool {
	return !t.heard.Load() && (!t.reused || t.shared != nil && !t.shared.answered.Load() && (refusesCertificate(err) || isUnestablished(err)))
}

// foundClosed reports whether that is how it looks that the cell had closed the used
// connection of the last attempt, which err has ended: nothing was sent over it. Over
// one of HTTP/2 nobody knows what was, so it is no answer to a request that is safe;
// package http sends such a one again only over HTTP/1.
func (t *transfer) foundClosed(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == errStale:
		return true
	case !t.reused:
		return false
	case t.conn != nil:
		return t.conn.untouched()
	}
	return !t.o.Once && !t.heard.Load() && isSafe([]byte(t.in.Method)) && !endsStream(err)
}

// unwanted reports whether the cell answered for good though the client waits
// to be asked for its body.
func (t *transfer) unwanted() bool {
	return t.expects && t.heard.Load() && !t.asked.Load() && t.interim.count.Load() == 0
}

// fail reports what stands against an answer from the cell.
func (t *transfer) fail(code cellway.Code, status int, err error) {
	t.silence()
	t.rep.Code, t.rep.Err = code, err
	if !t.rep.HeadSent {
		t.rep.Status = status
		t.closeAfter()
	}
}

// closeAfter has net/http close an HTTP/1 connection after the answer if part
// of the request is still unread. Nobody can say what the rest would be taken
// for.
func (t *transfer) closeAfter() {
	if t.duplex && !t.bodyEnded() {
		t.w.Header().Set("Connection", "close")
	}
}

// failReach sorts the error of a request that got no answer's head.
func (t *transfer) failReach(err error) {
	cause := context.Cause(t.ctx)
	switch {
	case cause == errFirstByte && t.endp != nil:
		t.pool.timedOut(t.endp, t.o.Tenant)
		t.fail(cellway.CellTimeout, 504, cause)
	case t.failClient(cause):
	default:
		if ce, ok := errors.AsType[*connectError](err); ok || err == errNoEndpoint {
			if ok {
				err = ce
			}
			t.fail(cellway.CellUnreachable, 502, err)
			return
		}
		if !t.failDeadline(err) {
			t.fail(cellway.CellProtocol, 502, foreign{err})
		}
	}
}

// failClient sorts what did not go wrong in the cell: the watch, the client,
// its body, the caller. It returns false if it was none of these.
func (t *transfer) failClient(cause error) bool {
	switch cause {
	case errWhole, errFirstByte, errGaveUp:
		t.fail(cellway.CellTimeout, 504, cause)
		return true
	case errClientSlow:
		t.fail(cellway.ClientTimeout, 408, cause)
		return true
	}
	if p := t.bodyErr.Load(); p != nil && t.failBody(*p) {
		return true
	}
	if t.in.Context().Err() != nil {
		t.failGone()
		return true
	}
	return false
}

// failBody sorts an error of the client's body, and returns false if it only
// follows from another.
func (t *transfer) failBody(err error) bool {
	if c := connOf(t.in.Context()); c != nil && c.refused() != OK {
		t.fail(cellway.BadRequest, 400, &Refusal{c.refused()})
		return true
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || err == errBodyTooLarge {
		t.fail(cellway.BodyTooLarge, 413, err)
		return true
	}
	if errors.Is(err, errBodyClosed) || isDeadline(err) {
		return false
	}
	if isGone(err) || t.in.Context().Err() != nil {
		t.fail(ClientGone, StatusClientGone, fmt.Errorf("read the request's body: %w", err))
		return true
	}
	t.fail(cellway.BadRequest, 400, fmt.Errorf("read the request's body: %w", err))
	return true
}

// failGone sorts the end of the request's own context.
func (t *transfer) failGone() {
	cause := context.Cause(t.in.Context())
	if cause == nil || errors.Is(cause, context.Canceled) {
		t.fail(ClientGone, StatusClientGone, errors.New("the client went away"))
		return
	}
	t.fail(Stopped, 503, cause)
}
