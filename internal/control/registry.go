package control

import (
	"cmp"
	"context"
	"encoding/json"
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

	// saveRouterEvery bounds how often a router's reports are written down.
	saveRouterEvery = time.Minute
)

// A Report is what a router says of itself.
type Report struct {
	Fleet   string
	Build   string
	Started time.Time
	Listen  []string
	Version cellway.Version // in use; 0: none yet
	Digest  routemap.Digest // of its manifest
	Seen    cellway.Version // the highest it was offered
	Refused json.RawMessage // maps it refused, with reasons, for people
	Cells   json.RawMessage // per-cell numbers, for people
	Leaving bool            // it is going down in order
}

// A Router is a registered router.
type Router struct {
	ID        string    `json:"id"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Report    Report    `json:"report"`
	Live      bool      `json:"-"` // its lease runs

	revision cellway.Revision
	saved    time.Time
}

var routerID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// A registry knows the routers. What it knows is lost with the process but for
// their names, so it does not vouch for anything until a lease has passed.
type registry struct {
	mu      sync.Mutex
	since   time.Time
	routers map[string]*Router
	changed chan struct{} // closed at each report
}

func newRegistry(now time.Time) *registry {
	return &registry{since: now, routers: map[string]*Router{}, changed: make(chan struct{})}
}

func (s *Service) loadRouters(ctx context.Context) error {
	return s.view(ctx, func(tx store.Tx) error {
		return each(tx, kindRouter, "", func(r *Router, rev cellway.Revision) { r.revision = rev }, func(r Router) error {
			s.routers.routers[r.ID] = &r
			return nil
		})
	})
}

// Report takes a router's report and starts its lease anew.
func (s *Service) Report(ctx context.Context, id string, rep Report) error {
	if !routerID.MatchString(id) {
		return fmt.Errorf("router id %.80q must be 1 to 128 of A-Z a-z 0-9 . _ -: %w", id, cellway.ErrInvalid)
	}
	if rep.Leaving {
		return s.forget(ctx, id)
	}
	now := time.Now().UTC()
	g := s.routers
	g.mu.Lock()
	r := g.routers[id]
	if r == nil {
		r = &Router{ID: id, FirstSeen: now}
		g.routers[id] = r
	}
	r.LastSeen, r.Report = now, rep
	save := now.Sub(r.saved) >= saveRouterEvery
	copied := *r
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()

	if err := s.noteHighest(ctx, id, rep); err != nil {
		return err
	}
	if !save {
		return nil
	}
	err := s.store.Update(ctx, func(tx store.Tx) (err error) {
		if old, err := tx.Get(kindRouter, id); err == nil {
			copied.revision = old.Revision
		} else {
			copied.revision = 0
		}
		copied.revision, err = put(tx, kindRouter, id, copied.revision, copied)
		return err
	})
	if err != nil {
		return fmt.Errorf("router %s: %w", id, err)
	}
	g.mu.Lock()
	if r := g.routers[id]; r != nil {
		r.saved, r.revision = now, copied.revision
	}
	g.mu.Unlock()
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
		r := *g.routers[id]
		r.Live = now.Sub(r.LastSeen) < Lease
		out = append(out, r)
	}
	return out
}

// Router returns one router.
func (s *Service) Router(id string) (Router, error) {
	for _, r := range s.Routers() {
		if r.ID == id {
			return r, nil
		}
	}
	return Router{}, fmt.Errorf("router %s: %w", id, cellway.ErrNotFound)
}

// ForgetRouter stops waiting for a router that will not come back.
func (s *Service) ForgetRouter(ctx context.Context, call Call, id string) error {
	if _, err := s.Router(id); err != nil {
		return err
	}
	if _, err := s.write(ctx, call, func(w *work) error {
		w.aside = true
		w.record("router.forget", "router/"+id, nil, nil)
		return nil
	}); err != nil || call.DryRun {
		return err
	}
	return s.forget(ctx, id)
}

func (s *Service) forget(ctx context.Context, id string) error {
	err := s.store.Update(ctx, func(tx store.Tx) error {
		r, err := tx.Get(kindRouter, id)
		if err != nil {
			return nil // never written down
		}
		return tx.Delete(kindRouter, id, r.Revision)
	})
	if err != nil {
		return fmt.Errorf("forget router %s: %w", id, err)
	}
	g := s.routers
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.routers, id)
	close(g.changed)
	g.changed = make(chan struct{})
	return nil
}

// A Reach says how far a version has come.
type Reach struct {
	Reached bool     // every live router serves it or a later one, and none that is expected is missing
	Routers int      // that are live
	Behind  []string // live ones that serve less
	Missing []string // expected ones that are silent
	Why     string   // why Reached is false though nobody is behind or missing
}

// Reach says whether all routers serve at least version.
func (s *Service) Reach(version cellway.Version) Reach {
	r, _ := s.routers.reach(version, time.Now())
	return r
}

func (g *registry) reach(version cellway.Version, now time.Time) (r Reach, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, router := range g.routers {
		switch silent := now.Sub(router.LastSeen); {
		case silent < Lease:
			r.Routers++
			if router.Report.Version < version {
				r.Behind = append(r.Behind, router.ID)
			}
		case silent < expectFor:
			r.Missing = append(r.Missing, router.ID)
		}
	}
	slices.SortFunc(r.Behind, cmp.Compare[string])
	slices.SortFunc(r.Missing, cmp.Compare[string])
	switch {
	case len(r.Behind)+len(r.Missing) > 0:
	case now.Sub(g.since) < Lease:
		r.Why = fmt.Sprintf("the control plane started less than %v ago and may not know all routers", Lease)
	case r.Routers == 0:
		r.Why = "no router is live"
	default:
		r.Reached = true
	}
	return r, g.changed
}

// Wait blocks until the change with that number is published and every live
// router serves it, or until ctx ends; then it says how far it came.
func (s *Service) Wait(ctx context.Context, seq uint64) (version cellway.Version, r Reach) {
	p, err := s.hub.await(ctx, func(p *Published) bool { return p.Seq >= seq })
	if err != nil {
		return 0, Reach{Why: "it is not published yet"}
	}
	version = p.Map.Version()
	for {
		now := time.Now()
		r, changed := s.routers.reach(version, now)
		if r.Reached {
			return version, r
		}
		// Leases end without a report.
		again := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			again.Stop()
			return version, r
		case <-changed:
		case <-again.C:
		}
		again.Stop()
	}
}

// ChangeVersion says which version first contained the change with that number.
func (s *Service) ChangeVersion(ctx context.Context, seq uint64) (cellway.Version, error) {
	found := cellway.Version(0)
	err := s.view(ctx, func(tx store.Tx) error {
		end, err := tx.LogEnd(logChanges)
		if err != nil {
			return err
		}
		if seq == 0 || seq > end {
			return fmt.Errorf("change %d: %w", seq, cellway.ErrNotFound)
		}
		newest, err := newestVersion(tx)
		for err == nil && newest != nil && newest.Seq >= seq {
			man, err := routemap.DecodeManifest(newest.Manifest)
			if err != nil {
				return err
			}
			found = man.Version
			if man.Parent == 0 {
				return nil
			}
			older, err := getVersion(tx, man.Parent)
			if err != nil {
				return err
			}
			newest = &older
		}
		return err
	})
	return found, err
}

// A LoggedChange is one accepted change.
type LoggedChange struct {
	Seq       uint64
	At        time.Time
	Who       string
	Act       string
	Digest    routemap.Digest
	Counts    routemap.Counts
	Confirmed bool
}

// LoggedChange returns the accepted change with that number.
func (s *Service) LoggedChange(ctx context.Context, seq uint64) (c LoggedChange, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		if seq == 0 {
			return fmt.Errorf("change 0: %w", cellway.ErrNotFound)
		}
		lines, err := tx.Log(logChanges, seq-1, 1)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			return fmt.Errorf("change %d: %w", seq, cellway.ErrNotFound)
		}
		var e changeEntry
		if err := json.Unmarshal(lines[0].Body, &e); err != nil {
			return fmt.Errorf("change %d: %w", seq, err)
		}
		c = LoggedChange{seq, e.At, e.Who, e.Act, e.Digest, e.Counts, e.Confirmed}
		return nil
	})
	return c, err
}
