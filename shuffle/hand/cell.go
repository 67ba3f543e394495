package hand

import (
	"iter"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// A Config says how patient the calls to a cell are. The zero Config is usable.
type Config struct {
	// Attempts is how many attempts a call has, the first one included. If
	// zero, 3, but not more than the hand has members, and one more for a member
	// that was left since it was slow, if those after it bring nothing. If 1, none
	// is repeated.
	Attempts int

	// TryTimeout is the least time that an attempt is given, however quick the
	// cell usually is. If zero, 50 milliseconds.
	TryTimeout time.Duration

	// Backoff is the longest wait before the first retry. If zero, 50
	// milliseconds. It doubles with each further one, up to MaxBackoff, which if
	// zero is 2 seconds. The wait is drawn between nothing and that.
	Backoff, MaxBackoff time.Duration

	// MaxRetryAfter is how much longer than that a Retry-After may make a
	// call wait. If zero, 5 seconds.
	MaxRetryAfter time.Duration

	// Deposit is how much of a retry each success pays for. If zero, 0.1; if
	// negative, none.
	Deposit float64

	// TenantBurst and CellBurst are how many retries at once can be paid for by
	// successes of the past. If zero, 10 and 100.
	TenantBurst, CellBurst float64

	// Floor is how many retries a second each tenant, and the cell, have without
	// any success. If zero, 1; if negative, none.
	Floor float64

	// Log is told of workers set aside and taken back, and of tenants suspected
	// of poison. If nil, nothing is.
	Log *slog.Logger
}

// or fills in the default of a setting; a negative one is zero.
func or[T int | float64 | time.Duration](v, zero T) T {
	if v == 0 {
		return zero
	}
	return max(v, 0)
}

// A Cell is what the calls to a cell have in common. Only [NewCell] makes useful
// ones.
type Cell struct {
	cfg     Config
	start   time.Time // of its clock, which counts nanoseconds
	backoff Backoff
	members func() iter.Seq[*Member]

	bucket               Bucket
	cellRule, tenantRule Rule
	overloaded           atomic.Int64 // up to when a member has said that it has too much to do

	p50, p95, p99 atomic.Int64 // medians over the cell's members; 0 if not known
	typicalAt     atomic.Int64 // when these were computed

	overBudget, poisoned, late, asides, broken atomic.Uint64
}

// NewCell returns a cell of which nothing is known yet. members gives the members
// in use, of which what is usual in the cell is computed now and then.
func NewCell(cfg Config, members func() iter.Seq[*Member]) *Cell {
	cfg.TryTimeout = or(cfg.TryTimeout, 50*time.Millisecond)
	cfg.Backoff = or(cfg.Backoff, 50*time.Millisecond)
	cfg.MaxBackoff = or(cfg.MaxBackoff, 2*time.Second)
	cfg.MaxRetryAfter = or(cfg.MaxRetryAfter, 5*time.Second)
	cfg.Deposit = or(cfg.Deposit, 0.1)
	cfg.Floor = or(cfg.Floor, 1)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Cell{
		cfg: cfg, start: time.Now(), members: members,
		backoff:    Backoff{Base: cfg.Backoff, Most: cfg.MaxBackoff, Clamp: cfg.MaxRetryAfter},
		cellRule:   NewRule(cfg.Deposit, or(cfg.CellBurst, 100), cfg.Floor),
		tenantRule: NewRule(cfg.Deposit, or(cfg.TenantBurst, 10), cfg.Floor),
	}
	c.bucket.Fill(c.cellRule, 0)
	return c
}

// Now returns the cell's time: nanoseconds since it was made.
func (c *Cell) Now() int64 { return int64(time.Since(c.start)) }

// Welcome makes t that of a tenant of which nothing is known yet.
func (c *Cell) Welcome(t *Tenant, name string) {
	t.Name = name
	t.bucket.Fill(c.tenantRule, c.Now())
}

// Budget returns what calls of ten may spend from.
func (c *Cell) Budget(ten *Tenant) Budget {
	return Budget{Tenant: &ten.bucket, Cell: &c.bucket, TenantRule: c.tenantRule, CellRule: c.cellRule}
}

// Overloaded reports whether a member has said lately that it has too much to do.
func (c *Cell) Overloaded(now int64) bool { return now < c.overloaded.Load() }

// Usual returns the times within which half, 95 and 99 of 100 answers usually begin
// in the cell: the medians over its members, so that a slow member does not make
// slowness usual; 0 if not known yet.
func (c *Cell) Usual() (p50, p95, p99 time.Duration) {
	return time.Duration(c.p50.Load()), time.Duration(c.p95.Load()), time.Duration(c.p99.Load())
}

// Stats are counts since the cell was made.
type Stats struct {
	OverBudget uint64  // attempts that the budget refused
	Poisoned   uint64  // retries refused since the tenant is suspected of poison
	TooLate    uint64  // retries refused since no time was left
	SetAside   uint64  // times that a member was set aside
	Suspicions uint64  // times that a tenant was suspected of poison
	Budget     float64 // attempts that the cell could pay for at this moment
}

// Stats returns the counts.
func (c *Cell) Stats() Stats {
	return Stats{
		OverBudget: c.overBudget.Load(), Poisoned: c.poisoned.Load(), TooLate: c.late.Load(),
		SetAside: c.asides.Load(), Suspicions: c.broken.Load(), Budget: c.bucket.Held(),
	}
}

// Succeeded records an answer that is no failure. It is all that a call costs when
// nothing goes wrong, together with the choice of a member.
func (c *Cell) Succeeded(ten *Tenant, m *Member, took time.Duration, now int64) {
	m.Prove()
	news, back := m.succeeded(ten, int64(took), now)
	if news {
		c.compute(now)
	}
	if back {
		c.cfg.Log.Info("worker taken back", "worker", m.ID)
	}
	ten.bucket.Earn(c.tenantRule)
	c.bucket.Earn(c.cellRule)
}

// Failed records a failure of m, and reports whether it counts against it.
// anybodys says that any tenant's request would have failed, and broke that the
// connection broke under the request.
func (c *Cell) Failed(ten *Tenant, m *Member, anybodys, broke bool, now int64) (counted bool) {
	counted, away := m.failed(ten, anybodys, now)
	if away {
		c.setAside(m, now)
	}
	if broke && ten.dossier.broke(ten, m, now) {
		c.broken.Add(1)
		c.cfg.Log.Warn("tenant suspected of poison", "tenant", ten.Name, "worker", m.ID)
	}
	return counted
}

func (c *Cell) setAside(m *Member, now int64) {
	c.asides.Add(1)
	c.cfg.Log.Warn("worker set aside", "worker", m.ID, "seconds", math.Round(time.Duration(m.aside.Load()-now).Seconds()))
}

// compute computes what is usual in the cell.
func (c *Cell) compute(now int64) {
	last := c.typicalAt.Load()
	if last != 0 && now-last < int64(250*time.Millisecond) || !c.typicalAt.CompareAndSwap(last, now) {
		return
	}
	var p50, p95, p99 []int64
	for m := range c.members() {
		if v := m.p99.Load(); v != 0 {
			p50, p95, p99 = append(p50, m.p50.Load()), append(p95, m.p95.Load()), append(p99, v)
		}
	}
	if len(p99) == 0 {
		return
	}
	for _, q := range []struct {
		all []int64
		to  *atomic.Int64
	}{{p50, &c.p50}, {p95, &c.p95}, {p99, &c.p99}} {
		slices.Sort(q.all)
		q.to.Store(q.all[len(q.all)/2])
	}
}
