package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/routemap"
)

// A Router is the http.Handler that serves a fleet. Its methods may be called
// at the same time.
type Router struct {
	cfg       Config
	log       *slog.Logger
	pools     *engine.Pools
	refresher *refresher
	lines     *lines.Writer // of the access log; nil: there is none
	trusted   proxies
	desk      front.Desk

	state atomic.Pointer[state] // nil before the first map

	swaps, refused, ended, overrides atomic.Uint64
	rules                            [routemap.RuleCatchAll + 1]atomic.Uint64
	added                            front.Histogram
	keyless                          *front.Top
	none                             *cellFigures // of requests that lead to no cell

	mu      sync.Mutex // held by Swap, and for:
	figures map[cellway.CellID]*cellFigures
}

// A state is all that one map means to a router. It is replaced whole, so that
// a request sees one map from its start to its end.
type state struct {
	d       *Decider
	targets map[cellway.CellID]target
	since   time.Time
	next    chan struct{} // closed when another state is in use
}

// A target is where requests for a cell go.
type target struct {
	pool    *engine.Pool // nil without an endpoint
	figures *cellFigures
}

// New returns a router without a map. It starts nothing: see [Router.Run].
func New(cfg Config) (*Router, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Cells.Limits.InFlight >= 0 { // else New says what is wrong
		cfg.Cells.Limits = cfg.limits()
	}
	pools, err := engine.New(cfg.Cells)
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	rt := &Router{
		cfg: cfg, log: cfg.Log, pools: pools, trusted: cfg.TrustedProxies,
		refresher: newRefresher(cfg.Refresh),
		keyless:   front.NewTop(256), none: newCellFigures(), figures: make(map[cellway.CellID]*cellFigures),
	}
	if rt.log == nil {
		rt.log = slog.New(slog.DiscardHandler)
	}
	if cfg.AccessLog != nil {
		rt.lines = lines.Of(cfg.AccessLog)
	}
	rt.figures[""] = rt.none
	return rt, nil
}

// Run resolves the names of endpoints until ctx ends, and returns the cause of its
// end, once the access log has its last lines or does not take them for a second. It
// must run once while the router serves.
func (rt *Router) Run(ctx context.Context) error {
	defer rt.lines.Flush(time.Second)
	return rt.pools.Run(ctx)
}

// Ready reports, as a [cellway.ErrNotReady], that the router has no map yet or
// is stopping. How old the map is makes no difference.
func (rt *Router) Ready() error {
	if rt.state.Load() == nil {
		return fmt.Errorf("there is no map: %w", cellway.ErrNotReady)
	}
	if !rt.desk.Ready() {
		return fmt.Errorf("the router is stopping: %w", cellway.ErrNotReady)
	}
	return nil
}

// Map returns the map in use, or nil.
func (rt *Router) Map() *routemap.Map {
	if st := rt.state.Load(); st != nil {
		return st.d.Map()
	}
	return nil
}

// Decider returns the map in use, ready for requests, or nil.
func (rt *Router) Decider() *Decider {
	if st := rt.state.Load(); st != nil {
		return st.d
	}
	return nil
}

// Swap takes m into use. Requests that were decided before go on by the map
// that they were decided by; those that m sends elsewhere, or no longer
// admits, are ended after the grace.
//
// A map that is refused changes nothing: one that can't be used
// ([ErrUnusable]), one of another fleet ([routemap.ErrFleet]), one with a
// lower version than that in use ([routemap.ErrOld]). Whether m may follow the
// map in use, and who signed it, is its bringer's to check.
func (rt *Router) Swap(m *routemap.Map) error { return rt.take(m, false) }

// Replace is Swap for a map that takes the place of one that is no longer
// trusted: its version may be lower.
func (rt *Router) Replace(m *routemap.Map) error { return rt.take(m, true) }

func (rt *Router) take(m *routemap.Map, lower bool) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	st, err := rt.prepare(m, lower)
	if err != nil {
		rt.refused.Add(1)
		return err
	}
	old := rt.state.Swap(st)
	rt.swaps.Add(1)
	if old != nil {
		close(old.next)
		rt.sweepLater()
	}
	return nil
}

