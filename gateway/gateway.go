package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/looks"
	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// A Gateway is the http.Handler that serves a cell. Its methods may be called at
// the same time. Only [New] makes useful ones.
type Gateway struct {
	cfg     Config
	log     *slog.Logger
	judge   *guard.Judge
	pools   *engine.Pools // one for each worker
	desk    front.Desk
	lines   *lines.Writer // of the access log; nil: there is none
	cell    *hand.Cell
	tenants *hand.Tenants[tenant]
	limiter *limiter
	canary  *tenant
	turn    atomic.Uint64 // of the canary

	state atomic.Pointer[state] // nil before the first list

	figures

	strangers strangers

	mu      sync.Mutex // held by take
	refused looks.Last // of the list that the source has, but no dealer
}

// A tenant is what a gateway knows of one.
type tenant struct {
	hand.Tenant
	dealing sync.Mutex // held while its hand is dealt
	dealt   atomic.Pointer[dealt]
}

// New returns a gateway with the list that its source has now. It starts nothing:
// see [Gateway.Run].
func New(cfg Config) (*Gateway, error) {
	judge, err := guard.NewJudge(guard.Config{Cell: cfg.Cell, Addresses: cfg.Routers, Names: cfg.RouterNames, Direct: cfg.Direct})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("gateway of %s: %w", cfg.Cell, err)
	}
	cfg.Timeout = front.Span(cfg.Timeout, 30*time.Second)
	if cfg.Workers.Timeouts.Connect == 0 {
		cfg.Workers.Timeouts.Connect = 250 * time.Millisecond
	}
	if cfg.Workers.Timeouts.FirstByte == 0 {
		cfg.Workers.Timeouts.FirstByte = cfg.Timeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Retries.Log == nil {
		cfg.Retries.Log = cfg.Log
	}
	if cfg.Remember == 0 {
		cfg.Remember = 65_536
	}
	cfg.Probe = cfg.Probe.filled()
	cfg.Canary = cfg.Canary.filled(cfg.Probe)
	cfg.Workers.Noun = "worker" // the log's "cell" is the gateway's own
	pools, err := engine.New(cfg.Workers)
	if err != nil {
		return nil, fmt.Errorf("gateway of %s: workers: %w", cfg.Cell, err)
	}
	gw := &Gateway{cfg: cfg, log: cfg.Log, judge: judge, pools: pools}
	gw.figures.begin()
	if gw.limiter, err = newLimiter(&cfg); err != nil {
		return nil, fmt.Errorf("gateway of %s: %w", cfg.Cell, err)
	}
	gw.cell = hand.NewCell(cfg.Retries, gw.members)
	gw.tenants = hand.NewTenants(cfg.Remember, gw.newTenant)
	gw.canary = gw.newTenant(string(cfg.Canary.Tenant))
	if cfg.AccessLog != nil {
		gw.lines = lines.Of(cfg.AccessLog)
	}
	if w := cfg.Source.Current(); w != nil {
		gw.takeUp(w)
	}
	return gw, nil
}

func (gw *Gateway) newTenant(name string) *tenant {
	t := &tenant{}
	gw.cell.Welcome(&t.Tenant, name)
	return t
}

// Run follows the source of workers, resolves the names of their endpoints, and probes
// them until ctx ends, and returns once the access log has its last lines or does not
// take them for a second. It must run once while the gateway serves. The error is that
// of the source, or nil.
func (gw *Gateway) Run(ctx context.Context) error {
	defer gw.lines.Flush(time.Second)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	// It ends with ctx, and has nothing else to say.
	all.Go(func() { _ = gw.pools.Run(ctx) })
	all.Go(func() { gw.follow(ctx) })
	if err := gw.cfg.Source.Run(ctx); err != nil && !errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("source of workers: %w", err)
	}
	<-ctx.Done()
	return nil
}

// follow takes each list of the source into use, and probes its workers.
func (gw *Gateway) follow(ctx context.Context) {
	probes := newProbes(gw)
	defer probes.stop()
	for {
		changed := gw.cfg.Source.Changed()
		var again <-chan time.Time
		if w := gw.cfg.Source.Current(); w != nil {
			if !gw.takeUp(w) {
				again = time.After(listAgain)
			}
			if st := gw.state.Load(); st != nil {
				probes.follow(ctx, st.workers)
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// listAgain is after which time a list is tried again that has no dealer.
const listAgain = 5 * time.Second

// takeUp takes a list into use, or says that it can't be.
func (gw *Gateway) takeUp(w *Workers) bool {
	err := gw.take(w)
	if news := gw.refused.Note(err); err != nil && news {
		gw.log.Error("list of workers not in use", "error", err)
	}
	return err == nil
}

// Ready reports, as a [cellway.ErrNotReady], that the gateway has no list of
// workers yet or is stopping. How the workers are makes no difference: a gateway
// that went away because they are ill would only make it worse.
func (gw *Gateway) Ready() error {
	if gw.state.Load() == nil {
		if err := gw.refused.Err(); err != nil {
			return fmt.Errorf("no list of workers is in use: %w: %w", err, cellway.ErrNotReady)
		}
		return fmt.Errorf("there is no list of workers: %w", cellway.ErrNotReady)
	}
	if !gw.desk.Ready() {
		return fmt.Errorf("the gateway is stopping: %w", cellway.ErrNotReady)
	}
	return nil
}

// NewServer returns a server of HTTP/1 that serves the gateway's requests itself,
// instead of an http.Server. cfg.Handler is chosen here. The connections of
// HTTP/2 that it is given are for an http.Server, whose handler is the gateway:
// see [engine.Server.HTTP2].
func (gw *Gateway) NewServer(cfg engine.ServerConfig) *engine.Server {
	cfg.Handler = callHandler{gw}
	s := engine.NewServer(cfg)
	gw.desk.Add(s)
	return s
}

// A Server serves requests, and can be told to end. An http.Server is one.
type Server = front.Server

// Stop takes the gateway out of service. Ready fails at once, while the gateway
// serves on for Config.StopWait. Then servers, which serve the gateway's
// requests, are shut down: they accept no more, HTTP/2 connections are told to
// go, HTTP/1 answers close theirs, and tunnels are ended a few at a time. What
// is under way may end by itself until ctx ends; then it is cut off.
//
// Stop returns when nothing is under way: nil if nothing had to be cut off.
// It is called once.
func (gw *Gateway) Stop(ctx context.Context, servers ...Server) error {
	how := front.Leave{Wait: front.Span(gw.cfg.StopWait, 5*time.Second), Spread: front.Span(gw.cfg.StopSpread, 5*time.Second), Name: "gateway", Log: gw.log}
	return gw.desk.Stop(ctx, how, servers...)
}

// Addresses returns the last addresses of the endpoints' names, to be kept for
// the next start.
func (gw *Gateway) Addresses() map[string][]netip.Addr { return gw.pools.Addresses() }

// SetAddresses gives the endpoints' names their last known addresses. It
// changes no name that was looked up since the start.
func (gw *Gateway) SetAddresses(addrs map[string][]netip.Addr) { gw.pools.SetAddresses(addrs) }

// Close closes idle connections to workers and takes the workers away. Call it
// after Stop.
func (gw *Gateway) Close() { gw.pools.Close() }

// secret is a salt that nobody outside knows, so that no name can be looked for
// that shares a victim's limiters.
func secret() string { return rand.Text() }

// deck is how limiters are dealt.
func deck() shuffle.Deck { return shuffle.Deck{Of: 16384, Hand: 6, Salt: secret()} }
