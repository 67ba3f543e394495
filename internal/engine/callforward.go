package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
)

var errBody = errors.New("the request's body failed")

// Forward sends the call to its cell and streams the answer to the client, as
// [Pool.Forward] does for a request of net/http. If the report has a Code and no
// HeadSent, nothing was written and the caller answers. An answer that broke off
// ends the connection; so does a request of which part is still unread. The
// report is the call's, and valid until the next Forward.
//
// It may be called again if the report says Swallowed and [Call.Rewind] says
// that the body can be sent once more.
func (k *Call) Forward(p *Pool, o *Options) *Report {
	k.pool, k.o = p, o
	k.rep = Report{}
	k.forward()
	p.count(&k.rep)
	return &k.rep
}

// forward does it all and fills rep.
func (k *Call) forward() {
	p, c := k.pool, k.c
	cfg := p.all.cfg
	p.requests.Add(1)
	if c.limits.Load() != &cfg.Timeouts {
		c.limits.Store(&cfg.Timeouts)
		c.srv.heed(tickOf(&cfg.Timeouts))
	}
	if cfg.Timeouts.Whole > 0 {
		c.began.Store(c.srv.now())
	}
	if k.o.MaxBody > 0 && k.head.Length > k.o.MaxBody {
		k.fail(cellway.BodyTooLarge, 413, errBodyTooLarge)
		return
	}
	now := time.Now()
	if p.breaker.refuses(now, k.o.Tenant) {
		k.fail(cellway.CellUnreachable, 503, errOpen)
		return
	}
	if k.upgrades() {
		// Its place among the tunnels is kept for it; until the 101 it is a
		// request like any other.
		if !p.tunnels.tryEnter() {
			k.fail(cellway.CellSaturated, 503, errFull)
			return
		}
		defer p.tunnels.leave()
	}
	if !p.gate.tryEnter() {
		err := k.queue(&p.gate)
		k.rep.Queued = time.Since(now)
		now = now.Add(k.rep.Queued)
		switch {
		case err == errFull:
			k.fail(cellway.CellSaturated, 503, err)
			return
		case err != nil:
			k.failCause(k.cause())
			return
		}
	}
	k.placed, k.since = true, now
	defer k.leaveGate()
	defer k.leaveEndpoint()
	if l := k.reach(now, nil); l != nil {
		k.take(l)
	}
	k.finish()
}

// finish fills in what is known at the end.
func (k *Call) finish() {
	k.rep.BytesIn += k.body.sent.Load()
	k.rep.AtCell = k.Now().Sub(k.since)
}

// leaveGate gives the place among the cell's requests back. It does so once.
func (k *Call) leaveGate() {
	if k.placed {
		k.placed = false
		k.pool.gate.leave()
	}
}

// enterEndpoint counts the call among those of e, until leaveEndpoint takes it
// out, which it does once.
func (k *Call) enterEndpoint(e *endpoint) {
	k.endp = e
	e.enter()
}

func (k *Call) leaveEndpoint() {
	if e := k.endp; e != nil {
		k.endp = nil
		e.leave()
	}
}

// queue waits for a place.
func (k *Call) queue(g *gate) error {
	return g.enter(k.context(), k.o.QueueWait)
}

// A lost is what came of a request that was sent, or was to be, over a link.
type lost struct {
	l       *link // nil: nothing was tried yet
	nothing bool  // nothing was sent
	err     error
}

// reach sends the request to endpoint after endpoint until an answer's head is
// there, and reports what stands against it if there is none. before is what a
// loop has tried in vain, or nil.
func (k *Call) reach(now time.Time, before *lost) *link {
	p, tenant := k.pool, k.o.Tenant
	if before == nil { // else it was asked for that
		switch p.breaker.ask(now, tenant) {
		case refused:
			k.fail(cellway.CellUnreachable, 503, errOpen)
			return nil
		case asProbe:
			defer p.breaker.ended(tenant)
		}
	}
	err := errNoEndpoint
	var at *endpoint // where the request was sent, or was to be
	k.tried = k.tried[:0]
	for {
		e, probe := (*endpoint)(nil), false
		if before != nil {
			e = before.l.e
		} else {
			e, probe = p.pick(now, tenant, k.tried)
		}
		if at = e; e == nil {
			break
		}
		if probe {
			defer e.breaker.ended(tenant) // when the outcome is known
		}
		var l *link
		if l, err = k.attempt(e, now, before); err == nil {
			return l
		}
		before = nil
		if _, ok := errors.AsType[*connectError](err); !ok || k.cause() != nil || !k.body.rewind() {
			break
		}
		if k.tried = append(k.tried, e); len(k.tried) == p.all.cfg.Attempts {
			break
		}
		k.leaveEndpoint()
		now = time.Now()
	}
	k.failReach(at, err)
	k.leaveEndpoint()
	clear(k.tried)
	return nil
}

