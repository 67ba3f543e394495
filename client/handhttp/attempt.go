package handhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/cellway/cellway/shuffle/hand"
)

// An attempt is one request to one member.
type attempt struct {
	c     *call
	to    *endpoint
	n     int  // counted from 0
	probe bool // of a member that was set aside

	hand   []*endpoint
	others uint64 // by place in the hand: those that may be asked instead
	anyway bool   // in a hand of one, the same may be asked again

	started int64
	soft    int64           // when it is left for another attempt, if there can be one; 0 for never
	ctx     context.Context // of this attempt alone
	cancel  context.CancelCauseFunc
	once    sync.Once // ends the accounting

	mu    sync.Mutex
	timer *time.Timer
	conn  net.Conn // that it got last; nil if nothing was sent
	wrote bool     // something was written to it, or to one before it
	done  bool     // an answer began, or an error came
	cut   error    // why it was ended before the call

	// Set when it is over.
	resp    *http.Response
	err     error
	outcome hand.Outcome
	took    time.Duration
}

// newAttempt prepares the call's next attempt, to the member at that place in the
// hand.
func (c *call) newAttempt(at int, probe bool) *attempt {
	a := &attempt{c: c, to: c.dealt.endpoints[at], n: c.Start(), probe: probe, hand: c.dealt.endpoints}
	a.anyway = c.Other(func(at int) bool { a.others |= 1 << at; return false })
	a.ctx, a.cancel = context.WithCancelCause(c.req.Context())
	return a
}

// try returns what the rules of retries want to know of a.
func (a *attempt) try() hand.Try {
	t := hand.Try{Member: &a.to.Member, N: a.n, Probe: a.probe, Outcome: a.outcome, Took: a.took, Over: a.started + int64(a.took), Refused: a.refused()}
	if a.resp != nil {
		t.Status = a.resp.StatusCode
		t.After, t.Waits = hand.RetryAfter(a.resp.Header.Get("Retry-After"), time.Now())
	}
	return t
}

// run sends the request and waits until its answer begins.
func (a *attempt) run() {
	t, req := a.c.t, a.c.req
	a.to.Enter()
	a.started = t.cell.Now()
	a.soft = a.c.SoftLimit(a.n, a.started)

	ctx := httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{GotConn: a.gotConn, WroteHeaders: a.wroteHeaders})
	body, err := bodyOf(req, a.n == 0)
	if err != nil {
		a.finish(nil, err)
		return
	}
	out := req.WithContext(ctx)
	u := *req.URL
	u.Scheme, u.Host = a.to.url.Scheme, a.to.url.Host
	out.URL = &u
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.Body = body
	out.Header = req.Header.Clone()
	if out.Header == nil {
		out.Header = http.Header{}
	}
	out.Header.Set(HandHeader, a.c.dealt.source.Version())
	out.Header.Set(AttemptHeader, strconv.Itoa(a.n+1))
	if a.c.key != "" {
		out.Header.Set(idempotencyKey, a.c.key)
	}
	a.mu.Lock()
	if !a.done {
		a.timer = time.AfterFunc(time.Duration(a.nextFire(a.started)-a.started), a.fire)
	}
	a.mu.Unlock()
	resp, err := t.base.RoundTrip(out)
	a.finish(resp, err)
}

// gotConn notes the connection. net/http, when one that was used before breaks
// under a request that may be repeated, sends it once more by itself, to the same
// member. That is no business of a connection: what broke this one may break
// the next, and other members are there. So the second one is closed before
// anything is sent. HTTP/2 repeats only what did not run.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil && a.wrote && a.c.idem && !a.c.t.http2(info.Conn) && a.cut == nil {
		a.cut = ErrBroken
		a.cancel(ErrBroken)
		info.Conn.Close()
		return
	}
	a.conn = info.Conn
}

func (a *attempt) wroteHeaders() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrote = true
}

// http2 reports whether requests share conn.
func (t *Transport) http2(conn net.Conn) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	base, ok := t.base.(*http.Transport)
	return !ok || base.Protocols != nil && base.Protocols.UnencryptedHTTP2()
}

// nextFire returns when the timer has something to decide after now.
func (a *attempt) nextFire(now int64) int64 {
	at := a.c.deadline
	if a.conn == nil {
		if connect := a.started + int64(a.c.t.cfg.ConnectTimeout); connect > now {
			at = min(at, connect)
		}
	}
	if a.soft > now {
		at = min(at, a.soft)
	}
	return at
}

// fire decides whether to wait on. An attempt is cut before the deadline only
// if another one will follow, and is paid for: otherwise its answer, however
// late, is the best there is.
func (a *attempt) fire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done || a.cut != nil {
		return
	}
	now := a.c.t.cell.Now()
	connecting := a.conn == nil && now >= a.started+int64(a.c.t.cfg.ConnectTimeout)
	switch {
	case now >= a.c.deadline:
		a.cut = fmt.Errorf("%w: %w", ErrTryTimeout, context.DeadlineExceeded)
		if a.conn == nil {
			a.cut = fmt.Errorf("%w: %w", ErrConnectTimeout, context.DeadlineExceeded)
		}
	case connecting && a.c.MayFollow(a.n, false, now):
		a.cut = ErrConnectTimeout
	case a.soft != 0 && now >= a.soft && !a.other():
		a.soft = now + max(now-a.started, int64(time.Millisecond)) // somebody may be back by then
		a.timer.Reset(time.Duration(a.nextFire(now) - now))
		return
	case a.soft != 0 && now >= a.soft && a.c.MayFollow(a.n, a.conn != nil, now):
		a.cut = ErrTryTimeout
	default:
		a.timer.Reset(time.Duration(a.nextFire(now) - now))
		return
	}
	a.cancel(a.cut)
}

