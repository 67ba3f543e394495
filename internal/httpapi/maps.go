package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

// longestPoll bounds how long a request for a manifest may wait.
const longestPoll = 5 * time.Minute

// errNoMap says that nothing was published yet.
var errNoMap = fmt.Errorf("no map has been published yet; cellway status tells what is next: %w", cellway.ErrNotReady)

func (s *Server) mapStatus(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	out := api.MapStatus{}
	if f, err := s.service.Fleet(q.Context()); err == nil {
		out.Fleet = f.Fleet
	} else if !errors.Is(err, cellway.ErrNotFound) {
		return nil, err
	}
	if p := s.service.Newest(); p != nil {
		man := p.Version.Manifest
		out.Version, out.Digest, out.Parent, out.CreatedAt = man.Version, man.Digest().String(), man.Parent, man.CreatedAt
		out.Keys, out.Cells = p.Map.Keys(), len(p.Map.Cells())
		out.BaseBytes, out.OverlayBytes = man.Base.Size, man.Overlay.Size
		for _, sig := range man.Signatures {
			out.SigningKeys = append(out.SigningKeys, string(sig.Key))
		}
	}
	out.Waiting, out.BackupAt = s.service.Stats().Waiting, s.service.LastBackup()
	out.Routers = reach(s.service.Reach(out.Version))
	out.Routers.Version = out.Version
	st, err := s.service.RestoreState(q.Context())
	if err != nil {
		return nil, err
	}
	if st.Restored != nil {
		out.Restore = &api.RestoreState{
			Since: st.Restored.At, From: st.Restored.From, Why: st.Restored.Why, Version: st.Version, Digest: st.Digest.String(),
			Highest: st.Highest.Version, HighestDigest: st.Highest.Digest.String(), HighestRouter: st.Highest.Router,
			ReadyInSeconds: int((st.Left + time.Second - 1) / time.Second), Unheard: st.Unheard,
		}
	}
	if u := st.Undone; u != nil {
		out.Undone = &api.UndoneMap{At: u.At, Who: u.Who, Version: u.Version, Digest: u.Digest.String(), From: u.From}
	}
	return &answer{body: out}, nil
}

// manifest is what routers poll. A request that waits costs a goroutine and a
// timer; each version wakes all of them at once, and the store is not asked.
func (s *Server) manifest(q *request) (*answer, error) {
	after := q.version("after")
	timeout := q.duration("timeout", 30*time.Second, longestPoll)
	if err := q.done(); err != nil {
		return nil, err
	}
	p := s.service.Newest()
	if q.URL.Query().Has("after") && (p == nil || p.Map.Version() <= after) {
		if !s.polls.enter() {
			return nil, errBusy
		}
		defer s.polls.leave()
		ctx, cancel := s.patience(q.Context(), timeout)
		defer cancel()
		var err error
		p, err = s.service.Await(ctx, after)
		if err != nil {
			if q.Context().Err() != nil {
				return nil, err
			}
			return &answer{status: http.StatusNoContent}, nil
		}
	}
	if p == nil {
		return nil, errNoMap
	}
	if after != 0 && p.Map.Version() > after {
		if err := s.service.Took(q.Context(), q.who.name, after); err != nil {
			s.log.WarnContext(q.Context(), "map of a router not looked at", "version", after, "error", err)
		}
	}
	return &answer{raw: func(w http.ResponseWriter) {
		man := p.Version.Manifest
		w.Header().Set("ETag", `"`+man.Digest().String()+`"`)
		w.Header().Set("X-Cellway-Map-Version", man.Version.String())
		w.Header().Set("Content-Type", api.ManifestType)
		w.Write(man.Encode())
	}}, nil
}

