package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/feed"
)

// who is named in the journal and in overrides.
const who = "demo"

// register tells the control plane of the fleet, its cells and its tenants.
func (f *Fleet) register(ctx context.Context) error {
	_, err := f.api.PutFleet(ctx, api.FleetSettings{
		Name: Name, Mapping: "buckets",
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: TenantHeader}},
	}, client.Write{})
	if err != nil {
		return err
	}
	for i, c := range f.cells {
		_, err := f.api.PutCell(ctx, c.id, api.CellSettings{
			Title: fmt.Sprintf("Cell %d", i+1), Endpoints: []string{c.gateway.url}, State: cellway.CellActive, Guard: cellway.GuardIdentity,
		}, client.Write{})
		if err != nil {
			return err
		}
		if err := f.putList(ctx, c, handSize); err != nil {
			return err
		}
	}
	if _, err := f.api.AssignBuckets(ctx, api.BucketAssignment{}, client.Write{}); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, t := range f.cfg.Tenants {
		g.Go(func() error {
			_, err := f.api.CreateTenant(ctx, t, api.TenantSettings{}, client.Write{})
			return err
		})
	}
	return g.Wait()
}

// Owners implements act.Control. It asks for the newest map, verifies it as a
// router does, and looks every tenant up in it.
func (f *Fleet) Owners(ctx context.Context) (func(cellway.TenantID) cellway.CellID, error) {
	v, err := f.api.Version(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("owners of tenants: %w", err)
	}
	m, err := v.Open(f.ring, false)
	if err != nil {
		return nil, fmt.Errorf("owners of tenants: %w", err)
	}
	owner := func(t cellway.TenantID) cellway.CellID {
		if r := m.Lookup(cellway.Key(t)); r.Cell != nil {
			return r.Cell.ID
		}
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owner = owner
	return owner, nil
}

// Map returns the newest published version, or 0 if the control plane does not
// answer.
func (f *Fleet) Map(ctx context.Context) cellway.Version {
	s, err := f.api.MapStatus(ctx)
	if err != nil {
		return 0
	}
	return s.Version
}

// heard returns when every router serves a map that contains a change. It asks
// the routers themselves: the control plane, which can't know of routers that
// have not reported since its start, says so only after a while.
func (f *Fleet) heard(ctx context.Context, change string) error {
	if change == "" {
		return nil // the map has not changed
	}
	return f.poll(ctx, "have every router hear of the change", func(ctx context.Context) error {
		c, err := f.api.Change(ctx, change)
		if err != nil {
			return err
		}
		if c.Version == 0 {
			return fmt.Errorf("change %s is not published: %w", change, cellway.ErrNotReady)
		}
		for _, r := range f.routers {
			s, err := f.status(ctx, r)
			if err != nil {
				return err
			}
			if s.Version < c.Version {
				return fmt.Errorf("%s serves map %v, the change is in %v: %w", r.Status().Name, s.Version, c.Version, cellway.ErrNotReady)
			}
		}
		return nil
	})
}

// status asks a router's admin listener how its feed fares.
func (f *Fleet) status(ctx context.Context, r *part) (s feed.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.admin+"/map", nil)
	if err != nil {
		return s, err
	}
	res, err := f.probe.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s, fmt.Errorf("GET %s/map: %s", r.admin, res.Status)
	}
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// SetAdmit implements act.Control.
func (f *Fleet) SetAdmit(ctx context.Context, id cellway.CellID, admit uint8) error {
	c, err := f.api.Cell(ctx, id)
	if err != nil {
		return err
	}
	set := f.api.Undrain
	switch {
	case admit == c.Admit:
		return nil
	case admit < c.Admit:
		set = f.api.Drain
	}
	done, err := set(ctx, id, admit, "an act of the demo", client.Write{Revision: c.Revision})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.admit[id] = admit
	f.mu.Unlock()
	if err := f.heard(ctx, done.ChangeID); err != nil {
		return err
	}
	if admit < 100 || done.State == cellway.CellActive {
		return nil
	}
	// A drain has cordoned the cell: it takes placements again, too.
	active, err := f.api.UpdateCell(ctx, id, func(s *api.CellSettings) error {
		s.State = cellway.CellActive
		return nil
	}, client.Write{})
	if err != nil {
		return err
	}
	return f.heard(ctx, active.ChangeID)
}