// attempt sends the request to e over one link after the other until one proves
// to be alive.
func (k *Call) attempt(e *endpoint, now time.Time, before *lost) (*link, error) {
	fresh := 0
	if before == nil {
		k.rep.Attempts++
		k.rep.Endpoint = e.name
		k.enterEndpoint(e)
	} else if !k.again(before, &fresh) {
		return nil, before.err
	}
	for {
		var l *link
		if fresh < maxFresh {
			l = e.links.take()
		}
		if l == nil {
			var err error
			if l, err = k.dial(e); err != nil {
				return nil, err
			}
		}
		if !k.attach(l) {
			l.conn.Close()
			return nil, errDone
		}
		nothing, err := k.send(l)
		if err == nil {
			k.heads(e, now)
			return l, nil
		}
		isNew := !l.used && !k.reply.heard
		if !k.again(&lost{l, nothing, err}, &fresh) {
			if isNew {
				err = e.unshaken(err, nothing)
			}
			return nil, err
		}
	}
}

// again gives a link up, and reports whether the request may go over another one.
// fresh counts those that may have taken it.
func (k *Call) again(b *lost, fresh *int) bool {
	k.detach(b.l)
	b.l.conn.Close()
	if b.l.stray {
		b.l.e.strayed(b.l.idle, time.Now())
	}
	if !k.reply.heard {
		b.l.e.spoken.forget() // another server may be there, which speaks another protocol
	}
	switch {
	case k.cause() != nil || !b.l.used || !k.body.rewind() || k.o.Patience != nil && k.leftIt(false):
		return false
	case b.nothing: // the cell had closed it
	case k.reply.heard || !isSafe(k.head.Method) || k.o.Once:
		return false
	default:
		*fresh++
	}
	return true
}

