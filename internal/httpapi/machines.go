package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

func (s *Server) listRouters(q *request) (*answer, error) {
	after, limit := q.page()
	if err := q.done(); err != nil {
		return nil, err
	}
	all := s.service.Routers()
	from, found := slices.BinarySearchFunc(all, after, func(r control.Router, id string) int { return strings.Compare(r.ID, id) })
	if found {
		from++
	}
	p := control.Page[control.Router]{Items: all[from:]}
	if len(p.Items) > limit {
		p.Items = p.Items[:limit]
		p.Next = p.Items[limit-1].ID
	}
	newest := s.service.Newest()
	return &answer{body: list(p, func(r control.Router) api.Router { return router(r, newest) })}, nil
}

func (s *Server) getRouter(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	r, err := s.service.Router(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return &answer{body: router(r, s.service.Newest())}, nil
}

// Bounds of a report, so that one router can't fill the memory of the control
// plane.
const (
	maxReportCells   = 4096
	maxReportTenants = 100
	maxReportRefused = 100
	maxReport        = 32 << 20 // bytes
	maxReportText    = 1 << 10  // bytes of a reason or a message
	maxReportWord    = 32       // bytes of a breaker's state
)

func (s *Server) report(q *request) (*answer, error) {
	in := bodyAtMost[api.RouterReport](q, maxReport, decodeFromRouter)
	rep := control.Report{
		Fleet: in.Fleet, Build: in.Build, Started: in.StartedAt, Listen: in.Listen, Version: in.MapVersion, Seen: in.SeenVersion, Leaving: in.Leaving,
	}
	if in.MapDigest != "" {
		d, err := routemap.ParseDigest(in.MapDigest)
		if err != nil {
			q.wrong("map_digest: %w", err)
		}
		rep.Digest = d
	}
	if len(in.Cells) > maxReportCells || len(in.Refused) > maxReportRefused || slices.ContainsFunc(in.Cells, func(c api.CellTraffic) bool { return len(c.Tenants) > maxReportTenants }) {
		q.wrong("a report has at most %d cells, %d tenants of each and %d refused maps: %w", maxReportCells, maxReportTenants, maxReportRefused, cellway.ErrInvalid)
	}
	for i := range in.Refused {
		r := &in.Refused[i]
		if n := len(r.Reason) + len(r.Digest) + len(r.Message); n > maxReportText {
			q.wrong("refused map %v: its reason has %d bytes, the most is %d: %w", r.Version, n, maxReportText, cellway.ErrInvalid)
		}
		r.Reason, r.Digest, r.Message = oneLine(r.Reason), oneLine(r.Digest), oneLine(r.Message)
	}
	for i := range in.Cells {
		c := &in.Cells[i]
		if c.Breaker = oneLine(c.Breaker); len(c.Breaker) > maxReportWord {
			q.wrong("cell %.80q: its breaker is a word of at most %d bytes: %w", c.Cell, maxReportWord, cellway.ErrInvalid)
		}
	}
	if below0(in) {
		q.wrong("a report counts what was, and nothing in it is below 0: %w", cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	if !q.who.bound.MayReport(q.PathValue("id")) {
		return nil, fmt.Errorf("%s may report as %s, not as %s: %w", q.who.name, q.who.bound.Routers, q.PathValue("id"), cellway.ErrForbidden)
	}
	for _, c := range in.Cells {
		rep.Traffic = append(rep.Traffic, control.CellTraffic{
			Cell: c.Cell, Requests: c.Requests, Failed: c.TransportFailures + c.RefusedOpen, Mismatches: c.Mismatches,
		})
	}
	var err error
	if rep.Refused, err = json.Marshal(some(in.Refused)); err != nil {
		return nil, err
	}
	if rep.Cells, err = json.Marshal(reportedCells{some(in.Cells), in.IntervalMS}); err != nil {
		return nil, err
	}
	if err := s.service.Report(q.Context(), q.PathValue("id"), rep); err != nil {
		return nil, err
	}
	out := api.Lease{LeaseMS: control.Lease.Milliseconds()}
	if p := s.service.Newest(); p != nil {
		out.Version = p.Map.Version()
	}
	return &answer{body: out}, nil
}

// oneLine makes text fit to be shown: what a router quotes may hold anything.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// below0 reports whether a router counts less than nothing.
func below0(in api.RouterReport) bool {
	return in.IntervalMS < 0 || slices.ContainsFunc(in.Refused, func(r api.RefusedMap) bool { return r.Count < 0 }) ||
		slices.ContainsFunc(in.Cells, func(c api.CellTraffic) bool {
			return min(c.Requests, c.TransportFailures, c.RefusedOpen, c.Mismatches, c.Status5xx) < 0 || c.P99MS < 0 ||
				slices.ContainsFunc(c.Tenants, func(t api.TenantTraffic) bool { return t.Requests < 0 })
		})
}

func (s *Server) forgetRouter(q *request) (*answer, error) {
	call := q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	return &answer{}, s.service.ForgetRouter(q.Context(), call, q.PathValue("id"))
}

func (s *Server) getChange(q *request) (*answer, error) {
	id := q.PathValue("id")
	seq, err := strconv.ParseUint(id, 10, 63)
	if err != nil || changeID(seq) != id {
		q.wrong("change %q is not the id of a change: %w", id, cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	c, err := s.service.LoggedChange(q.Context(), seq)
	if err != nil {
		return nil, err
	}
	out := api.ChangeStatus{ID: id, At: c.At, By: c.Who, Act: c.Act, Digest: c.Digest.String(), Counts: *counts(c.Counts), Confirmed: c.Confirmed}
	if out.Version, err = s.service.ChangeVersion(q.Context(), seq); err != nil {
		return nil, err
	}
	if out.Version == 0 {
		out.Routers = api.Waited{Why: "it is not published yet"}
	} else {
		out.Routers = reach(s.service.Reach(out.Version))
		out.Routers.Version = out.Version
	}
	return &answer{body: out}, nil
}

func (s *Server) listJournal(q *request) (*answer, error) {
	after, last := q.number("after", 0), q.number("last", 0)
	_, limit := q.page()
	subject := q.param("subject")
	if after > 0 && last > 0 {
		q.wrong("query parameters after and last name two places to start from; give one: %w", cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	if last > 0 {
		end, err := s.service.JournalEnd(q.Context())
		if err != nil {
			return nil, err
		}
		after = end - min(end, last)
	}
	lines, next, err := s.service.Journal(q.Context(), after, limit, subject)
	if err != nil {
		return nil, err
	}
	out := api.Page[api.JournalEntry]{Items: make([]api.JournalEntry, 0, len(lines))}
	for _, l := range lines {
		out.Items = append(out.Items, api.JournalEntry{
			Number: l.Number, At: l.At, By: l.Who, Act: l.Act, Subject: l.Subject, Reason: l.Reason, Before: l.Before, After: l.After, Change: changeID(l.Change),
		})
	}
	end, err := s.service.JournalEnd(q.Context())
	if err != nil {
		return nil, err
	}
	if next < end { // a page may be short, or empty, before the end
		out.Next = strconv.FormatUint(next, 10)
	}
	return &answer{body: out}, nil
}

func (s *Server) listAlarms(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	alarms := control.Page[control.Alarm]{Items: s.service.Alarms()}
	return &answer{body: list(alarms, func(a control.Alarm) api.Alarm {
		return api.Alarm{Code: string(a.Code), Subject: a.Subject, Since: a.Since, Message: a.Message}
	})}, nil
}

func (s *Server) listTokens(q *request) (*answer, error) {
	after, limit := q.page()
	if err := q.done(); err != nil {
		return nil, err
	}
	p, err := s.service.Tokens(q.Context(), after, limit)
	return &answer{body: list(p, token)}, err
}

func (s *Server) createToken(q *request) (*answer, error) {
	in := body[api.TokenCreation](q)
	call := q.call(q.reason())
	role, err := control.ParseRole(in.Role)
	if err != nil {
		q.wrong("%w", err)
	}
	if in.Routers != "" && role != control.RouterIs {
		q.wrong("routers is for the role router only, not %s: %w", in.Role, cellway.ErrInvalid)
	}
	if in.Cells != "" && role != control.CellIs {
		q.wrong("cells is for the role cell only, not %s: %w", in.Role, cellway.ErrInvalid)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	var t control.Token
	var secret string
	switch {
	case in.Routers != "":
		t, secret, err = s.service.CreateRouterToken(q.Context(), call, in.Name, in.Routers, in.ExpiresAt)
	case in.Cells != "":
		t, secret, err = s.service.CreateCellToken(q.Context(), call, in.Name, in.Cells, in.ExpiresAt)
	default:
		t, secret, err = s.service.CreateToken(q.Context(), call, in.Name, role, in.ExpiresAt)
	}
	if err != nil {
		return nil, err
	}
	if call.DryRun {
		secret = ""
	}
	return &answer{status: created(0, call), body: api.NewToken{Token: token(t), Secret: secret}}, nil
}

func (s *Server) deleteToken(q *request) (*answer, error) {
	call := q.call(q.reason())
	if err := q.done(); err != nil {
		return nil, err
	}
	return &answer{}, s.service.DeleteToken(q.Context(), call, q.PathValue("id"))
}

// backup streams. Once it has begun, a failure can only break off the stream,
// which the client sees.
func (s *Server) backup(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	q.w.Header().Set("Content-Type", "application/octet-stream")
	out := &counter{w: q.w}
	if err := s.service.Backup(q.Context(), out); err != nil {
		if out.n == 0 {
			return nil, fmt.Errorf("backup: %w", err)
		}
		s.log.ErrorContext(q.Context(), "backup broke off", "bytes", out.n, "error", err)
		panic(http.ErrAbortHandler)
	}
	return &answer{raw: func(http.ResponseWriter) {}}, nil
}

// A counter counts what went out.
type counter struct {
	w http.ResponseWriter
	n int64
}

// Write sends b on.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (s *Server) confirmRestore(q *request) (*answer, error) {
	in := body[api.RestoreConfirmation](q)
	call := q.call(in.Reason)
	digest, err := routemap.ParseDigest(in.Digest)
	if err != nil {
		q.wrong("%w", err)
	}
	if err := q.done(); err != nil {
		return nil, err
	}
	return &answer{}, s.service.ConfirmRestore(q.Context(), call, in.Version, digest, in.LoseNewerMaps)
}
