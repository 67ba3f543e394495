package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

const (
	// Lease is how long a router counts as live after a report.
	Lease = 30 * time.Second

	// expectFor is how long a router that fell silent is still expected. One that
	// goes in order says so.
	expectFor = 10 * time.Minute

	// knowFor is how long a router that fell silent is remembered at all.
	knowFor = 7 * 24 * time.Hour

	// saveRouterEvery bounds how often a router's reports are written down.
	saveRouterEvery = time.Minute

	// maxRouters is how many routers are known at most.
	maxRouters = 10_000
)

// A Report is what a router says of itself.
type Report struct {
	Fleet   string // if not empty, it must be this fleet's name
	Build   string
	Started time.Time
	Listen  []string
	Version cellway.Version // in use; 0: none yet
	Digest  routemap.Digest // of its manifest
	Seen    cellway.Version // the highest it was offered
	Refused json.RawMessage // maps it refused, with reasons, for people
	Cells   json.RawMessage // per-cell numbers, for people
	Leaving bool            // it is going down in order

	Traffic []CellTraffic `json:"-"` // since the report before: what cells failed to answer
}

// A Router is a registered router.
type Router struct {
	ID        string    `json:"id"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Report    Report    `json:"report"`
	Live      bool      `json:"-"` // its lease runs
	Behind    time.Time `json:"-"` // since when it has reported less than the newest version; zero if it serves that

	saved    time.Time
	troubles map[cellTrouble]routerTrouble
}

// Bounds of what a router says of itself.
const (
	maxListen  = 64
	maxAddress = 512 // bytes
)

var routerID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// A registry knows the routers. What it knows is lost with the process but for
// their names, so it does not vouch for anything until a lease has passed.
type registry struct {
	mu      sync.Mutex
	since   time.Time
	all     []string // ids of all that there are, if that is known
	routers map[string]*Router
	changed chan struct{} // closed at each report
}

func newRegistry(now time.Time, all []string) *registry {
	return &registry{since: now, all: all, routers: map[string]*Router{}, changed: make(chan struct{})}
}

// tell wakes whoever waits for routers. The caller holds g.mu.
func (g *registry) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (s *Service) loadRouters(ctx context.Context) error {
	return s.view(ctx, func(tx store.Tx) error {
		now := time.Now()
		return each(tx, kindRouter, "", func(*Router, cellway.Revision) {}, func(r Router) error {
			if r.LastSeen.After(now) { // by a clock that was wrong
				r.LastSeen = s.routers.since.Add(-1) // it was not heard of since
			}
			s.routers.routers[r.ID] = &r
			return nil
		})
	})
}

// Report takes a router's report and starts its lease anew. A router of another
// fleet, and one that claims what can't be, is refused. A router that has a map
// which this control plane does not know halts publishing.
func (s *Service) Report(ctx context.Context, id string, rep Report) error {
	if err := s.checkReport(id, rep); err != nil {
		return err
	}
	if rep.Leaving {
		return s.leave(ctx, id)
	}
	now := time.Now().UTC()
	newest := s.hub.newest()
	g := s.routers
	g.mu.Lock()
	r := g.routers[id]
	if r == nil {
		if len(g.routers) >= maxRouters {
			g.mu.Unlock()
			return fmt.Errorf("router %s: %d routers are known already, the most there may be: %w", id, maxRouters, cellway.ErrNoRoom)
		}
		r = &Router{ID: id, FirstSeen: now}
		g.routers[id] = r
	}
	r.LastSeen, r.Report = now, rep
	r.noteTroubles(now)
	switch behind := newest != nil && rep.Version < newest.Map.Version(); {
	case !behind:
		r.Behind = time.Time{}
	case r.Behind.IsZero():
		r.Behind = now
	}
	save := now.Sub(r.saved) >= saveRouterEvery
	copied := r.kept()
	g.tell()
	g.mu.Unlock()

	high := HighestVersion{rep.Version, rep.Digest, id}
	if err := s.noteHighest(ctx, "router "+id, high); err != nil {
		return fmt.Errorf("router %s: %w", id, err)
	}
	if err := s.noteUndone(ctx, "router "+id, high); err != nil {
		return fmt.Errorf("router %s: %w", id, err)
	}
	if !save {
		return nil
	}
	if err := s.update(ctx, func(tx store.Tx) error {
		rev := cellway.Revision(0)
		if old, err := tx.Get(kindRouter, id); err == nil {
			rev = old.Revision
		} else if !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		_, err := put(tx, kindRouter, id, rev, copied)
		return err
	}); err != nil {
		return fmt.Errorf("router %s: %w", id, err)
	}
	g.mu.Lock()
	if r := g.routers[id]; r != nil {
		r.saved = now
	}
	g.mu.Unlock()
	return nil
}

func (s *Service) checkReport(id string, rep Report) error {
	if !routerID.MatchString(id) {
		return fmt.Errorf("router id %.80q must be 1 to 128 of A-Z a-z 0-9 . _ -: %w", id, cellway.ErrInvalid)
	}
	if m := s.Accepted(); m != nil && rep.Fleet != "" && rep.Fleet != m.Settings().Fleet {
		return fmt.Errorf("router %s is of fleet %.80q, this is the control plane of %s: %w", id, rep.Fleet, m.Settings().Fleet, cellway.ErrInvalid)
	}
	// What a router claims takes the fleet above it at most once: from then on no
	// incarnation is accepted but those that this control plane has made.
	bound := uint32(maxIncarnation)
	if p := s.Newest(); p != nil {
		bound = max(bound, p.Map.Version().Incarnation()+1)
	}
	if v := max(rep.Version, rep.Seen); v.Incarnation() >= bound {
		return fmt.Errorf("router %s: there is no map %v: %w", id, v, cellway.ErrInvalid)
	}
	if len(rep.Listen) > maxListen {
		return fmt.Errorf("router %s listens at %d addresses, the most is %d: %w", id, len(rep.Listen), maxListen, cellway.ErrInvalid)
	}
	for _, address := range rep.Listen {
		if err := validText("listen", address, maxAddress); err != nil {
			return fmt.Errorf("router %s: %w", id, err)
		}
	}
	if err := validText("build", rep.Build, maxName); err != nil {
		return fmt.Errorf("router %s: %w", id, err)
	}
	return nil
}

// Routers lists all routers that are known, by id.
func (s *Service) Routers() []Router {
	g := s.routers
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	var out []Router
	for _, id := range slices.Sorted(maps.Keys(g.routers)) {
		out = append(out, g.routers[id].at(now))
	}
	return out
}

// kept is what is written down of a router: not its numbers, which are large and
// of a moment.
func (r *Router) kept() Router {
	out := *r
	out.Report.Cells = nil
	return out
}

func (r *Router) at(now time.Time) Router {
	out := *r
	out.Live = now.Sub(r.LastSeen) < Lease
	return out
}

// Router returns one router.
func (s *Service) Router(id string) (Router, error) {
	g := s.routers
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.routers[id]; r != nil {
		return r.at(time.Now()), nil
	}
	return Router{}, fmt.Errorf("router %s: %w", id, cellway.ErrNotFound)
}

// ForgetRouter stops waiting for a router that will not come back.
func (s *Service) ForgetRouter(ctx context.Context, call Call, id string) error {
	r, err := s.Router(id)
	if err != nil {
		return err
	}
	if _, err := s.write(ctx, call, func(w *work) error {
		w.aside = true
		w.record("router.forget", "router/"+id, r.kept(), nil)
		return deleteRouter(w.tx, id)
	}); err != nil || call.DryRun {
		return err
	}
	s.routers.forget(id)
	return nil
}

// leave forgets a router that has gone in order.
func (s *Service) leave(ctx context.Context, id string) error {
	if err := s.update(ctx, func(tx store.Tx) error { return deleteRouter(tx, id) }); err != nil {
		return fmt.Errorf("router %s leaves: %w", id, err)
	}
	s.routers.forget(id)
	return nil
}

func deleteRouter(tx store.Tx, id string) error {
	r, err := tx.Get(kindRouter, id)
	if errors.Is(err, cellway.ErrNotFound) {
		return nil // never written down
	}
	if err != nil {
		return err
	}
	return tx.Delete(kindRouter, id, r.Revision)
}

func (g *registry) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.routers, id)
	g.tell()
}

// forgetSilent forgets routers that have been silent for long.
func (s *Service) forgetSilent(ctx context.Context) error {
	for _, r := range s.Routers() {
		if time.Since(r.LastSeen) >= knowFor {
			if err := s.leave(ctx, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
