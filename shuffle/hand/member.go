package hand

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// What sets a member aside, and for how long. A member set aside is only moved
// behind the others of its hand; see [Order].
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

// A Member is all that is known of a worker, from the requests of all tenants.
// Its exported fields don't change once it is in use; the rest of the zero Member
// is that of a worker of which nothing is known yet.
type Member struct {
	ID   string
	Zone string // what may fail together with others; may be empty

	inflight atomic.Int32
	latency  atomic.Int64 // moving average, in nanoseconds
	seen     atomic.Int64 // when latency was last measured
	aside    atomic.Int64 // until when; 0 if it is well
	out      atomic.Bool  // by probes
	proven   atomic.Bool  // it has answered something
	probing  atomic.Bool  // the one probe after its time aside is under way

	p50, p95, p99 atomic.Int64 // 0 if not known

	mu       sync.Mutex
	hist     histogram
	fresh    int     // added to hist since quantiles were computed
	row      int     // failures in a row that count
	share    float64 // moving average of failures that count
	outcomes int     // up to minor
	aways    int     // times set aside in a row
	back     int64   // when it was last taken back
	failer   *Tenant // whose failure counted last
	good     [2]mark // whose requests succeeded last: two different tenants
}

// A mark is when a tenant's request succeeded.
type mark struct {
	tenant *Tenant
	at     int64
}

// Enter says that a request to m begins, and Leave that it has ended, its answer
// included.
func (m *Member) Enter() { m.inflight.Add(1) }

// Leave is the end of what Enter began.
func (m *Member) Leave() { m.inflight.Add(-1) }

// InFlight returns how many requests to m have not ended.
func (m *Member) InFlight() int { return int(m.inflight.Load()) }

// Latency returns the moving average of the time until answers begin; 0 if none
// came yet.
func (m *Member) Latency() time.Duration { return time.Duration(m.latency.Load()) }

// Aside reports whether m is asked last, or only probed: requests to it failed,
// or probes did.
func (m *Member) Aside() bool { return m.asideUntil() != 0 }

// SetOut tells what active probes say of m. One that is out is asked after all
// others of its hand, until SetOut(false).
func (m *Member) SetOut(out bool) { m.out.Store(out) }

// Out returns what SetOut said last.
func (m *Member) Out() bool { return m.out.Load() }

// Proven reports whether m has ever answered, a request or a probe.
func (m *Member) Proven() bool { return m.proven.Load() }

// Prove says that m has answered a probe.
func (m *Member) Prove() {
	if !m.proven.Load() {
		m.proven.Store(true)
	}
}

// Quantiles returns the times within which half, 95 and 99 of 100 answers began;
// 0 if not enough came yet.
func (m *Member) Quantiles() (p50, p95, p99 time.Duration) {
	return time.Duration(m.p50.Load()), time.Duration(m.p95.Load()), time.Duration(m.p99.Load())
}

// asideUntil returns until when m is set aside, 0 if it is not.
func (m *Member) asideUntil() int64 {
	if m.out.Load() {
		return math.MaxInt64
	}
	return m.aside.Load()
}

// cost is what the choice of two compares: the work in flight, weighed by how
// slow it is.
func (m *Member) cost(now int64) int64 {
	l := m.latency.Load()
	if idle := now - m.seen.Load(); idle > int64(fade) {
		l >>= min(idle/int64(fade), 62)
	}
	return (l + int64(time.Microsecond)) * int64(m.inflight.Load()+1)
}

// took records how long an answer took to begin.
func (m *Member) took(d, now int64) {
	l := m.latency.Load()
	switch {
	case l == 0 || d > l:
		l += (d - l + 1) / 2 // up fast
	default:
		l += (d - l) / 8
	}
	m.latency.Store(max(l, 1))
	m.seen.Store(now)
}

// atLeast records that an answer would have taken more than d.
func (m *Member) atLeast(d, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d > m.latency.Load() {
		m.took(d, now)
	}
	m.count(d)
}

// count adds d to the histogram. It reports whether quantiles changed.
func (m *Member) count(d int64) bool {
	m.hist.add(d)
	m.fresh++
	if m.fresh < recount && !(m.p99.Load() == 0 && m.hist.total >= samples) {
		return false
	}
	m.fresh = 0
	m.p50.Store(m.hist.at(0.5))
	m.p95.Store(m.hist.at(0.95))
	m.p99.Store(m.hist.at(0.99))
	return true
}

// succeeded records an answer that is no failure, after d. news reports that
// quantiles changed, back that m had been set aside.
func (m *Member) succeeded(ten *Tenant, d, now int64) (news, back bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took(d, now)
	news = m.count(d)
	m.row = 0
	m.share -= m.share / 8
	m.outcomes = min(m.outcomes+1, minor)
	if m.good[0].tenant != ten {
		m.good[1] = m.good[0]
		m.good[0].tenant = ten
	}
	m.good[0].at = now
	if until := m.aside.Load(); until != 0 && now >= until {
		m.aside.Store(0)
		m.share, m.outcomes, back = 0, 0, true
		m.back = now
	} else if until == 0 && m.aways > 0 && now-m.back > int64(asideMost) {
		m.aways = 0
	}
	return news, back
}

// failed records a failure of ten's request. It counts if anybody's request
// would have failed, or if it was another tenant's that failed before: one
// tenant alone convicts nobody. counted and away report whether it did, and
// whether m was set aside for it.
func (m *Member) failed(ten *Tenant, anybodys bool, now int64) (counted, away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if counted = anybodys || m.failer != nil && m.failer != ten; !counted {
		if m.failer == nil {
			m.failer = ten
		}
		return false, false
	}
	m.failer = ten
	return true, m.strike(now)
}

// convict counts a failure that did not count when it happened: the same
// request has succeeded elsewhere since.
func (m *Member) convict(now int64) (away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strike(now)
}

// strike is called with m.mu held.
func (m *Member) strike(now int64) (away bool) {
	m.row++
	m.share += (1 - m.share) / 8
	m.outcomes = min(m.outcomes+1, minor)
	until := m.aside.Load()
	if until != 0 && now < until {
		return false // it is, and requests that were under way say nothing new
	}
	if until == 0 && m.row < strikes && (m.outcomes < minor || m.share < rotten) {
		return false
	}
	d := min(asideBase<<min(m.aways, 8), asideMost)
	m.aways++
	m.aside.Store(now + int64(d+jitter(d/4)))
	return true
}

// otherGood reports whether a request of another tenant than ten succeeded on
// m since the given time.
func (m *Member) otherGood(ten *Tenant, since int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.good {
		if g.tenant != nil && g.tenant != ten && g.at >= since {
			return true
		}
	}
	return false
}
