package feed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// A Target takes reports. An [HTTP] is one.
type Target interface {
	Report(ctx context.Context, id string, r api.RouterReport) (api.Lease, error)
	String() string
}

// A ReporterConfig says what a router reports, and to whom.
type ReporterConfig struct {
	ID        string
	Build     string
	StartedAt time.Time // of the process
	Listen    []string
	Targets   []Target // tried in this order, from the last that answered on
	Feed      *Feed

	// Traffic returns what was sent to each cell since it was last called. If
	// nil, nothing is reported of it.
	Traffic func() []api.CellTraffic

	// Every is the time between reports. If zero, 10 s: a third of the lease.
	Every time.Duration
	// Timeout bounds each attempt. If zero, 5 s.
	Timeout time.Duration

	// Log is for events. If nil, nothing is logged.
	Log *slog.Logger
}

// A Reporter tells the control plane how the router fares. Nothing waits for
// it.
type Reporter struct {
	cfg ReporterConfig
	log *slog.Logger

	wake    chan struct{} // has room for one
	leaving atomic.Bool

	// Owned by Run.
	target  int
	pending map[cellway.CellID]api.CellTraffic // not reported yet
	since   time.Time                          // what is pending began

	mu       sync.Mutex // guards what follows
	sent     uint64
	failed   uint64
	err      string
	causes   causes // of err, as far as the log was told
	answered time.Time
}

