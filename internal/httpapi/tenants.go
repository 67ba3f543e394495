package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
)

func (s *Server) listTenants(q *request) (*answer, error) {
	after, limit := q.page()
	cellID, tier := cellway.CellID(q.param("cell")), q.param("tier")
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.service.Tenants(q.Context(), cellID, tier, after, limit)
	if err != nil {
		return nil, err
	}
	m := s.service.Accepted()
	return &answer{body: list(p, func(t control.Tenant) api.Tenant { return tenant(t, m) })}, nil
}

func (s *Server) getTenant(q *request) (*answer, error) {
	id := q.tenant("tenant")
	if err := q.done(); err != nil {
		return nil, err
	}
	t, err := s.service.Tenant(q.Context(), id)
	if err != nil {
		return nil, err
	}
	return &answer{body: tenant(t, s.service.Accepted()), revision: t.Revision}, nil
}

func settings(id cellway.TenantID, in api.TenantSettings, request string) control.Tenant {
	return control.Tenant{
		ID: id, Tier: in.Tier, Weights: control.Vector(in.Weights), Residency: in.Residency, Dedicated: in.Dedicated, Policy: in.Policy, Request: request,
	}
}

func (s *Server) putTenant(q *request) (*answer, error) {
	id, in := q.tenant("tenant"), body[api.TenantSettings](q)
	at, call, wait := q.revision(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	t, c, err := s.service.PutTenant(q.Context(), call, settings(id, in, ""), at)
	if err != nil {
		return nil, err
	}
	return s.tenantChange(q, created(at, call), t, c, call, wait), nil
}

func (s *Server) tenantChange(q *request, status int, t control.Tenant, c control.Change, call control.Call, wait time.Duration) *answer {
	m := s.service.Accepted()
	if call.DryRun && c.After != nil {
		m = c.After
	}
	return &answer{status: status, revision: t.Revision, body: api.TenantChange{Tenant: tenant(t, m), Change: s.change(q.Context(), c, call, wait)}}
}

// createTenant is putTenant for callers who may have asked before and don't
// know what came of it: with the same Idempotency-Key they get what was made.
func (s *Server) createTenant(q *request) (*answer, error) {
	in := body[api.TenantCreation](q)
	call, wait := q.call(q.reason()), q.waiting()
	key := q.Header.Get("Idempotency-Key")
	switch {
	case key == "":
		q.wrong("%w: send an Idempotency-Key, so that asking twice creates once", errPrecondition)
	case len(key) > 128 || plainID(key[:min(len(key), 64)]) != key[:min(len(key), 64)] || len(key) > 64 && plainID(key[64:]) != key[64:]:
		q.wrong("Idempotency-Key must be 1 to 128 of A-Z a-z 0-9 . _ : -: %w", cellway.ErrInvalid)
	}
	if err := in.ID.Validate(); err != nil {
		q.wrong("%w", err)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	t, c, err := s.service.PutTenant(q.Context(), call, settings(in.ID, in.TenantSettings, key), 0)
	if err != nil {
		return nil, err
	}
	a := s.tenantChange(q, created(0, call), t, c, call, wait)
	q.w.Header().Set("Location", "/v1/tenants/"+segment(string(in.ID)))
	return a, nil
}

func (s *Server) deleteTenant(q *request) (*answer, error) {
	id := q.tenant("tenant")
	at, call, wait := q.existing(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	q.command = []string{"cellway", "tenant", "delete", string(id), "--reason", call.Reason}
	t, c, err := s.service.DeleteTenant(q.Context(), call, id, at)
	if err != nil {
		return nil, err
	}
	return s.tenantChange(q, http.StatusOK, t, c, call, wait), nil
}

func (s *Server) undeleteTenant(q *request) (*answer, error) {
	id, in := q.tenant("tenant"), body[api.UndeleteRequest](q)
	at, call, wait := q.existing(), q.call(in.Reason), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	t, c, err := s.service.UndeleteTenant(q.Context(), call, id, at)
	if err != nil {
		return nil, err
	}
	return s.tenantChange(q, http.StatusOK, t, c, call, wait), nil
}

func (s *Server) listOverrides(q *request) (*answer, error) {
	after, limit := q.page()
	kind := q.param("kind")
	if k, err := cellway.ParseEntryKind(kind); kind != "" && (err != nil || !k.IsOverride()) {
		q.wrong("query parameter kind is %q; give pin, heavy, quarantine or test: %w", kind, cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.service.Overrides(q.Context(), kind, after, limit)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &answer{body: list(p, func(o control.Override) api.Override { return override(o, now) })}, nil
}

func (s *Server) getOverride(q *request) (*answer, error) {
	key := q.pathKey()
	if err := q.done(); err != nil {
		return nil, err
	}
	o, err := s.service.Override(q.Context(), key)
	if err != nil {
		return nil, err
	}
	return &answer{body: override(o, time.Now()), revision: o.Revision}, nil
}

func (s *Server) putOverride(q *request) (*answer, error) {
	key, in := q.pathKey(), body[api.OverrideSettings](q)
	at, call, wait := q.revision(), q.call(cmp.Or(q.reason(), in.Reason)), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	set := cellway.Entry{Key: key, Kind: in.Kind, Cell: in.Cell, By: in.By, Reason: in.Reason, ReviewBy: in.ReviewBy}
	q.command = []string{"cellway", "override", "set", string(key), "--kind", in.Kind.String(), "--by", in.By, "--reason", in.Reason, "--review-by", in.ReviewBy.Format(time.RFC3339)}
	if in.Cell != "" {
		q.command = append(q.command, "--cell", string(in.Cell))
	}
	o, c, err := s.service.PutOverride(q.Context(), call, set, at)
	if err != nil {
		return nil, taken(at, "override "+string(key), err)
	}
	out := api.OverrideChange{Override: override(o, time.Now()), Change: s.change(q.Context(), c, call, wait)}
	return &answer{status: created(at, call), revision: o.Revision, body: out}, nil
}

func (s *Server) removeOverride(q *request) (*answer, error) {
	key := q.pathKey()
	at, call, wait := q.existing(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	q.command = []string{"cellway", "override", "remove", string(key), "--reason", call.Reason}
	o, c, err := s.service.RemoveOverride(q.Context(), call, key, at)
	if err != nil {
		return nil, err
	}
	return &answer{body: api.OverrideChange{Override: override(o, time.Now()), Change: s.change(q.Context(), c, call, wait)}}, nil
}

func (s *Server) listAliases(q *request) (*answer, error) {
	after, limit := q.page()
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.service.Aliases(q.Context(), after, limit)
	return &answer{body: list(p, alias)}, err
}

func (s *Server) getAlias(q *request) (*answer, error) {
	name := q.tenant("name")
	if err := q.done(); err != nil {
		return nil, err
	}
	a, err := s.service.Alias(q.Context(), name)
	return &answer{body: alias(a), revision: a.Revision}, err
}

func (s *Server) putAlias(q *request) (*answer, error) {
	name, in := q.tenant("name"), body[api.AliasSettings](q)
	at, call, wait := q.revision(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	call.At = at
	a, c, err := s.service.PutAlias(q.Context(), call, cellway.Alias{Name: name, Target: in.Target})
	if err != nil {
		return nil, err
	}
	status := created(at, call)
	if c.Seq == 0 {
		status = http.StatusOK // it was there, and points there
	}
	return &answer{status: status, revision: a.Revision, body: api.AliasChange{Alias: alias(a), Change: s.change(q.Context(), c, call, wait)}}, nil
}

func (s *Server) removeAlias(q *request) (*answer, error) {
	name := q.tenant("name")
	at, call, wait := q.existing(), q.call(q.reason()), q.waiting()
	if err := q.done(); err != nil {
		return nil, err
	}
	a, c, err := s.service.RemoveAlias(q.Context(), call, name, at)
	if err != nil {
		return nil, err
	}
	return &answer{body: api.AliasChange{Alias: alias(a), Change: s.change(q.Context(), c, call, wait)}}, nil
}

// reason is why somebody writes, for the journal, where the body has no place for
// it: a DELETE has none, and a PUT and a creation have the record's alone.
func (q *request) reason() string {
	reason := q.param("reason")
	if len(reason) > cellway.MaxEntryText {
		q.wrong("query parameter reason has %d bytes; at most %d are kept: %w", len(reason), cellway.MaxEntryText, cellway.ErrInvalid)
	}
	return reason
}