// isSafe reports whether a method asks for nothing to change (RFC 9110, section
// 9.2.1).
func isSafe(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// attach makes l what the call's end cuts. It returns false if the call has
// ended.
func (k *Call) attach(l *link) bool {
	c := k.c
	if p := k.o.Patience; p != nil {
		c.heed(p.Limit())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracked = true
	if c.cause != nil {
		return false
	}
	c.link, c.patient, c.gaveUp = l, k.o.Patience, false
	return true
}

// heed makes soft the limit after which patience is asked.
func (c *client) heed(soft time.Duration) {
	c.soft.Store(int64(max(soft, 0)))
	if soft <= 0 {
		return
	}
	if tick := tickFor(max(soft, 200*time.Millisecond)); c.heeded == 0 || tick < c.heeded {
		c.heeded = tick
		c.srv.heed(tick)
	}
}

// detach takes that back, and reports whether l was not cut.
func (k *Call) detach(*link) bool {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.patient = nil, nil
	return c.cause == nil
}

// leftIt reports whether the wait for an answer over the last link was given up.
// Nobody will ask again if it is the last time.
func (k *Call) leftIt(last bool) (gaveUp bool) {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	gaveUp = c.gaveUp
	c.gaveUp = gaveUp && !last
	return gaveUp
}

// stay ends the question whether to wait: the answer's head is there.
func (k *Call) stay(l *link) {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patient = nil
	if c.gaveUp && c.cause == nil {
		c.gaveUp = false
		l.conn.SetDeadline(time.Time{})
	}
}

// send sends the request over l and reads the answer's head. If nothing was
// sent, nothing says so.
func (k *Call) send(l *link) (nothing bool, err error) {
	k.compose(l.e)
	if k.body.kind == bodyStreamed {
		nothing, err = k.body.send(l)
	} else {
		k.out = append(k.out, k.body.buffered()...)
		nothing, err = l.ask(k.out, l.used, &k.reply)
	}
	if err == nil {
		err = k.await(l)
	}
	if err != nil {
		k.body.halt(l)
	}
	return nothing, err
}

// compose makes the head of the request as it goes to e.
func (k *Call) compose(e *endpoint) {
	c := k.c
	k.filterRequest()
	if k.o.Edit != nil {
		k.o.Edit.EditRequest(&k.fields)
	}
	k.overTLS = e.scheme == "https"
	k.out = k.appendRequest(k.out[:0], e)
	k.reply.begin(&k.pool.all.buffers)
	c.enter(atCell, c.srv.when(k.Now()))
}

// await reads on until a final head is there, behind the one that is.
func (k *Call) await(l *link) (err error) {
	for err == nil {
		r := &k.reply
		switch {
		case r.bad != OK:
			err = fmt.Errorf("read the answer: %s: %w", r.bad.Detail(), errMalformed)
			continue
		case r.head.Status >= 200 || r.head.Status == 101:
			return nil
		}
		if err = k.passInterim(l.e); err != nil {
			break
		}
		if r.next(); !r.parse() {
			err = l.run(r)
		}
	}
	return err
}

var errMalformed = errors.New("the cell's answer can't be read in one way")

// heads takes in that the answer's head came from e.
func (k *Call) heads(e *endpoint, now time.Time) {
	p := k.pool
	if k.o.Patience != nil {
		k.stay(k.c.link)
	}
	at := k.Now()
	k.rep.FirstByte = at.Sub(now)
	k.rep.Status = k.reply.head.Status
	k.c.enter(atStream, k.c.srv.when(at))
	p.answered(e)
	p.answers.Add(1)
	p.observe(k.rep.FirstByte)
	if k.rep.Status >= 500 {
		p.serverErrors.Add(1)
	}
}

// fail reports what stands against an answer from the cell.
func (k *Call) fail(code cellway.Code, status int, err error) {
	k.rep.Code, k.rep.Err = code, err
	if k.rep.HeadSent {
		k.broken = true
	} else {
		k.rep.Status = status
	}
}

// failReach sorts the error of a request that got no answer's head. e is where
// it was sent.
func (k *Call) failReach(e *endpoint, err error) {
	cause := k.cause()
	if k.o.Patience != nil && k.leftIt(true) && cause == nil {
		cause = errGaveUp
	}
	if cause == errFirstByte && e != nil {
		k.pool.timedOut(e, k.o.Tenant)
	}
	if k.failCause(cause) {
		return
	}
	if ce, ok := errors.AsType[*connectError](err); ok || err == errNoEndpoint {
		if ok {
			err = ce
		}
		k.fail(cellway.CellUnreachable, 502, err)
		return
	}
	k.fail(cellway.CellProtocol, 502, err)
}

// failCause sorts what did not go wrong in the cell, and returns false for nil.
func (k *Call) failCause(cause error) bool {
	switch cause {
	case nil:
		return false
	case errWhole, errFirstByte, errGaveUp, errCellStalled:
		k.fail(cellway.CellTimeout, 504, cause)
	case errClientSlow, errClientStuck:
		k.fail(cellway.ClientTimeout, 408, cause)
	case errClientReset:
		k.fail(ClientGone, StatusClientGone, cause)
	case errBody:
		k.failBody()
	default:
		k.fail(Stopped, 503, cause)
	}
	return true
}

// failBody sorts an error of the client's body.
func (k *Call) failBody() {
	err := k.body.failure()
	if r, ok := errors.AsType[*Refusal](err); ok {
		k.c.srv.cfg.Checker.count(r.Reason)
		k.fail(cellway.BadRequest, 400, r)
		return
	}
	if err == errBodyTooLarge {
		k.fail(cellway.BodyTooLarge, 413, err)
		return
	}
	k.fail(ClientGone, StatusClientGone, fmt.Errorf("read the request's body: %w", err))
}
