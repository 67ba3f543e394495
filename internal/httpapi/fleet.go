package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

const cordoned = cellway.CellCordoned

// created is 201 for a write that created something, 200 for others.
func created(at cellway.Revision, call control.Call) int {
	if at == 0 && !call.DryRun {
		return http.StatusCreated
	}
	return http.StatusOK
}

// taken tells a write that must create why it did not: a record of that name
// is there, whatever its revision.
func taken(at cellway.Revision, what string, err error) error {
	if at == 0 && errors.Is(err, cellway.ErrConflict) {
		return fmt.Errorf("%s: %w", what, cellway.ErrExists)
	}
	return err
}

// waiting reads how long the answer to a write may wait for the routers.
func (q *request) waiting() time.Duration {
	timeout := q.duration("timeout", 10*time.Second, 5*time.Minute)
	switch s := q.param("wait"); s {
	case "":
		return 0
	case "routers":
		return timeout
	default:
		q.wrong("query parameter wait is %q; only routers can be waited for: %w", s, cellway.ErrInvalid)
		return 0
	}
}

func (s *Server) getFleet(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	f, err := s.service.Fleet(q.Context())
	return &answer{body: fleet(f), revision: f.Revision}, err
}

func (s *Server) putFleet(q *request) (*answer, error) {
	in := body[api.FleetSettings](q)
	at, call, wait := q.revision(), q.call(q.reason()), q.waiting()
	set := routemap.Settings{
		Fleet: in.Name, Buckets: in.Buckets, Strict: in.Strict, Stateless: in.Stateless,
		PassThrough: in.PassThrough, CatchAll: in.CatchAll, Extractors: in.Extractors,
	}
	if err := set.Mapping.UnmarshalText([]byte(in.Mapping)); err != nil {
		q.wrong("fleet: %w", err)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	f, c, err := s.service.PutFleet(q.Context(), call, set, at)
	if err != nil {
		return nil, taken(at, "fleet", err)
	}
	return &answer{status: created(at, call), revision: f.Revision, body: api.FleetChange{Fleet: fleet(f), Change: s.change(q.Context(), c, call, wait)}}, nil
}

func (s *Server) listCells(q *request) (*answer, error) {
	after, limit := q.page()
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.service.Cells(q.Context(), after, limit)
	return &answer{body: list(p, cell)}, err
}

func (s *Server) getCell(q *request) (*answer, error) {
	id := q.cell()
	if err := q.done(); err != nil {
		return nil, err
	}
	c, err := s.service.Cell(q.Context(), id)
	return &answer{body: cell(c), revision: c.Revision}, err
}

func (s *Server) putCell(q *request) (*answer, error) {
	id, in := q.cell(), body[api.CellSettings](q)
	at, call, wait := q.revision(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	set := control.Cell{
		Cell:     cellway.Cell{ID: id, Title: in.Title, Endpoints: in.Endpoints, State: in.State, Guard: in.Guard, Region: in.Region, Zone: in.Zone, Tags: in.Tags},
		Capacity: control.Vector(in.Capacity), Headroom: in.Headroom, Tiers: in.Tiers,
	}
	c, change, err := s.service.PutCell(q.Context(), call, set, at)
	if err != nil {
		return nil, taken(at, "cell "+string(id), err)
	}
	return s.cellChange(q, created(at, call), c, change, call, wait), nil
}

func (s *Server) cellChange(q *request, status int, c control.CellStatus, change control.Change, call control.Call, wait time.Duration) *answer {
	return &answer{status: status, revision: c.Revision, body: api.CellChange{Cell: cell(c), Change: s.change(q.Context(), change, call, wait)}}
}

// admit reads a drain or an undrain. Without a number it would be a drain to
// nothing.
func (q *request) admit() api.DrainRequest {
	in := body[struct {
		Admit  *uint8 `json:"admit"`
		Reason string `json:"reason"`
	}](q)
	if in.Admit == nil {
		q.wrong("body: admit is missing; give the percent of its keys that the cell is to let through: %w", cellway.ErrInvalid)
		return api.DrainRequest{}
	}
	if *in.Admit > 100 {
		q.wrong("body: admit is %d; give a percent, 0 to 100: %w", *in.Admit, cellway.ErrInvalid)
	}
	return api.DrainRequest{Admit: *in.Admit, Reason: in.Reason}
}

func (s *Server) drain(q *request) (*answer, error) { return s.readmit(q, "drain", s.service.Drain) }

func (s *Server) undrain(q *request) (*answer, error) {
	return s.readmit(q, "undrain", s.service.Undrain)
}

// readmit changes how much of its keys a cell lets through, as the act of that name
// does.
func (s *Server) readmit(q *request, name string, act func(context.Context, control.Call, cellway.CellID, uint8) (control.CellStatus, control.Change, error)) (*answer, error) {
	id, in := q.cell(), q.admit()
	call, wait := q.call(in.Reason), q.waiting()
	call.At = q.optional()
	if err := q.done(); err != nil {
		return nil, err
	}
	q.command = []string{"cellway", name, string(id), "--to", strconv.Itoa(int(in.Admit)), "--reason", in.Reason}
	c, change, err := act(q.Context(), call, id, in.Admit)
	if err != nil {
		return nil, err
	}
	return s.cellChange(q, http.StatusOK, c, change, call, wait), nil
}

func (s *Server) retire(q *request) (*answer, error) {
	id, in := q.cell(), body[api.RetireRequest](q)
	at, call, wait := q.existing(), q.call(in.Reason), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	c, change, err := s.service.Retire(q.Context(), call, id, at)
	if err != nil {
		return nil, err
	}
	return s.cellChange(q, http.StatusOK, c, change, call, wait), nil
}

// boundedLoad is the one policy of bucket assignment.
const boundedLoad = "bounded-load"

func (s *Server) assignBuckets(q *request) (*answer, error) {
	in := body[api.BucketAssignment](q)
	call, wait := q.call(in.Reason), q.waiting()
	if in.Policy != "" && in.Policy != boundedLoad {
		q.wrong("policy %q is unknown; there is %s: %w", in.Policy, boundedLoad, cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	q.command = []string{"cellway", "map", "assign", "--reason", in.Reason}
	p, c, err := s.service.AssignBuckets(q.Context(), call)
	if err != nil {
		return nil, err
	}
	out := api.BucketPlan{Policy: boundedLoad, Moved: p.Moved, Kept: p.Kept, Cells: bucketCounts(p), Change: s.change(q.Context(), c, call, wait)}
	return &answer{body: out}, nil
}

func bucketCounts(p control.BucketPlan) []api.CellBucketCount {
	out := []api.CellBucketCount{}
	for _, id := range union(p.Before, p.After) {
		out = append(out, api.CellBucketCount{Cell: id, Before: p.Before[id], After: p.After[id]})
	}
	return out
}

// union returns the keys of a and b, sorted.
func union(a, b map[cellway.CellID]int) []cellway.CellID {
	all := maps.Clone(a)
	if all == nil {
		all = map[cellway.CellID]int{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