// NewReporter returns a reporter. It starts nothing: see [Reporter.Run].
func NewReporter(cfg ReporterConfig) (*Reporter, error) {
	if err := ValidateRouterID(cfg.ID); err != nil {
		return nil, err
	}
	if cfg.Feed == nil || len(cfg.Targets) == 0 {
		return nil, fmt.Errorf("reporter: feed and targets must be given: %w", cellway.ErrInvalid)
	}
	if cfg.Every == 0 {
		cfg.Every = 10 * time.Second
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Reporter{cfg: cfg, log: cfg.Log, pending: map[cellway.CellID]api.CellTraffic{}, wake: make(chan struct{}, 1)}, nil
}

// Leave reports at once, and from now on, that the router goes down in order,
// so that nobody waits for it any more.
func (r *Reporter) Leave() {
	r.leaving.Store(true)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Reports that are not due yet but have news.
const (
	soonest  = time.Second     // between two reports
	lastWait = 2 * time.Second // for the last one
)

// Run reports until ctx ends, and returns its cause. The first report goes out
// within a second, and so does one after each swap. The last one says that the
// router goes, unless one before has.
func (r *Reporter) Run(ctx context.Context) error {
	r.since = time.Now()
	// The first goes out early, so that the fleet view knows a new router, and
	// at a random moment, so that a fleet that restarts does not report as one.
	next, earliest := time.Now().Add(rand.N(min(soonest, r.cfg.Every))), time.Time{}
	swapped := r.cfg.Feed.Swapped()
	left := false
	for ctx.Err() == nil {
		due := time.NewTimer(time.Until(next))
		select {
		case <-due.C:
			left = r.report(ctx, r.cfg.Timeout)
			next, earliest = time.Now().Add(jitter(r.cfg.Every)), time.Now().Add(soonest)
		case <-swapped:
			swapped = r.cfg.Feed.Swapped()
			if early := maxTime(time.Now(), earliest); early.Before(next) {
				next = early
			}
		case <-r.wake:
			next = time.Now()
		case <-ctx.Done():
		}
		due.Stop()
	}
	if !left {
		r.leaving.Store(true)
		r.report(context.WithoutCancel(ctx), lastWait)
	}
	return context.Cause(ctx)
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// report tries each target once, and says whether one of them knows now that
// the router goes.
func (r *Reporter) report(ctx context.Context, timeout time.Duration) (left bool) {
	now := time.Now()
	r.collect()
	body := r.body(now)
	var err error
	for range r.cfg.Targets {
		target := r.cfg.Targets[r.target]
		var lease api.Lease
		limited, cancel := context.WithTimeout(ctx, timeout)
		lease, err = target.Report(limited, r.cfg.ID, body)
		cancel()
		if err == nil {
			clear(r.pending)
			r.since = now
			if lease.Version > body.SeenVersion {
				r.cfg.Feed.Refresh()
			}
			break
		}
		r.target = (r.target + 1) % len(r.cfg.Targets)
		if ctx.Err() != nil {
			return false
		}
	}
	switch fails, over := r.fares(err); {
	case over:
		r.log.Info("reports are delivered again")
	case fails:
		r.log.Warn("report not delivered", "error", err)
	}
	return err == nil && body.Leaving
}

// fares notes how a report fared, and says whether reporting has just begun to fail,
// or does so for another reason than before; or whether that is over.
func (r *Reporter) fares(err error) (fails, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.sent++
		r.answered = time.Now()
		r.err = ""
		return false, r.causes.over()
	}
	r.failed++
	r.err = err.Error()
	return r.causes.failed(time.Now(), causeOf(err)), false
}

func (r *Reporter) body(now time.Time) api.RouterReport {
	st := r.cfg.Feed.Status()
	body := api.RouterReport{
		Fleet: st.Fleet, Build: r.cfg.Build, StartedAt: r.cfg.StartedAt.UTC(), Listen: r.cfg.Listen,
		MapVersion: st.Version, SeenVersion: st.Seen, IntervalMS: now.Sub(r.since).Milliseconds(), Leaving: r.leaving.Load(),
	}
	if st.Ready {
		body.MapDigest = st.Digest.String()
	}
	for _, one := range st.Refused {
		body.Refused = append(body.Refused, api.RefusedMap{
			Version: one.Version, Digest: one.Digest.String(), Reason: one.Reason, Message: cut(one.Message, maxMessage),
			Count: one.Count, LastAt: one.LastAt.UTC(),
		})
	}
	for _, c := range r.pending {
		body.Cells = append(body.Cells, c)
	}
	slices.SortFunc(body.Cells, func(a, b api.CellTraffic) int { return cmp.Compare(a.Cell, b.Cell) })
	return body
}

// Bounds of what one report carries.
const (
	maxMessage = 512 // bytes
	maxTenants = 100 // of a cell
)

// collect adds the traffic since the last time to what is still to be
// reported. Of percentiles, the higher one stands for both times; of a breaker's
// states, the later one.
func (r *Reporter) collect() {
	if r.cfg.Traffic == nil {
		return
	}
	for _, c := range r.cfg.Traffic() {
		sum, ok := r.pending[c.Cell]
		if !ok {
			sum = api.CellTraffic{Cell: c.Cell}
		}
		sum.Requests += c.Requests
		sum.TransportFailures += c.TransportFailures
		sum.RefusedOpen += c.RefusedOpen
		sum.Mismatches += c.Mismatches
		sum.Breaker = c.Breaker
		sum.Status5xx += c.Status5xx
		sum.P99MS = max(sum.P99MS, c.P99MS)
		sum.Tenants = addTenants(sum.Tenants, c.Tenants)
		r.pending[c.Cell] = sum
	}
}

// addTenants returns the sum of both, the most requests first, cut to what a
// report may carry.
func addTenants(a, b []api.TenantTraffic) []api.TenantTraffic {
	requests := make(map[cellway.TenantID]int64, len(a)+len(b))
	for _, t := range slices.Concat(a, b) {
		requests[t.Tenant] += t.Requests
	}
	sum := make([]api.TenantTraffic, 0, len(requests))
	for t, n := range requests {
		sum = append(sum, api.TenantTraffic{Tenant: t, Requests: n})
	}
	slices.SortFunc(sum, func(a, b api.TenantTraffic) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Tenant, b.Tenant))
	})
	return sum[:min(len(sum), maxTenants)]
}

// cut shortens s to at most that many bytes, without splitting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most]
}

// A ReportStatus is how reporting fares.
type ReportStatus struct {
	Sent       uint64    `json:"sent"`
	Failed     uint64    `json:"failed"`
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	Error      string    `json:"error,omitempty"` // if the last one failed
}

// Status returns how reporting fares now.
func (r *Reporter) Status() ReportStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ReportStatus{r.sent, r.failed, r.answered, r.err}
}
