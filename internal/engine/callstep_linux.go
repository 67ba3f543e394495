package engine

import (
	"os"
	"slices"
)

// pickSound chooses an endpoint if no breaker has anything to say, and nil
// otherwise.
func (p *Pool) pickSound() *endpoint {
	all := *p.endpoints.Load()
	if len(all) == 0 || p.breaker.dirty.Load() {
		return nil
	}
	start := 0
	if len(all) > 1 {
		start = int(p.turn.Add(1)-1) % len(all)
	}
	var best *endpoint
	for i := range all {
		e := all[(start+i)%len(all)]
		if e.breaker.dirty.Load() {
			return nil
		}
		if best == nil || e.active.Load() < best.active.Load() {
			best = e
		}
	}
	return best
}

// Start begins to send the call to its cell, if nothing has to be waited for and
// nothing is out of the ordinary. It returns [Sent] if it has, so that
// [Stepper].EndCall hears of the answer; otherwise [Stuck].
func (k *Call) Start(p *Pool, o *Options) Step {
	c := k.c
	l := c.loop
	if l == nil || len(c.stuck) > 0 || k.body.kind == bodyStreamed || o.MaxBody > 0 && k.head.Length > o.MaxBody {
		return Stuck
	}
	e := p.pickSound()
	if e == nil || !p.gate.tryEnter() {
		return Stuck
	}
	ln := l.take(e)
	if ln == nil {
		p.gate.leave()
		return Stuck
	}
	cfg := p.all.cfg
	p.requests.Add(1)
	if c.limits.Load() != &cfg.Timeouts {
		c.limits.Store(&cfg.Timeouts)
		c.srv.heed(tickOf(&cfg.Timeouts))
	}
	now := l.now
	if cfg.Timeouts.Whole > 0 {
		c.began.Store(c.srv.when(now))
	}
	k.pool, k.o = p, o
	k.rep = Report{Attempts: 1, Endpoint: e.name}
	k.placed, k.since = true, now
	k.enterEndpoint(e)
	ln.call = k
	k.flight = flight{stage: flightHead, l: ln}
	if !k.attach(ln) {
		return k.misses(ln, true, errDone)
	}
	k.compose(e)
	if !isSafe(k.head.Method) {
		// It may not be sent twice, so the cell must not have closed it unseen.
		var one [1]byte
		if n, err := readDescriptor(ln.fd, one[:]); err != errAgain {
			ln.stray = n > 0
			return k.misses(ln, true, errStale)
		}
	}
	body := k.body.buffered()
	n, err := writeTwo(ln.fd, k.out, body)
	switch {
	case n == len(k.out)+len(body):
	case n <= 0 && err != errAgain:
		return k.misses(ln, true, err)
	case err != nil && err != errAgain:
		return k.misses(ln, false, err)
	case n >= len(k.out):
		ln.left = body[n-len(k.out):] // which stays where it is until the answer is there
	default:
		ln.left = slices.Concat(k.out[max(n, 0):], body)
	}
	return Sent
}

// misses says what came of a link.
func (k *Call) misses(ln *link, nothing bool, err error) Step {
	ln.call, ln.left = nil, nil
	k.flight = flight{stage: flightLost, l: ln, nothing: nothing, err: err}
	return Stuck
}

// equip gives a call that waits for its answer what it works with, unless it has that.
func (l *loop) equip(k *Call) {
	if !k.owns {
		k.use(l.work)
		k.reply.begin(&k.pool.all.buffers)
	}
}

// stop ends the wait of a call whose reads were ended, whatever for.
func (l *loop) stop(k *Call) {
	l.equip(k)
	l.lose(k, false, os.ErrDeadlineExceeded)
}

// lose gives up the link that a call is waiting for, and lets a goroutine see
// what can be done.
func (l *loop) lose(k *Call, nothing bool, err error) {
	if k.flight.stage != flightHead {
		l.resume(k, flightBody, err)
		return
	}
	k.misses(k.flight.l, nothing, err)
	k.c.pending = false
	l.promote(k.c, toResume)
}

// resume lets a goroutine go on with a call.
func (l *loop) resume(k *Call, stage flightStage, err error) {
	ln := k.flight.l
	k.flight.stage, k.flight.err = stage, err
	if fail := l.letGo(ln); fail != nil && err == nil {
		k.flight.err = fail
	}
	k.c.pending = false
	l.promote(k.c, toResume)
}