// other reports whether there is another member to ask, as far as is known.
func (a *attempt) other() bool {
	if a.anyway {
		return true
	}
	for at, e := range a.hand {
		if a.others&(1<<at) != 0 && !e.shut.Load() {
			return true
		}
	}
	return false
}

// leave ends an attempt that nobody waits for any more.
func (a *attempt) leave(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done && a.cut == nil {
		a.cut = why
		a.cancel(why)
	}
}

// finish sorts what came back. If it is an answer, its body goes on until it is
// closed.
func (a *attempt) finish(resp *http.Response, err error) {
	a.mu.Lock()
	a.done = true
	if a.timer != nil {
		a.timer.Stop()
	}
	cut, conn := a.cut, a.conn
	a.mu.Unlock()
	a.took = time.Duration(a.c.t.cell.Now() - a.started)
	if err == nil && cut != nil {
		// The timer was faster by a hair and has cancelled the body.
		resp.Body.Close()
		resp, err = nil, cut
	}
	if err != nil {
		if cut != nil {
			err = cut
		} else if ctx := a.c.req.Context(); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		a.err = err
		a.outcome = a.judgeError(err, conn, cut)
		if a.outcome == hand.Unsent {
			a.to.shut.Store(true)
		}
		if a.outcome == hand.Silent {
			a.to.silent(conn)
		}
		a.end()
		return
	}
	a.to.spoke(conn)
	if a.to.shut.Load() { // which is rare
		a.to.shut.Store(false)
	}
	resp.Request = a.c.req
	a.outcome = hand.OutcomeOf(resp.StatusCode, resp.Header.Get(HandHeader) != "")
	a.resp = resp
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &tunnel{rw, a}
		return
	}
	b := &answerBody{rc: resp.Body, a: a, idle: a.c.t.cfg.IdleTimeout}
	b.mu.Lock()
	b.timer = time.AfterFunc(b.idle, b.fire)
	b.mu.Unlock()
	resp.Body = b
}

// judgeError sorts the error of an attempt.
func (a *attempt) judgeError(err error, conn net.Conn, cut error) hand.Outcome {
	switch {
	case errors.Is(cut, errLost):
		return hand.Lost
	case cut == nil && a.c.req.Context().Err() != nil:
		tooLong := a.c.t.cell.TooLong(a.took, a.c.t.cfg.ConnectTimeout)
		if conn != nil && tooLong && errors.Is(a.c.req.Context().Err(), context.DeadlineExceeded) {
			return hand.Silent
		}
		return hand.Ended
	case conn == nil:
		return hand.Unsent
	case errors.Is(cut, ErrBroken):
		return hand.Broken
	case cut != nil:
		return hand.Silent
	}
	return hand.Broken
}

// refused reports whether the member said at once that nobody listens.
func (a *attempt) refused() bool {
	return a.outcome == hand.Unsent && a.cut == nil && (errors.Is(a.err, syscall.ECONNREFUSED) || a.took < 10*time.Millisecond)
}

// end ends the accounting; the answer, if any, is over.
func (a *attempt) end() {
	a.once.Do(func() {
		a.to.Leave()
		a.cancel(nil)
	})
}

// drop gives the answer up. What little is left is read, so that the
// connection can be used again.
func (a *attempt) drop() {
	if a.resp != nil {
		if a.resp.ContentLength >= 0 && a.resp.ContentLength <= 4<<10 {
			io.CopyN(io.Discard, a.resp.Body, 4<<10)
		}
		a.resp.Body.Close()
	}
}

// record returns what is told of a.
func (a *attempt) record() Attempt {
	r := Attempt{Member: a.to.ID, Err: a.err, Took: a.took}
	if a.resp != nil {
		r.Status = a.resp.StatusCode
	}
	return r
}

// An answerBody is the body of an answer. Only its caller, or silence in
// the middle of it, ends it.
type answerBody struct {
	rc    io.ReadCloser
	a     *attempt
	idle  time.Duration
	timer *time.Timer

	mu      sync.Mutex
	reading int64 // since when a Read waits; 0 if none does
	stopped bool  // by silence
}

func (b *answerBody) Read(p []byte) (int, error) {
	now := b.a.c.t.cell.Now()
	b.mu.Lock()
	b.reading = max(now, 1)
	b.mu.Unlock()
	n, err := b.rc.Read(p)
	b.mu.Lock()
	b.reading = 0
	stopped := b.stopped
	b.mu.Unlock()
	if err == nil {
		return n, nil
	}
	b.timer.Stop()
	if err != io.EOF {
		if stopped {
			err = ErrIdle
		}
		if b.a.c.req.Context().Err() == nil {
			cell := b.a.c.t.cell
			cell.Failed(&b.a.c.ten.Tenant, &b.a.to.Member, false, false, cell.Now())
		}
	}
	b.a.end()
	return n, err
}

// fire looks whether a Read has waited for too long. A caller that does not
// read has all the time in the world.
func (b *answerBody) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := b.idle
	if b.reading != 0 {
		wait -= time.Duration(b.a.c.t.cell.Now() - b.reading)
	}
	if wait <= 0 {
		b.stopped = true
		b.a.cancel(ErrIdle)
		return
	}
	b.timer.Reset(wait)
}

func (b *answerBody) Close() error {
	b.timer.Stop()
	err := b.rc.Close()
	b.a.end()
	return err
}

// A tunnel is what a connection becomes after 101.
type tunnel struct {
	io.ReadWriteCloser
	a *attempt
}

func (t *tunnel) Close() error {
	err := t.ReadWriteCloser.Close()
	t.a.end()
	return err
}