func (s *Server) part(q *request) (*answer, error) {
	digest, err := routemap.ParseDigest(q.PathValue("digest"))
	if err != nil {
		q.wrong("%w", err)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.parts.get(digest, func() ([]byte, error) { return s.service.Part(q.Context(), digest) })
	if err != nil {
		return nil, fmt.Errorf("part %v: %w", digest, err)
	}
	return &answer{raw: func(w http.ResponseWriter) { p.serve(w, q.Request) }}, nil
}

// listVersions lists the newest first, so "after" means older than.
func (s *Server) listVersions(q *request) (*answer, error) {
	before := q.version("after")
	_, limit := q.page()
	if err := q.done(); err != nil {
		return nil, err
	}
	all, err := s.service.Versions(q.Context(), before, limit+1)
	if err != nil {
		return nil, err
	}
	p := control.Page[control.MapVersion]{Items: all}
	if len(all) > limit {
		p.Items = all[:limit]
		p.Next = all[limit-1].Manifest.Version.String()
	}
	return &answer{body: list(p, mapVersion)}, nil
}

func mapVersion(v control.MapVersion) api.MapVersion {
	m := v.Manifest
	return api.MapVersion{
		Version: m.Version, Digest: m.Digest().String(), Parent: m.Parent, CreatedAt: m.CreatedAt, Scope: m.Scope,
		Counts: *counts(m.Verdict.Counts), Confirmed: m.Verdict.Confirmed,
		BaseDigest: m.Base.Digest.String(), BaseBytes: m.Base.Size, OverlayBytes: m.Overlay.Size, Change: changeID(v.Seq),
	}
}

// version returns a published version; 0 is the newest.
func (s *Server) version(q *request, v cellway.Version) (*routemap.Map, routemap.Version, error) {
	newest := s.service.Newest()
	switch {
	case newest == nil:
		return nil, routemap.Version{}, errNoMap
	case v == 0 || v == newest.Map.Version():
		return newest.Map, newest.Version, nil
	}
	return s.service.OpenVersion(q.Context(), v)
}

func (s *Server) archive(q *request) (*answer, error) {
	var v cellway.Version
	if name := q.PathValue("version"); name != "newest" {
		var err error
		if v, err = cellway.ParseVersion(name); err != nil || v == 0 {
			q.wrong("version %q is neither incarnation.sequence nor newest: %w", name, cellway.ErrInvalid)
		}
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	_, version, err := s.version(q, v)
	if err != nil {
		return nil, err
	}
	return &answer{raw: func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", api.ArchiveType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+version.Manifest.Fleet+"-"+version.Manifest.Version.String()+`.map"`)
		w.Write(version.Archive())
	}}, nil
}

func (s *Server) content(q *request) (*answer, error) {
	v := q.version("version")
	if err := q.done(); err != nil {
		return nil, err
	}
	m, _, err := s.version(q, v)
	if err != nil {
		return nil, err
	}
	return &answer{body: m.Content()}, nil
}

func (s *Server) diff(q *request) (*answer, error) {
	from, to := q.version("from"), q.version("to")
	limit := q.number("limit", 1000)
	if limit < 1 || limit > 100_000 {
		q.wrong("query parameter limit is %d; give 1 to 100000: %w", limit, cellway.ErrInvalid)
	}
	if from == 0 {
		q.wrong("query parameter from is missing: name the version to compare with: %w", cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	a, _, err := s.version(q, from)
	if err != nil {
		return nil, err
	}
	b, _, err := s.version(q, to)
	if err != nil {
		return nil, err
	}
	changes, total := routemap.Diff(a, b, int(limit))
	return &answer{body: api.MapDiff{From: a.Version(), To: b.Version(), Counts: *counts(routemap.Compare(a, b)), Changes: differences(changes), Total: total}}, nil
}

func (s *Server) rollback(q *request) (*answer, error) {
	in := body[api.RollbackRequest](q)
	if in.Version == 0 {
		q.wrong("body: version is missing; give the one to go back to: %w", cellway.ErrInvalid)
	}
	call, wait := q.call(in.Reason), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	q.command = []string{"cellway", "map", "rollback", in.Version.String(), "--reason", in.Reason}
	r, c, err := s.service.RollbackTo(q.Context(), call, in.Version)
	if err != nil {
		return nil, err
	}
	return &answer{body: api.RollbackChange{
		To: in.Version, LeftKeys: r.LeftKeys, LeftBuckets: r.LeftBuckets, LeftCells: r.LeftCells, Change: s.change(q.Context(), c, call, wait),
	}}, nil
}

func (s *Server) explain(q *request) (*answer, error) {
	key := q.key("key")
	if err := q.done(); err != nil {
		return nil, err
	}
	p := s.service.Newest()
	if p == nil {
		return nil, errNoMap
	}
	return &answer{body: p.Map.Explain(key)}, nil
}

func (s *Server) locate(q *request) (*answer, error) {
	key := q.key("key")
	if err := q.done(); err != nil {
		return nil, err
	}
	p := s.service.Newest()
	if p == nil {
		return nil, errNoMap
	}
	r := p.Map.Lookup(key)
	if r.Cell == nil {
		return nil, fmt.Errorf("key %s has no cell (%s): %w", key, r.Code, cellway.ErrNotFound)
	}
	return &answer{body: api.Location{Key: r.Key, Cell: r.Cell.ID, Endpoints: some(r.Cell.Endpoints), Epoch: r.Epoch, Version: p.Map.Version()}}, nil
}
