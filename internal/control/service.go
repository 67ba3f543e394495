package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Store is what the control plane needs of whatever keeps its memory.
type Store = store.Store

// Config says how a Service works.
type Config struct {
	Store   Store
	Signers []routemap.Signer // at least one; more than one while keys rotate
	Sinks   []Sink            // where versions are written beside the store
	Log     *slog.Logger      // nil discards

	// Routers are the ids of all routers, where they are known from the start:
	// once each has reported, nobody else is waited for. If empty, there may be
	// others for as long as a lease.
	Routers []string
}

// A Service answers the control plane's use cases. It is safe for concurrent
// use. Run must run for anything to be published.
type Service struct {
	store   Store
	signers []routemap.Signer

	foundVersion cellway.Version // the newest when this process started
	sinks        []Sink
	heard        *heardSinks
	log          *slog.Logger

	routers *registry
	hub     *hub
	queue   *queue
	overdue *overdue
	health  *health
	stats   *counters

	lockedOut *lockedOut
	backups   backups

	// What the store holds back until a person has confirmed it, as last seen.
	restored  atomic.Pointer[Restored]
	aftermath atomic.Pointer[aftermath]

	// A write that is not urgent puts a token into lane before it waits for its
	// turn, so that a drain waits for two writes at most, however many there are.
	lane chan struct{}

	// Whoever has put a token into turn may write to the store, and owns what
	// follows, so that memory follows the store in the store's order. The atomic
	// ones are read at any time.
	turn    chan struct{}
	head    atomic.Pointer[head] // the accepted map
	journal atomic.Uint64        // the end of the journal when it was last seen
	book    *book                // of cells; nil: to be read

	folding chan struct{} // holds a token while the accepted map is being folded
	kept    keptBase

	served servedLists
	ahead  listsAhead
}

// Open reads the store's memory and returns a service that has published what
// was published before.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if len(cfg.Signers) == 0 {
		return nil, fmt.Errorf("control plane: no signing key: %w", cellway.ErrInvalid)
	}
	s := &Service{
		store: cfg.Store, signers: cfg.Signers, sinks: boundSinks(cfg.Sinks), heard: &heardSinks{}, log: cfg.Log,
		routers: newRegistry(time.Now(), cfg.Routers), hub: newHub(), queue: newQueue(), overdue: newOverdue(), lockedOut: newLockedOut(), stats: &counters{},
		lane: make(chan struct{}, 1), turn: make(chan struct{}, 1), folding: make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.health = newHealth(s.log)
	s.head.Store(&head{})
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("open control plane: %w", err)
	}
	return s, nil
}

// Accepted returns the accepted map, which the published one soon follows, or
// nil before the first.
func (s *Service) Accepted() *routemap.Map { return s.head.Load().m }

// Run publishes what is accepted and does the work of the background until ctx
// ends: it folds the map, writes versions to the sinks, watches for overrides
// that are overdue, drops old versions and recounts what cells hold. It returns
// the cause of ctx's end.
func (s *Service) Run(ctx context.Context) error {
	var jobs sync.WaitGroup
	jobs.Go(func() { s.runPublisher(ctx) })
	jobs.Go(func() { s.runFolder(ctx) })
	jobs.Go(func() { s.runWatch(ctx) })
	jobs.Go(func() { s.runRetention(ctx) })
	jobs.Go(func() { s.runRecount(ctx) })
	for _, sink := range s.sinks {
		jobs.Go(func() { s.runSink(ctx, sink) })
	}
	jobs.Wait()
	return context.Cause(ctx)
}

// take waits for the turn to write.
func (s *Service) take(ctx context.Context) error { return acquire(ctx, s.turn) }

// acquire puts a token into c.
func acquire(ctx context.Context, c chan struct{}) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release ends a turn.
func (s *Service) release() { <-s.turn }

// sleep waits for d and reports whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
