package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

// The two vocabularies differ in form only; these functions go between them.

func causes(in []routemap.Cause) (out []api.Cause) {
	for _, c := range in {
		out = append(out, api.Cause(c))
	}
	return out
}

func counts(c routemap.Counts) *api.Counts { return new(api.Counts(c)) }

func fleet(f control.Fleet) api.Fleet {
	return api.Fleet{Revision: f.Revision, FleetSettings: api.FleetSettings{
		Name: f.Fleet, Mapping: f.Mapping.String(), Buckets: f.Buckets, Strict: f.Strict, Stateless: f.Stateless,
		PassThrough: f.PassThrough, CatchAll: f.CatchAll, Extractors: some(f.Extractors),
	}}
}

// some is in, written as [] where it is empty.
func some[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

func cell(c control.CellStatus) api.Cell {
	state := c.State
	if c.Cordoned && state == cellway.CellActive {
		state = cordoned
	}
	reserved := api.Vector(c.Usage.Reserved)
	if reserved == nil {
		reserved = api.Vector{}
	}
	return api.Cell{
		ID: c.ID, Admit: c.Admit, Revision: c.Revision, Tenants: c.Usage.Tenants, Reserved: reserved, Buckets: c.Buckets,
		CellSettings: api.CellSettings{
			Title: c.Title, Endpoints: some(c.Endpoints), State: state, Guard: c.Guard, Region: c.Region, Zone: c.Zone, Tags: c.Tags,
			Capacity: api.Vector(c.Capacity), Headroom: c.Headroom, Tiers: c.Tiers,
		},
	}
}

// tenant joins the record with where the accepted map sends it.
func tenant(t control.Tenant, m *routemap.Map) api.Tenant {
	out := api.Tenant{
		ID: t.ID, Cell: t.Cell, Revision: t.Revision, CreatedAt: t.CreatedAt, Deleted: t.Deleted,
		TenantSettings: api.TenantSettings{Tier: t.Tier, Weights: api.Vector(t.Weights), Residency: t.Residency, Dedicated: t.Dedicated, Policy: t.Policy},
	}
	if m == nil || t.Deleted {
		return out
	}
	r := m.Lookup(cellway.Key(t.ID))
	out.Rule, out.Epoch = r.Rule.String(), r.Epoch
	if r.Cell != nil {
		out.RoutedTo = r.Cell.ID
	}
	return out
}

func override(o control.Override, now time.Time) api.Override {
	return api.Override{
		Key: o.Key, Epoch: o.Epoch, Revision: o.Revision, Overdue: !o.ReviewBy.After(now),
		OverrideSettings: api.OverrideSettings{Kind: o.Kind, Cell: o.Cell, By: o.By, Reason: o.Reason, ReviewBy: o.ReviewBy},
	}
}

func alias(a control.Alias) api.Alias {
	return api.Alias{Name: a.Name, AliasSettings: api.AliasSettings{Target: a.Target}, Revision: a.Revision}
}

func reach(r control.Reach) api.Waited {
	return api.Waited{Reached: r.Reached, Routers: r.Routers, Behind: r.Behind, Missing: r.Missing, Why: r.Why}
}

func differences(in []routemap.Difference) (out []api.Difference) {
	for _, d := range in {
		out = append(out, api.Difference(d))
	}
	return some(out)
}

func changeID(seq uint64) string {
	if seq == 0 {
		return ""
	}
	return strconv.FormatUint(seq, 10)
}

func list[In, Out any](p control.Page[In], f func(In) Out) api.Page[Out] {
	out := api.Page[Out]{Items: make([]Out, 0, len(p.Items)), Next: p.Next}
	for _, in := range p.Items {
		out.Items = append(out.Items, f(in))
	}
	return out
}

func token(t control.Token) api.Token {
	return api.Token{ID: t.ID, Name: t.Name, Role: string(t.Role), CreatedAt: t.CreatedAt, CreatedBy: t.By, ExpiresAt: t.ExpiresAt, Routers: t.Routers, Cells: t.Cells}
}

func router(r control.Router, newest *control.Published) api.Router {
	out := api.Router{
		ID: r.ID, Live: r.Live, FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Build: r.Report.Build, StartedAt: r.Report.Started,
		Listen: r.Report.Listen, MapVersion: r.Report.Version, SeenVersion: r.Report.Seen,
	}
	out.Behind = newest != nil && r.Report.Version < newest.Map.Version()
	if r.Report.Version != 0 {
		out.MapDigest = r.Report.Digest.String()
	}
	// Written by this package; an older form leaves out what it lacks.
	json.Unmarshal(r.Report.Refused, &out.Refused)
	var traffic reportedCells
	json.Unmarshal(r.Report.Cells, &traffic)
	out.Cells, out.IntervalMS = traffic.Cells, traffic.IntervalMS
	return out
}

// reportedCells is the form of control.Report.Cells.
type reportedCells struct {
	Cells      []api.CellTraffic `json:"cells"`
	IntervalMS int64             `json:"interval_ms"`
}

// maxDifferences bounds the differences in one answer.
const maxDifferences = 200

// change tells what a write did, and waits for the routers if it was asked to.
func (s *Server) change(ctx context.Context, c control.Change, call control.Call, wait time.Duration) api.Change {
	if call.DryRun {
		out := api.Change{DryRun: true, Unchanged: c.Unchanged, Changes: []api.Difference{}}
		if c.After != nil {
			out.Digest, out.Counts, out.Causes = c.Digest.String(), counts(c.Counts), causes(c.Causes)
			diff, total := routemap.Diff(c.Before, c.After, maxDifferences)
			out.Changes, out.Total = differences(diff), total
		}
		return out
	}
	out := api.Change{ChangeID: changeID(c.Seq), Unchanged: c.Unchanged}
	// A write that finds done what it asks for has no change of its own. Who
	// repeats it, since the answer was lost, waits for the one that did it.
	seq := c.Seq
	if seq == 0 {
		seq = c.Upto
	}
	if wait > 0 && seq > 0 {
		waited := s.wait(ctx, seq, wait)
		out.Waited = &waited
	}
	return out
}

// wait is how far the change with that number comes in that time.
func (s *Server) wait(ctx context.Context, seq uint64, most time.Duration) api.Waited {
	if !s.waits.enter() {
		// The write is done, a drain perhaps: it is not refused for want of a seat.
		return api.Waited{Why: fmt.Sprintf("%d requests wait here already; ask for the change later", s.waits.most)}
	}
	defer s.waits.leave()
	ctx, cancel := s.patience(ctx, most)
	defer cancel()
	version, r := s.service.Wait(ctx, seq)
	waited := reach(r)
	waited.Version = version
	return waited
}

// seats bound how many requests wait at once, each with a goroutine, a
// connection and their memory.
type seats struct {
	most  int64
	taken atomic.Int64
}

// enter takes a seat if one is free; leave then gives it back.
func (s *seats) enter() bool {
	if s.taken.Add(1) > s.most {
		s.taken.Add(-1)
		return false
	}
	return true
}

func (s *seats) leave() { s.taken.Add(-1) }

// patience is ctx for as long as something may wait: at most d, and not longer
// than the server is to run.
func (s *Server) patience(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() { stop(); cancel() }
}
