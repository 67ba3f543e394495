package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cellway/cellway"
)

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
	slices.Sort(r.Behind)
	slices.Sort(r.Missing)
	switch {
	case version == 0:
		r.Why = "no map is published yet"
	case len(r.Behind)+len(r.Missing) > 0:
	case g.starting(now):
		r.Why = fmt.Sprintf("the control plane started less than %v ago and may not know all routers", Lease)
	case r.Routers == 0:
		r.Why = "no router is live"
	default:
		r.Reached = true
	}
	return r, g.changed
}

// settled reports whether all routers that may be live are known.
func (g *registry) settled(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.starting(now)
}

// starting reports whether the control plane has started so lately that routers
// may be live of which it has not heard yet. The caller holds g.mu.
func (g *registry) starting(now time.Time) bool {
	if now.Sub(g.since) >= Lease {
		return false
	}
	return len(g.all) == 0 || slices.ContainsFunc(g.all, func(id string) bool {
		r := g.routers[id]
		return r == nil || r.LastSeen.Before(g.since)
	})
}

// Wait blocks until the change with that number is published and every live
// router serves it, or until ctx ends; then it says how far it came. With 0 it
// waits for the newest published version, which is none before the first.
func (s *Service) Wait(ctx context.Context, seq uint64) (version cellway.Version, r Reach) {
	p := s.hub.newest()
	if seq > 0 {
		var err error
		if p, err = s.hub.await(ctx, func(p *Published) bool { return p.Contains(seq) }); err != nil {
			return 0, Reach{Why: s.unpublished()}
		}
	}
	if p != nil {
		version = p.Map.Version()
	}
	for {
		r, changed := s.routers.reach(version, time.Now())
		if r.Reached || version == 0 {
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

// unpublished says why an accepted change is not published.
func (s *Service) unpublished() string {
	if r := s.restored.Load(); r != nil {
		return "it is not published yet: " + r.refuse().Error()
	}
	return "it is not published yet"
}