// Quarantine implements act.Control.
func (f *Fleet) Quarantine(ctx context.Context, tenant cellway.TenantID) error {
	_, err := f.api.Override(ctx, cellway.Key(tenant))
	if !errors.Is(err, cellway.ErrNotFound) {
		return err // it is in quarantine already, or nobody can tell
	}
	done, err := f.api.PutOverride(ctx, cellway.Key(tenant), api.OverrideSettings{
		Kind: cellway.Quarantine, By: who, Reason: "its requests crash its cell", ReviewBy: time.Now().UTC().Add(time.Hour).Truncate(time.Second),
	}, client.Write{})
	if err != nil {
		return err
	}
	return f.heard(ctx, done.ChangeID)
}

// Release implements act.Control.
func (f *Fleet) Release(ctx context.Context, tenant cellway.TenantID) error {
	o, err := f.api.Override(ctx, cellway.Key(tenant))
	if errors.Is(err, cellway.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	done, err := f.api.RemoveOverride(ctx, cellway.Key(tenant), client.Write{Revision: o.Revision})
	if err != nil {
		return err
	}
	return f.heard(ctx, done.ChangeID)
}

// KillControl implements act.Control.
func (f *Fleet) KillControl(ctx context.Context) error { return f.control.Kill(ctx) }

// StartControl implements act.Control. Routers come back to it by themselves.
func (f *Fleet) StartControl(ctx context.Context) error { return f.control.Start(ctx) }

// CorruptMap implements act.Routers: it has a new version published, whose
// content changes nothing, and damages it on its way.
func (f *Fleet) CorruptMap(ctx context.Context) error {
	before := make(map[*part]uint64)
	for _, r := range f.routers {
		s, err := f.status(ctx, r)
		if err != nil {
			return err
		}
		before[r] = refusals(s)
	}
	f.mirror.damage.Store(true)
	if _, err := f.newVersion(ctx); err != nil {
		return err
	}
	return f.poll(ctx, "have every router refuse the damaged map", func(ctx context.Context) error {
		for _, r := range f.routers {
			s, err := f.status(ctx, r)
			if err != nil {
				return err
			}
			if refusals(s) == before[r] {
				return fmt.Errorf("%s has refused no map: %w", r.Status().Name, cellway.ErrNotReady)
			}
		}
		return nil
	})
}

// refusals counts the maps that a router has refused, for whatever reason.
func refusals(s feed.Status) (n uint64) {
	for _, count := range s.Refusals {
		n += count
	}
	return n
}

// MendMap implements act.Routers. It returns when a good version has reached
// every router.
func (f *Fleet) MendMap(ctx context.Context) error {
	var err error
	if f.mirror.damage.Swap(false) {
		f.mended, err = f.newVersion(ctx)
	}
	if err != nil {
		return err
	}
	return f.heard(ctx, f.mended)
}

// newVersion makes a change that alters no routing, and returns its id.
func (f *Fleet) newVersion(ctx context.Context) (change string, err error) {
	f.mu.Lock()
	f.edits++
	edit := f.edits
	f.mu.Unlock()
	done, err := f.api.UpdateCell(ctx, f.cells[0].id, func(s *api.CellSettings) error {
		s.Tags = map[string]string{"edit": fmt.Sprint(edit)}
		return nil
	}, client.Write{})
	return done.ChangeID, err
}

// Settle implements act.Routers: it asks every cell through every router for
// the orders of one of the cell's tenants.
func (f *Fleet) Settle(ctx context.Context) error {
	f.mu.Lock()
	owner := f.owner
	f.mu.Unlock()
	sample := make(map[cellway.CellID]cellway.TenantID)
	for _, t := range f.cfg.Tenants {
		if c := owner(t); sample[c] == "" {
			sample[c] = t
		}
	}
	return f.poll(ctx, "have every cell answer through every router", func(ctx context.Context) error {
		for _, r := range f.routers {
			for _, t := range sample {
				if err := f.asTenant(ctx, r.url+"/orders?limit=1", t); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// asTenant returns nil if a tenant's GET is answered 200.
func (f *Fleet) asTenant(ctx context.Context, url string, t cellway.TenantID) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set(TenantHeader, string(t))
	res, err := f.probe.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s of %s: %s", url, t, res.Status)
	}
	return nil
}

// How long and how often the fleet is asked whether it is as it should be.
const (
	pollFor   = 20 * time.Second
	pollEvery = 50 * time.Millisecond
)

// poll asks until the answer is nil; the error has the last answer.
func (f *Fleet) poll(ctx context.Context, what string, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ask(limited)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: not within %v: %w", what, pollFor, err)
		}
	}
}