func (rt *Router) prepare(m *routemap.Map, lower bool) (*state, error) {
	d, err := NewDecider(m)
	if err != nil {
		return nil, err
	}
	if old := rt.state.Load(); old != nil {
		was := old.d.m
		switch {
		case old.d.settings.Fleet != d.settings.Fleet:
			return nil, fmt.Errorf("map of fleet %s, this router serves %s: %w", d.settings.Fleet, old.d.settings.Fleet, routemap.ErrFleet)
		case m.Version() < was.Version() && !lower:
			return nil, fmt.Errorf("map %v, the one in use is %v: %w", m.Version(), was.Version(), routemap.ErrOld)
		}
	}
	cells := m.Cells()
	all := make([]cellway.Cell, len(cells))
	for i, c := range cells {
		all[i] = *c
	}
	rt.pools.Update(all)
	st := &state{d: d, targets: make(map[cellway.CellID]target, len(cells)), since: time.Now(), next: make(chan struct{})}
	for _, c := range cells {
		f := rt.figures[c.ID]
		if f == nil {
			f = newCellFigures()
			rt.figures[c.ID] = f
		}
		st.targets[c.ID] = target{rt.pools.Cell(c.ID), f}
	}
	return st, nil
}

// errMoved ends what is under way for a key that has another owner, or is no
// longer admitted.
var errMoved = errors.New("the key is served elsewhere, or not at all, by the map in use")

// sweepLater sweeps after the grace.
func (rt *Router) sweepLater() { time.AfterFunc(front.Span(rt.cfg.Grace, 10*time.Second), rt.sweep) }

// sweep ends what the map in use would not send where it went.
func (rt *Router) sweep() {
	keep := rt.state.Load().d.keeps
	n := rt.desk.Sweep(keep, errMoved) + rt.desk.SweepTunnels(keep, errMoved)
	if n > 0 {
		rt.log.Info("requests ended after a swap", "count", n, "map_version", rt.Map().Version())
	}
}

// NewServer returns a server of HTTP/1 that serves the router's requests itself,
// instead of an http.Server. cfg.Handler is chosen here. The connections of
// HTTP/2 that it is given are for an http.Server, whose handler is the router:
// see [engine.Server.HTTP2].
func (rt *Router) NewServer(cfg engine.ServerConfig) *engine.Server {
	cfg.Handler = callHandler{rt}
	s := engine.NewServer(cfg)
	rt.desk.Add(s)
	return s
}

// A Server serves requests, and can be told to end. An http.Server is one.
type Server = front.Server

// Stop takes the router out of service. Ready fails at once, while the router
// serves on for Config.StopWait. Then servers, which serve the router's
// requests, are shut down: they accept no more, HTTP/2 connections are told to
// go, HTTP/1 answers close theirs, and tunnels are ended a few at a time. What
// is under way may end by itself until ctx ends; then it is cut off.
//
// Stop returns when nothing is under way: nil if nothing had to be cut off.
// It is called once.
func (rt *Router) Stop(ctx context.Context, servers ...Server) error {
	how := front.Leave{Wait: front.Span(rt.cfg.StopWait, 5*time.Second), Spread: front.Span(rt.cfg.StopSpread, 5*time.Second), Name: "router", Log: rt.log}
	return rt.desk.Stop(ctx, how, servers...)
}

// Addresses returns the last addresses of the endpoints' names, to be kept for
// the next start.
func (rt *Router) Addresses() map[string][]netip.Addr { return rt.pools.Addresses() }

// SetAddresses gives the endpoints' names their last known addresses. It
// changes no name that was looked up since the start.
func (rt *Router) SetAddresses(addrs map[string][]netip.Addr) { rt.pools.SetAddresses(addrs) }

// Close closes idle connections to cells and takes the cells away. Call it
// after Stop.
func (rt *Router) Close() { rt.pools.Close() }
