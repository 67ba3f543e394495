package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// maxProbes is how many tenants may each have one probe out, after late
// answers opened a breaker. It is more than one so that a tenant whose every
// request hangs can't be the only one that is asked.
const maxProbes = 3

// A breaker counts what speaks against an endpoint or a cell, and says who may
// still try. It reads no clock.
//
// Failed connects in a row open it, and the next connect that works closes it.
// So do late answer heads in a row, if at least two tenants wait for them; then
// the next answer head closes it. A connect is no comfort there, because the
// kernel of a hung process still accepts; nor is a failed one.
type breaker struct {
	connectsToOpen int
	timeoutsToOpen int
	first, most    time.Duration // back-off

	dirty atomic.Bool // anything below is not as in a new breaker

	mu       sync.Mutex
	state    BreakerState
	late     bool          // late answers opened it, not connects
	until    time.Time     // the end of the back-off
	backoff  time.Duration // the next one
	lastFail time.Time

	connects int              // failed in a row
	timeouts int              // in a row
	tenant   cellway.TenantID // of the first of timeouts
	several  bool             // timeouts are of more than one tenant

	probes      []cellway.TenantID // who is trying now
	failed      cellway.TenantID   // the tenant whose probe was late
	hasFailed   bool
	failedUntil time.Time // when that tenant may try again
}

// A pass is what a breaker says to a request.
type pass uint8

const (
	refused pass = iota
	allowed
	asProbe // allowed, and ended must be called
)

// ask says whether a request of tenant may go.
func (b *breaker) ask(now time.Time, tenant cellway.TenantID) pass {
	if !b.dirty.Load() {
		return allowed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Closed {
		return allowed
	}
	if !b.wouldLocked(now, tenant) {
		return refused
	}
	b.state = Probing
	b.probes = append(b.probes, tenant)
	return asProbe
}

// refuses is like ask, but starts no probe.
func (b *breaker) refuses(now time.Time, tenant cellway.TenantID) bool {
	if !b.dirty.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state != Closed && !b.wouldLocked(now, tenant)
}

// wouldLocked reports whether tenant may probe.
func (b *breaker) wouldLocked(now time.Time, tenant cellway.TenantID) bool {
	if b.state == Open {
		return !now.Before(b.until)
	}
	if !b.late {
		return len(b.probes) == 0
	}
	if b.hasFailed && tenant == b.failed && now.Before(b.failedUntil) {
		return false
	}
	return len(b.probes) < maxProbes && !slices.Contains(b.probes, tenant)
}

// hurry ends the back-off after connects that failed, so that the next request is a
// probe. It reports whether there was one to end.
func (b *breaker) hurry() bool {
	if !b.dirty.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != Open || b.late || b.until.IsZero() {
		return false
	}
	b.until = time.Time{}
	return true
}

// Hurry has the next request try a cell that is left alone since connects failed,
// before its time. It reports whether the cell was. It is for who has nobody else to
// ask: there is still one request at a time that tries.
func (p *Pool) Hurry() bool { return p.breaker.hurry() }

// ended ends the probe of tenant, whatever came of it.
func (b *breaker) ended(tenant cellway.TenantID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.probes, tenant); i >= 0 {
		b.probes = slices.Delete(b.probes, i, i+1)
	}
}

// head takes in an answer head, of any status. It reports whether the breaker
// closed.
func (b *breaker) head() bool {
	if !b.dirty.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resetLocked()
}

// connected takes in a connect that worked. It reports whether the breaker
// closed.
func (b *breaker) connected() bool {
	if !b.dirty.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connects = 0
	switch {
	case b.late:
		return false
	case b.timeouts > 0:
		closed := b.state != Closed
		b.state, b.backoff = Closed, 0
		return closed
	}
	return b.resetLocked()
}

func (b *breaker) resetLocked() (closed bool) {
	closed = b.state != Closed
	b.state, b.late, b.backoff = Closed, false, 0
	b.connects, b.timeouts, b.several, b.tenant = 0, 0, false, ""
	b.hasFailed, b.failed = false, ""
	b.dirty.Store(false)
	return closed
}

// connectFailed takes in a connect that failed. mayOpen is false while the
// breaker's owner has other ways to connect. It reports whether the breaker
// opened now.
func (b *breaker) connectFailed(now time.Time, mayOpen bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty.Store(true)
	b.lastFail = now
	b.connects++
	switch {
	case b.state == Probing && mayOpen:
		// That a process is gone for the moment does not say that it answers
		// as soon as it is back.
		b.openLocked(now, b.late)
		return true
	case b.state == Closed && mayOpen && b.connects >= b.connectsToOpen:
		b.openLocked(now, false)
		return true
	}
	return false
}

// timedOut takes in that tenant had no answer head in time. It reports whether
// the breaker opened now.
func (b *breaker) timedOut(now time.Time, tenant cellway.TenantID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty.Store(true)
	b.lastFail = now
	b.several = b.several || b.timeouts > 0 && tenant != b.tenant
	if b.timeouts++; b.timeouts == 1 {
		b.tenant = tenant
	}
	switch b.state {
	case Closed:
		if b.several && b.timeouts >= b.timeoutsToOpen {
			b.openLocked(now, true)
			return true
		}
	case Probing:
		// Only a probe counts here: a request from before the opening says
		// nothing new.
		if !slices.Contains(b.probes, tenant) {
			break
		}
		if b.hasFailed && b.failed != tenant {
			b.openLocked(now, true)
			return true
		}
		b.hasFailed, b.failed, b.failedUntil = true, tenant, now.Add(b.nextBackoffLocked())
	}
	return false
}

func (b *breaker) openLocked(now time.Time, late bool) {
	b.state, b.late = Open, late
	b.until = now.Add(b.nextBackoffLocked())
	b.connects, b.timeouts, b.several, b.tenant = 0, 0, false, ""
	b.hasFailed, b.failed = false, ""
}

// nextBackoffLocked returns the back-off and doubles it for the next time.
func (b *breaker) nextBackoffLocked() time.Duration {
	d := max(b.backoff, b.first)
	b.backoff = min(2*d, b.most)
	return min(d, b.most)
}

// look returns the state, the failed connects in a row and the last failure.
func (b *breaker) look() (s BreakerState, connects int, lastFail time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.connects, b.lastFail
}
