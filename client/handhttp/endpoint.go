package handhttp

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// What sets a member aside, and for how long. A member set aside is only moved
// behind the others of its hand; see [call.order].
const (
	strikes   = 3                // failures in a row that count
	minor     = 10               // outcomes before the share of failures means anything
	rotten    = 0.5              // share of failures
	asideBase = 5 * time.Second  // doubled each time in a row
	asideMost = 60 * time.Second //
	overdue   = 30 * time.Second // after which a request that can't be repeated may probe, too
	fade      = 10 * time.Second // after which an unused latency counts half
	samples   = 20               // answers before quantiles mean anything
	recount   = 64               // answers between two computations of quantiles
)

// An endpoint is all that is known of a worker, from the requests of all
// tenants.
type endpoint struct {
	id, zone string
	url      *url.URL

	inflight atomic.Int32
	latency  atomic.Int64 // moving average, in nanoseconds
	seen     atomic.Int64 // when latency was last measured
	aside    atomic.Int64 // until when; 0 if it is well
	probing  atomic.Bool  // the one probe after that time is under way

	p50, p95, p99 atomic.Int64 // 0 if not known

	mu       sync.Mutex
	hist     histogram
	fresh    int     // added to hist since quantiles were computed
	row      int     // failures in a row that count
	share    float64 // moving average of failures that count
	outcomes int     // up to minor
	aways    int     // times set aside in a row
	back     int64   // when it was last taken back
	failer   *tenant // whose failure counted last
	good     [2]mark // whose requests succeeded last: two different tenants
	suspects map[net.Conn]int
}

// A mark is when a tenant's request succeeded.
type mark struct {
	tenant *tenant
	at     int64
}

// cost is what p2c compares: the work in flight, weighed by how slow it is.
func (e *endpoint) cost(now int64) int64 {
	l := e.latency.Load()
	if idle := now - e.seen.Load(); idle > int64(fade) {
		l >>= min(idle/int64(fade), 62)
	}
	return (l + int64(time.Microsecond)) * int64(e.inflight.Load()+1)
}

// took records how long an answer took to begin.
func (e *endpoint) took(d, now int64) {
	l := e.latency.Load()
	switch {
	case l == 0 || d > l:
		l += (d - l + 1) / 2 // up fast
	default:
		l += (d - l) / 8
	}
	e.latency.Store(max(l, 1))
	e.seen.Store(now)
}

// atLeast records that an answer would have taken more than d.
func (e *endpoint) atLeast(d, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d > e.latency.Load() {
		e.took(d, now)
	}
	e.count(d)
}

// count adds d to the histogram. It reports whether quantiles changed.
func (e *endpoint) count(d int64) bool {
	e.hist.add(d)
	e.fresh++
	if e.fresh < recount && !(e.p99.Load() == 0 && e.hist.total >= samples) {
		return false
	}
	e.fresh = 0
	e.p50.Store(e.hist.at(0.5))
	e.p95.Store(e.hist.at(0.95))
	e.p99.Store(e.hist.at(0.99))
	return true
}

// succeeded records an answer that is no failure, after d. news reports that
// quantiles changed, back that e had been set aside.
func (e *endpoint) succeeded(ten *tenant, d, now int64) (news, back bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.took(d, now)
	news = e.count(d)
	e.row = 0
	e.share -= e.share / 8
	e.outcomes = min(e.outcomes+1, minor)
	if e.good[0].tenant != ten {
		e.good[1] = e.good[0]
		e.good[0].tenant = ten
	}
	e.good[0].at = now
	if until := e.aside.Load(); until != 0 && now >= until {
		e.aside.Store(0)
		e.share, e.outcomes, back = 0, 0, true
		e.back = now
	} else if until == 0 && e.aways > 0 && now-e.back > int64(asideMost) {
		e.aways = 0
	}
	return news, back
}

// failed records a failure of ten's request. It counts if anybody's request
// would have failed, or if it was another tenant's that failed before: one
// tenant alone convicts nobody. counted and away report whether it did, and
// whether e was set aside for it.
func (e *endpoint) failed(ten *tenant, anybodys bool, now int64, jitter func(time.Duration) time.Duration) (counted, away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if counted = anybodys || e.failer != nil && e.failer != ten; !counted {
		if e.failer == nil {
			e.failer = ten
		}
		return false, false
	}
	e.failer = ten
	return true, e.strike(now, jitter)
}

// convict counts a failure that did not count when it happened: the same
// request has succeeded elsewhere since.
func (e *endpoint) convict(now int64, jitter func(time.Duration) time.Duration) (away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.strike(now, jitter)
}

// strike is called with e.mu held.
func (e *endpoint) strike(now int64, jitter func(time.Duration) time.Duration) (away bool) {
	e.row++
	e.share += (1 - e.share) / 8
	e.outcomes = min(e.outcomes+1, minor)
	until := e.aside.Load()
	if until != 0 && now < until {
		return false // it is, and requests that were under way say nothing new
	}
	if until == 0 && e.row < strikes && (e.outcomes < minor || e.share < rotten) {
		return false
	}
	d := min(asideBase<<min(e.aways, 8), asideMost)
	e.aways++
	e.aside.Store(now + int64(d+jitter(d/4)))
	return true
}

// otherGood reports whether a request of another tenant than ten succeeded on
// e since the given time.
func (e *endpoint) otherGood(ten *tenant, since int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.good {
		if m.tenant != nil && m.tenant != ten && m.at >= since {
			return true
		}
	}
	return false
}

// silent records that a request on conn timed out, and closes conn at the
// second one without an answer in between: HTTP/2 would go on using it.
func (e *endpoint) silent(conn net.Conn) (closed bool) {
	if conn == nil {
		return false
	}
	e.mu.Lock()
	if e.suspects == nil {
		e.suspects = make(map[net.Conn]int)
	}
	if len(e.suspects) >= 64 {
		clear(e.suspects) // connections that nobody used again
	}
	e.suspects[conn]++
	closed = e.suspects[conn] >= 2
	if closed {
		delete(e.suspects, conn)
	}
	e.mu.Unlock()
	if closed {
		conn.Close()
	}
	return closed
}

// spoke records that conn is alive.
func (e *endpoint) spoke(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.suspects) > 0 {
		delete(e.suspects, conn)
	}
}
