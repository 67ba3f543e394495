package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Config says where maps come from, which are accepted, and where they go.
type Config struct {
	Fleet   string   // the fleet whose maps are accepted
	Sources []Source // at least one; each is followed by itself
	Keys    Keys     // whose signatures are accepted
	Sink    Sink     // what accepted maps are brought to
	Store   *Store   // where they are kept for the next start

	// Every is how often everything is pulled again, jittered by a tenth. If
	// zero, 10 minutes.
	Every time.Duration
	// BootWait is how long a start waits for the sources before it uses what is
	// on the disk. If zero, 2 s.
	BootWait time.Duration
	// StartJitter is the longest pause before the sources are first asked. If
	// zero, 250 ms; if negative, none.
	StartJitter time.Duration
	// Soak is how long a map must be in use to be no longer blamed for the end
	// of the process. If zero, 30 s.
	Soak time.Duration

	// Log is for events. If nil, nothing is logged.
	Log *slog.Logger
}

// A Feed brings maps from sources to a sink.
type Feed struct {
	cfg     Config
	log     *slog.Logger
	store   *Store
	sources []*source
	started time.Time

	swapping sync.Mutex // held while a map comes into use
	keeping  chan struct{}

	mu       sync.Mutex      // guards what follows
	inUse    *accepted       // nil before the first map
	loaded   *accepted       // read from the disk at the start, until something is in use
	toKeep   *accepted       // to be written to the disk next
	swapped  chan struct{}   // closed when another map is in use
	distrust bool            // the map in use is signed by revoked keys only
	keys     string          // the keyring, as it was last looked at
	seen     cellway.Version // the highest that was used or refused
	refused  refusals
	pulling  map[routemap.Digest]chan struct{} // closed when the pull has ended
	swaps    uint64
	took     time.Duration // from the manifest to the swap, the last time
	trials   trials
}

// An accepted is a verified map with what is needed to keep it.
type accepted struct {
	m       *routemap.Map
	overlay []byte
	source  string
	kept    bool      // read back from the disk
	at      time.Time // when it was accepted
}

// A source is a Source and how it fares.
type source struct {
	Source
	wake  chan struct{} // has room for one
	asked chan struct{} // closed when it has been asked once
	once  sync.Once

	// Guarded by the feed's mu.
	waiting   []chan struct{} // closed when it has been asked because of a wake
	answers   uint64
	failures  uint64
	err       string        // of the last time it was asked; empty if it answered
	none      bool          // err says that it has no map yet
	lacks     string        // of the last time everything was pulled
	causes    causes        // of err, as far as the log was told
	lacking   causes        // of lacks
	enough    chan struct{} // closed to have it asked for something else
	errAt     time.Time
	answered  time.Time
	confirmed time.Time       // when it last said that the map in use is its newest
	newest    cellway.Version // that it has shown
	pass      cellway.Version // refused, so that only what is newer is asked for
	passUntil time.Time       // when it is asked for again; zero: not before everything is
	cuts      int             // answers that broke off since one did not; see Feed.cut
	bans      bans
	told      map[string]time.Time // when a refusal for that reason was last an error in the log
}

// New returns a feed. It starts nothing: see [Feed.Run].
func New(cfg Config) (*Feed, error) {
	switch {
	case len(cfg.Sources) == 0:
		return nil, fmt.Errorf("feed: no source of maps: %w", cellway.ErrInvalid)
	case cfg.Fleet == "" || cfg.Keys == nil || cfg.Sink == nil || cfg.Store == nil:
		return nil, fmt.Errorf("feed: fleet, keys, sink and store must be given: %w", cellway.ErrInvalid)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&cfg.Every, 10 * time.Minute}, {&cfg.BootWait, 2 * time.Second}, {&cfg.StartJitter, 250 * time.Millisecond}, {&cfg.Soak, 30 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	f := &Feed{cfg: cfg, log: cfg.Log, store: cfg.Store, keeping: make(chan struct{}, 1), pulling: map[routemap.Digest]chan struct{}{}, swapped: make(chan struct{})}
	for _, s := range cfg.Sources {
		f.sources = append(f.sources, &source{Source: s, wake: make(chan struct{}, 1), asked: make(chan struct{}), bans: bans{}})
	}
	return f, nil
}

// Run follows the sources until ctx ends, and returns its cause. A feed runs
// once.
func (f *Feed) Run(ctx context.Context) error {
	f.mu.Lock()
	f.started = time.Now()
	f.keys = string(f.cfg.Keys.Keyring().Format())
	f.mu.Unlock()

	// The marker is written to the very end; everything else ends with ctx.
	writing, written := context.WithCancel(context.WithoutCancel(ctx))
	var last, all sync.WaitGroup
	last.Go(func() { f.store.run(writing) })

	f.load()
	all.Go(func() { f.keepAll(ctx) })
	for _, s := range f.sources {
		all.Go(func() { f.follow(ctx, s) })
		all.Go(func() { f.pullAll(ctx, s) })
		all.Go(func() { f.answerWakes(ctx, s) })
	}
	f.boot(ctx)
	f.tend(ctx)
	all.Wait()
	_ = f.keepNewest() // logged; what came into use as the others ended
	<-f.store.stop()
	written()
	last.Wait()
	return context.Cause(ctx)
}

// Leave notes on the disk that the process is about to end because it was told
// to, so that no map is blamed if it does not get to the end of that. The feed
// goes on.
func (f *Feed) Leave() { f.store.stop() }

// Refresh has all sources asked at once, without waiting for them: somebody
// knows of a map that is newer than the one in use. However often it is called,
// a source is asked at most once a second, and after the last call once more.
func (f *Feed) Refresh() {
	for _, s := range f.sources {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Ask is [Feed.Refresh] that waits until every source has answered, what they
// gave is in use or refused, or ctx has ended. It returns the cause of ctx's
// end, or nil.
func (f *Feed) Ask(ctx context.Context) error {
	var all []chan struct{}
	f.mu.Lock()
	for _, s := range f.sources {
		done := make(chan struct{})
		s.waiting = append(s.waiting, done)
		all = append(all, done)
	}
	f.mu.Unlock()
	f.Refresh()
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Swapped returns a channel that is closed when the next map is in use.
func (f *Feed) Swapped() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.swapped
}

// current returns the map below which none is accepted: the one in use, or
// before that the one that was read from the disk.
func (f *Feed) current() *accepted {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse != nil {
		return f.inUse
	}
	return f.loaded
}

// version returns the version of the current map, 0 without one.
func (f *Feed) version() cellway.Version {
	if a := f.current(); a != nil {
		return a.m.Version()
	}
	return 0
}

// sleep waits for d, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errEnough ends a long poll because something else is due.
var errEnough = errors.New("something else is due")
