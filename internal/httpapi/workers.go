package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/workers"
)

// handSettings is what of a list the hands depend on beside the workers.
func handSettings(l workers.List) api.HandSettings {
	return api.HandSettings{Deal: string(l.Deal), Overlap: l.Overlap, Size: l.Size, Sizes: l.Sizes, Strict: l.Strict, Numbers: l.Numbers}
}

func workersOf(l workers.List) []api.Worker {
	out := make([]api.Worker, 0, len(l.Workers))
	for _, w := range l.Workers {
		out = append(out, api.Worker{ID: w.ID, WorkerSettings: api.WorkerSettings{Endpoint: w.Endpoint, Zone: w.Zone, Seat: w.Seat, Weight: w.Weight}})
	}
	return out
}

func worker(id string, in api.WorkerSettings) workers.Worker {
	return workers.Worker{ID: id, Endpoint: in.Endpoint, Zone: in.Zone, Seat: in.Seat, Weight: in.Weight}
}

// listOf is a list as a caller sent it.
func listOf(in api.WorkersSettings) control.WorkersSettings {
	l := workers.List{
		Deal: workers.Method(in.Deal), Overlap: in.Overlap, Size: in.Size, Sizes: in.Sizes, Strict: in.Strict, Numbers: in.Numbers,
	}
	for _, w := range in.Workers {
		l.Workers = append(l.Workers, worker(w.ID, w.WorkerSettings))
	}
	return control.WorkersSettings{List: l, Salt: in.Salt}
}

// cellWorkers is a list as it is shown: without its salt.
func cellWorkers(l control.Workers) api.CellWorkers {
	out := api.CellWorkers{
		Cell: l.Cell, HandSettings: handSettings(l.List), Workers: workersOf(l.List), Drained: l.Drained, Salted: l.Salt != "",
		Serial: l.Serial(), ChangedAt: l.ChangedAt, Revision: l.Revision,
	}
	if hands, err := l.Check(); err == nil {
		out.Version = hands.Version()
	}
	return out
}

// workersChange tells what a write did to a list, and to the hands of the cell's
// tenants.
func (s *Server) workersChange(q *request, status int, ch control.WorkersChange, call control.Call) (*answer, error) {
	out := api.CellWorkersChange{CellWorkers: cellWorkers(ch.After), Unchanged: ch.Unchanged, DryRun: call.DryRun}
	e, err := s.service.WorkersEffect(q.Context(), ch.Before, ch.After)
	switch {
	case err == nil:
		out.Hands = &api.HandsEffect{Tenants: e.Tenants, MadeUp: e.MadeUp, Losing: e.Losing, Gaining: e.Gaining, Most: e.Most}
	case call.DryRun:
		return nil, err
	default:
		// The write is done. What it does to hands is told beside that.
		s.log.WarnContext(q.Context(), "what a change of workers does to hands can't be told", "cell", ch.After.Cell, "error", err)
	}
	return &answer{status: status, revision: ch.After.Revision, body: out}, nil
}

func (s *Server) getWorkers(q *request) (*answer, error) {
	id := q.cell()
	if err := q.done(); err != nil {
		return nil, err
	}
	l, err := s.service.Workers(q.Context(), id)
	if err != nil {
		return nil, err
	}
	return &answer{body: cellWorkers(l), revision: l.Revision}, nil
}

func (s *Server) putWorkers(q *request) (*answer, error) {
	id, in := q.cell(), bodyAtMost[api.WorkersSettings](q, workers.MaxList, decodeStrictly)
	at, call := q.revision(), q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.PutWorkers(q.Context(), call, id, listOf(in), at)
	if err != nil {
		return nil, taken(at, "the list of workers of cell "+string(id), err)
	}
	return s.workersChange(q, created(at, call), ch, call)
}

func (s *Server) deleteWorkers(q *request) (*answer, error) {
	id := q.cell()
	at, call := q.existing(), q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.DeleteWorkers(q.Context(), call, id, at)
	if err != nil {
		return nil, err
	}
	return &answer{body: api.CellWorkersChange{CellWorkers: cellWorkers(ch.Before), DryRun: call.DryRun}}, nil
}

func (s *Server) putWorker(q *request) (*answer, error) {
	id, in := q.cell(), body[api.WorkerSettings](q)
	at, call := q.revision(), q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.PutWorker(q.Context(), call, id, worker(q.PathValue("worker"), in), at)
	if err != nil {
		return nil, err
	}
	return s.workersChange(q, created(at, call), ch, call)
}

func (s *Server) removeWorker(q *request) (*answer, error) {
	id := q.cell()
	at, call := q.existing(), q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.RemoveWorker(q.Context(), call, id, q.PathValue("worker"), at)
	if err != nil {
		return nil, err
	}
	return s.workersChange(q, http.StatusOK, ch, call)
}

func (s *Server) drainWorker(q *request) (*answer, error) {
	id, in := q.cell(), body[api.DrainWorker](q)
	call := q.call(in.Reason)
	call.At = q.optional()
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.DrainWorker(q.Context(), call, id, q.PathValue("worker"))
	if err != nil {
		return nil, err
	}
	return s.workersChange(q, http.StatusOK, ch, call)
}

func (s *Server) undrainWorker(q *request) (*answer, error) {
	id, in := q.cell(), body[api.UndrainWorker](q)
	call := q.call(in.Reason)
	call.At = q.optional()
	if err := q.done(); err != nil {
		return nil, err
	}
	ch, err := s.service.UndrainWorker(q.Context(), call, id, q.PathValue("worker"), in.Weight)
	if err != nil {
		return nil, err
	}
	return s.workersChange(q, http.StatusOK, ch, call)
}

// serveWorkers is what a cell's gateways poll: the list with its salt. Its ETag is
// a digest of all of it.
func (s *Server) serveWorkers(q *request) (*answer, error) {
	id := q.cell()
	if err := q.done(); err != nil {
		return nil, err
	}
	if !q.who.bound.MayServe(id) {
		return nil, fmt.Errorf("%s may read the workers of %s, not those of %s: %w", q.who.name, q.who.bound.Cells, id, cellway.ErrForbidden)
	}
	theirs, err := cellway.ParseVersion(cmp.Or(q.Header.Get(api.HeaderListSerial), "0.0"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.HeaderListSerial, err)
	}
	text, tag, err := s.service.ServedWorkers(q.Context(), id, theirs, func(tag string) bool { return has(q.Header.Values("If-None-Match"), tag) })
	if err != nil {
		return nil, err
	}
	return &answer{raw: func(w http.ResponseWriter) {
		w.Header().Set("ETag", tag)
		if text == nil {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(text) // the client is gone if this fails
	}}, nil
}

// has reports whether an If-None-Match names that tag, which a proxy may have made
// a weak one.
func has(header []string, tag string) bool {
	return slices.ContainsFunc(header, func(line string) bool {
		for one := range strings.SplitSeq(line, ",") {
			if strings.TrimPrefix(strings.TrimSpace(one), "W/") == tag {
				return true
			}
		}
		return false
	})
}
