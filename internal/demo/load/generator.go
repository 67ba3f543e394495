package load

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// A Config says whose traffic a generator sends.
type Config struct {
	Tenants []cellway.TenantID // required
	Seed    uint64             // draws weights, orders and kinds of request
	Run     string             // makes the run's idempotency keys its own; if empty, "demo"
	Timeout time.Duration      // of one request; if zero, 3 s
	PerCell int                // requests in flight to the tenants of one cell; if zero, 512
	Log     *slog.Logger       // if nil, discarded

	// Dial connects to an endpoint; if nil, over TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Stack is what the load goes to: the routers of a fleet, or the one shared
// process of a service that has no cells.
type Stack struct {
	Endpoints []string       // base URLs; a request that can't connect to one tries the others
	Answers   cellway.CellID // who answers for all tenants; if empty, each tenant's owner
}

// A Generator sends requests while its Run runs. All its methods may be called
// at any time.
type Generator struct {
	cfg    Config
	client *http.Client
	live   meter
	wake   chan struct{}

	mu     sync.Mutex
	stack  *target
	owner  []cellway.CellID // by tenant
	record *Record
	flight map[cellway.CellID]int
	cover  stream
	skew   stream
	surge  stream
	loud   int    // the tenant that surges
	item   string // what it orders
	place  int    // in the cover
	order  []int
	draw   *drawer
	rnd    *rand.Rand
	serial uint64 // numbers the requests
}

// New returns a generator that sends nothing yet, or an [cellway.ErrInvalid].
func New(cfg Config) (*Generator, error) {
	if len(cfg.Tenants) == 0 {
		return nil, fmt.Errorf("load needs tenants: %w", cellway.ErrInvalid)
	}
	if cfg.Run == "" {
		cfg.Run = "demo"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	if cfg.PerCell == 0 {
		cfg.PerCell = 512
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: time.Second}).DialContext
	}
	rnd := rand.New(rand.NewPCG(cfg.Seed, 1))
	return &Generator{
		cfg:    cfg,
		wake:   make(chan struct{}, 1),
		flight: make(map[cellway.CellID]int),
		order:  rnd.Perm(len(cfg.Tenants)),
		draw:   newDrawer(len(cfg.Tenants), rnd),
		rnd:    rnd,
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         cfg.Dial,
				MaxIdleConnsPerHost: 256,
				IdleConnTimeout:     30 * time.Second,
				DisableCompression:  true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Use points the load at a stack. Orders made on the one before are forgotten.
func (g *Generator) Use(s Stack) error {
	if len(s.Endpoints) == 0 {
		return fmt.Errorf("load needs an endpoint to go to: %w", cellway.ErrInvalid)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stack = &target{Stack: s, known: make([]memory, len(g.cfg.Tenants))}
	g.nudge()
	return nil
}

// SetOwners tells whose tenant is whose, by the map in force. Every tenant
// must have an owner.
func (g *Generator) SetOwners(owner func(cellway.TenantID) cellway.CellID) error {
	list := make([]cellway.CellID, len(g.cfg.Tenants))
	for i, t := range g.cfg.Tenants {
		if list[i] = owner(t); list[i] == "" {
			return fmt.Errorf("owner of tenant %s: %w", t, cellway.ErrNotFound)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owner = list
	g.nudge()
	return nil
}

// SetRate sets how many requests a second the cover and the skew send. Zero
// stops a stream.
func (g *Generator) SetRate(cover, skew float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cover.set(time.Now(), cover)
	g.skew.set(time.Now(), skew)
	g.nudge()
}

// Surge makes one tenant send that many orders of an item a second; zero ends it.
func (g *Generator) Surge(tenant cellway.TenantID, item string, rate float64) error {
	for i, t := range g.cfg.Tenants {
		if t == tenant {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.loud, g.item = i, item
			g.surge.set(time.Now(), rate)
			g.nudge()
			return nil
		}
	}
	return fmt.Errorf("surge of tenant %s: %w", tenant, cellway.ErrNotFound)
}

// Begin starts a record: what is due from now on counts in it, and the cover
// starts again. A latency above limit touches a tenant. The record before is
// closed to new requests.
func (g *Generator) Begin(limit time.Duration) (*Record, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil {
		return nil, fmt.Errorf("a record needs the tenants' owners: %w", cellway.ErrNotReady)
	}
	r := &Record{g: g, limit: limit, owner: g.owner, tenants: make([]tenantCount, len(g.cfg.Tenants)), cells: make(map[cellway.CellID]*cellCount)}
	for _, id := range g.owner {
		if r.cells[id] == nil {
			r.cells[id] = &cellCount{causes: make(map[string]int)}
		}
	}
	g.record, g.place = r, 0
	return r, nil
}

func (g *Generator) drop(r *Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.record == r {
		g.record = nil
	}
}

// Live returns how each cell's tenants fare at present.
func (g *Generator) Live() []Live { return g.live.read(time.Now()) }

// nudge makes Run look at the streams again. The caller holds mu.
func (g *Generator) nudge() {
	select {
	case g.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// A stream has requests due at a steady rate.
type stream struct {
	every time.Duration // between two requests; zero: none is due
	next  time.Time
}

func (s *stream) set(now time.Time, rate float64) {
	before := s.every
	s.every = 0
	if rate > 0 {
		s.every = time.Duration(float64(time.Second) / rate)
	}
	if before == 0 || s.next.After(now.Add(s.every)) {
		s.next = now.Add(s.every)
	}
}

// Run sends requests until ctx ends; then it waits for the last answers, which
// it cuts short, and returns nil.
func (g *Generator) Run(ctx context.Context) error {
	var open sync.WaitGroup
	defer g.client.CloseIdleConnections()
	defer open.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := g.sendDue(ctx, &open)
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-g.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// sendDue sends all that is due and returns how long nothing more is.
func (g *Generator) sendDue(ctx context.Context, open *sync.WaitGroup) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stack == nil || g.owner == nil {
		// Nowhere to go: what would have been due never was.
		for _, s := range []*stream{&g.cover, &g.skew, &g.surge} {
			s.next = time.Now().Add(s.every)
		}
		return time.Hour
	}
	for {
		s := g.earliest()
		if s == nil || ctx.Err() != nil {
			return time.Hour
		}
		if wait := time.Until(s.next); wait > 0 {
			return wait
		}
		due := s.next
		s.next = due.Add(s.every)
		q := request{due: due, target: g.stack, record: g.record, kind: g.rnd.Float64()}
		switch s {
		case &g.cover:
			q.tenant = g.order[g.place%len(g.order)]
			g.place++
		case &g.skew:
			q.tenant = g.draw.draw()
		case &g.surge:
			q.tenant, q.item = g.loud, g.item
		}
		q.owner = g.owner[q.tenant]
		q.serial = g.serial
		g.serial++
		if q.record != nil {
			q.record.open.Add(1)
			q.record.sent(s == &g.cover, time.Since(due))
		}
		if g.flight[q.owner] >= g.cfg.PerCell {
			g.outcome(q, "not sent: too many are under way to this cell", false)
			continue
		}
		g.flight[q.owner]++
		open.Go(func() { g.send(ctx, q) })
	}
}

// earliest returns the stream whose request is due first, or nil.
func (g *Generator) earliest() *stream {
	var first *stream
	for _, s := range []*stream{&g.surge, &g.cover, &g.skew} {
		if s.every > 0 && (first == nil || s.next.Before(first.next)) {
			first = s
		}
	}
	return first
}

// send performs one request and notes its outcome.
func (g *Generator) send(ctx context.Context, q request) {
	limited, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	rerouted, err := g.perform(limited, q)
	g.mu.Lock()
	g.flight[q.owner]--
	g.mu.Unlock()
	cause := ""
	if err != nil {
		if cause = causeOf(err); ctx.Err() != nil {
			// The run has ended under it: that says nothing about the fleet.
			if q.record != nil {
				q.record.open.Done()
			}
			return
		}
		g.cfg.Log.Debug("request failed", "tenant", g.cfg.Tenants[q.tenant], "cell", q.owner, "error", err)
	}
	g.outcome(q, cause, rerouted)
}

func (g *Generator) outcome(q request, cause string, rerouted bool) {
	now := time.Now()
	latency := now.Sub(q.due)
	g.live.count(q.owner, now, latency, cause != "")
	if q.record != nil {
		q.record.count(q.tenant, latency, cause, rerouted)
	}
}
