package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// A Record counts the requests that were due while it was the generator's
// present one, whenever their answers came.
type Record struct {
	g     *Generator
	limit time.Duration
	owner []cellway.CellID // by tenant, when the record began
	open  sync.WaitGroup   // requests without an outcome yet

	mu       sync.Mutex
	covered  int // requests sent by the cover
	lag      time.Duration
	tenants  []tenantCount
	cells    map[cellway.CellID]*cellCount
	rerouted int
}

type tenantCount struct {
	requests, errors, slow int
	worst                  time.Duration
	first                  string
}

type cellCount struct {
	requests, errors, slow int
	latency                histogram // of what was answered well
	causes                 map[string]int
}

// A Result is what a closed record holds.
type Result struct {
	Limit    time.Duration  // the latency above which a request touches its tenant
	Tenants  []TenantResult // every tenant, in the generator's order
	Cells    []CellResult   // every cell that owns a tenant, by id
	Rerouted int            // requests that tried another endpoint after they could not connect
	// Lag is how late the generator itself was at worst in sending what was due.
	// It shares the machine with the fleet: if it is late, so are answers.
	Lag time.Duration
}

// A TenantResult is what one tenant met.
type TenantResult struct {
	ID       cellway.TenantID
	Cell     cellway.CellID // its owner
	Requests int
	Errors   int           // failed, or answered wrongly
	Slow     int           // answered well, but above the limit
	Worst    time.Duration // the longest latency, failures included
	First    string        // the first failure, or ""
}

// Touched reports whether the tenant had a failure or a latency above the limit.
func (t TenantResult) Touched() bool { return t.Errors > 0 || t.Slow > 0 }

// A CellResult sums up the requests of the tenants that a cell owns.
type CellResult struct {
	ID       cellway.CellID
	Tenants  int
	Requests int
	Errors   int
	Slow     int
	Touched  int            // tenants
	P50, P99 time.Duration  // of what was answered well; 0 if nothing was
	Causes   map[string]int // failures by their kind
}

// Covered returns how often the cover has gone through all tenants since the
// record began, as far as it has come.
func (r *Record) Covered() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return float64(r.covered) / float64(len(r.tenants))
}

// Rounds returns how many times the cover has gone through all tenants since
// the record began.
func (r *Record) Rounds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.covered / len(r.tenants)
}

// Touched returns how many tenants have been touched so far.
func (r *Record) Touched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.tenants {
		if t.errors > 0 || t.slow > 0 {
			n++
		}
	}
	return n
}

// sent notes that a request was sent, of the cover or not, and how late.
func (r *Record) sent(cover bool, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag = max(r.lag, late)
	if cover {
		r.covered++
	}
}

// count notes the outcome of a request.
func (r *Record) count(tenant int, latency time.Duration, cause string, rerouted bool) {
	defer r.open.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	t, c := &r.tenants[tenant], r.cells[r.owner[tenant]]
	t.requests++
	c.requests++
	if cause == "" {
		c.latency.add(latency) // a quick refusal is no good answer
	}
	t.worst = max(t.worst, latency)
	if rerouted {
		r.rerouted++
	}
	switch {
	case cause != "":
		t.errors++
		c.errors++
		c.causes[cause]++
		if t.first == "" {
			t.first = cause
		}
	case latency > r.limit:
		t.slow++
		c.slow++
	}
}

// Close ends the record, waits for the outcome of its requests and returns
// them. Requests that are due later count in the next record, if any.
func (r *Record) Close(ctx context.Context) (Result, error) {
	r.g.drop(r)
	done := make(chan struct{})
	go func() { r.open.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return Result{}, fmt.Errorf("wait for the last answers: %w", context.Cause(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	res := Result{Limit: r.limit, Rerouted: r.rerouted, Lag: r.lag}
	cells := make(map[cellway.CellID]*CellResult, len(r.cells))
	for id, c := range r.cells {
		cells[id] = &CellResult{ID: id, Requests: c.requests, Errors: c.errors, Slow: c.slow,
			P50: c.latency.quantile(0.50), P99: c.latency.quantile(0.99), Causes: c.causes}
	}
	for i, t := range r.tenants {
		tr := TenantResult{ID: r.g.cfg.Tenants[i], Cell: r.owner[i],
			Requests: t.requests, Errors: t.errors, Slow: t.slow, Worst: t.worst, First: t.first}
		res.Tenants = append(res.Tenants, tr)
		c := cells[tr.Cell]
		c.Tenants++
		if tr.Touched() {
			c.Touched++
		}
	}
	for _, c := range cells {
		res.Cells = append(res.Cells, *c)
	}
	slices.SortFunc(res.Cells, func(a, b CellResult) int { return cmp.Compare(a.ID, b.ID) })
	return res, nil
}
