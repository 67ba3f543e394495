package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/getkin/kin-openapi/openapi3filter"
	openapirouters "github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// A session sends requests and holds each, with its answer, to the document.
type session struct {
	t      *testing.T
	s      *Server
	router openapirouters.Router
	seen   map[string]map[int]bool // operation: statuses
}

func newSession(t *testing.T, s *Server) *session {
	openapi3filter.RegisterBodyDecoder(api.ManifestType, openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder(api.PartType, openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder(api.ArchiveType, openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	r, err := gorillamux.NewRouter(document(t))
	if err != nil {
		t.Fatal(err)
	}
	return &session{t, s, r, map[string]map[int]bool{}}
}

// do sends a request, checks it and its answer, and returns the answer. The
// request itself must keep to the document only if it succeeds.
func (x *session) do(method, path string, in any, headers ...string) *httptest.ResponseRecorder {
	x.t.Helper()
	r := local(method, path, in)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	rec := httptest.NewRecorder()
	x.s.ServeHTTP(rec, r)
	plainlySaid(x.t, method+" "+path, rec)

	route, params, err := x.router.FindRoute(r)
	if err != nil {
		x.t.Fatalf("%s %s: %v", method, path, err)
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	r.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if err := openapi3filter.ValidateRequest(x.t.Context(), input); err != nil && rec.Code < 300 {
		x.t.Errorf("%s %s succeeded, and the document does not allow it: %v", method, path, err)
	}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: rec.Code, Header: rec.Header(), Options: options}
	answer.SetBodyBytes(rec.Body.Bytes())
	if err := openapi3filter.ValidateResponse(x.t.Context(), answer); err != nil {
		x.t.Errorf("%s %s: %d is not as documented: %v\n%s", method, path, rec.Code, err, rec.Body)
	}
	id := route.Operation.OperationID
	if route.Operation.Responses.Value(fmt.Sprint(rec.Code)) == nil {
		x.t.Errorf("%s: the status %d has no line of its own in the document", id, rec.Code)
	}
	if x.seen[id] == nil {
		x.seen[id] = map[int]bool{}
	}
	x.seen[id][rec.Code] = true
	return rec
}

// ok is do for what must succeed; the answer is decoded into out.
func (x *session) ok(out any, method, path string, in any, headers ...string) *httptest.ResponseRecorder {
	x.t.Helper()
	rec := x.do(method, path, in, headers...)
	if rec.Code >= 300 {
		x.t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
	if out != nil {
		reflect.ValueOf(out).Elem().SetZero() // nothing of the answer before
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
			x.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return rec
}

// no is do for what must be refused with a code.
func (x *session) no(code, method, path string, in any, headers ...string) api.Problem {
	x.t.Helper()
	rec := x.do(method, path, in, headers...)
	var p api.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Code != code {
		x.t.Errorf("%s %s: %d %s, want %s", method, path, rec.Code, rec.Body, code)
	}
	return p
}

func matching(rev cellway.Revision) []string { return []string{"If-Match", etag(rev)} }

// A session that uses all of the API: each request and each answer keeps to the
// document, and every operation is used.
func TestSessionKeepsToTheDocument(t *testing.T) {
	s, svc := newServer(t)
	s.metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		io.WriteString(w, "cellway_up 1\n")
	})
	x := newSession(t, s)

	x.no(api.CodeNotFound, "GET", "/v1/fleet", nil)
	x.no(api.CodeNotReady, "GET", "/v1/map/manifest", nil)
	x.no(api.CodeNotReady, "GET", "/v1/locate?key=acme", nil)
	x.no(api.CodeNotReady, "GET", "/v1/explain?key=acme", nil)
	x.no(api.CodeNotReady, "GET", "/v1/map/content", nil)
	x.ok(nil, "GET", "/v1/map", nil)
	settings := api.FleetSettings{Name: "shop", Mapping: "buckets", Buckets: 256, Extractors: []cellway.Extractor{
		{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}, {Kind: cellway.FromJWT, Name: "org", Source: "cookie:sid", MustAgree: true}}}
	var fleet api.FleetChange
	x.ok(&fleet, "PUT", "/v1/fleet", settings, create...)
	x.no(api.CodeExists, "PUT", "/v1/fleet", settings, create...)
	x.no(api.CodeConflict, "PUT", "/v1/fleet", settings, matching(99)...)
	x.no(api.CodePreconditionRequired, "PUT", "/v1/fleet", settings)
	rec := x.ok(&fleet, "GET", "/v1/fleet", nil)
	if rec.Header().Get("ETag") != etag(fleet.Revision) || fleet.Revision == 0 {
		t.Errorf("ETag %s, revision %d", rec.Header().Get("ETag"), fleet.Revision)
	}

	var cell api.CellChange
	for i := range 4 {
		x.ok(&cell, "PUT", fmt.Sprintf("/v1/cells/cell-%03d", i+1), cellIn(i+1), create...)
	}
	full := cellIn(1)
	full.Title, full.Guard, full.Region, full.Zone = "One", cellway.GuardIdentity, "eu", "a"
	full.Tags, full.Capacity, full.Headroom, full.Tiers = map[string]string{"rack": "7"}, api.Vector{"tenants": 100, "rps": 2.5}, 10, []string{"gold", "silver"}
	x.ok(&cell, "PUT", "/v1/cells/cell-001", full, matching(1)...)
	if cell.Capacity["rps"] != 2.5 || cell.Region != "eu" || cell.Headroom != 10 || len(cell.Tiers) != 2 || cell.Admit != 100 {
		t.Errorf("cell-001 is %+v", cell)
	}
	x.no(api.CodeInvalid, "PUT", "/v1/cells/cell-005", api.CellSettings{State: cellway.CellActive}, create...)
	var plan api.BucketPlan
	x.ok(&plan, "POST", "/v1/buckets/assign?dry_run=true", api.BucketAssignment{})
	x.no(api.CodeInvalid, "POST", "/v1/buckets/assign", api.BucketAssignment{Policy: "by-hand"})
	x.ok(&plan, "POST", "/v1/buckets/assign", api.BucketAssignment{Policy: "bounded-load"})
	if sum := plan.Cells[0].After + plan.Cells[1].After + plan.Cells[2].After + plan.Cells[3].After; sum != 256 || plan.ChangeID != "1" {
		t.Errorf("plan %+v", plan)
	}
	first := published(t, s)

	// Tenants.
	var tenant api.TenantChange
	x.ok(&tenant, "PUT", "/v1/tenants/acme", api.TenantSettings{Tier: "gold", Weights: api.Vector{"rps": 1}, Residency: "eu"}, create...)
	if tenant.Cell != "cell-001" {
		t.Errorf("acme is in %s, only cell-001 is in eu", tenant.Cell)
	}
	x.no(api.CodeExists, "PUT", "/v1/tenants/acme", api.TenantSettings{}, create...)
	x.no(api.CodeConflict, "PUT", "/v1/tenants/acme", api.TenantSettings{Tier: "gold", Residency: "eu"}, matching(tenant.Revision+1)...)
	x.ok(&tenant, "PUT", "/v1/tenants/acme", api.TenantSettings{Tier: "silver", Residency: "eu"}, matching(tenant.Revision)...)
	x.no(api.CodeNeedsMove, "PUT", "/v1/tenants/acme", api.TenantSettings{Residency: "us"}, matching(tenant.Revision)...)
	for range 2 {
		x.ok(&tenant, "POST", "/v1/tenants", api.TenantCreation{ID: "globex", TenantSettings: api.TenantSettings{Policy: "least_loaded"}}, "Idempotency-Key", "signup-7")
	}
	x.no(api.CodePreconditionRequired, "POST", "/v1/tenants", api.TenantCreation{ID: "initech"})
	x.no(api.CodeNoRoom, "PUT", "/v1/tenants/mars", api.TenantSettings{Residency: "mars"}, create...)
	x.ok(nil, "GET", "/v1/tenants/acme", nil)
	x.no(api.CodeNotFound, "GET", "/v1/tenants/nobody", nil)
	var tenants api.Page[api.Tenant]
	x.ok(&tenants, "GET", "/v1/tenants?limit=1", nil)
	if len(tenants.Items) != 1 || tenants.Next != "acme" {
		t.Errorf("the first page is %+v", tenants)
	}
	x.ok(&tenants, "GET", "/v1/tenants?limit=1&after="+tenants.Next, nil)
	if len(tenants.Items) != 1 || tenants.Items[0].ID != "globex" {
		t.Errorf("the second page is %+v", tenants)
	}
	x.ok(&tenants, "GET", "/v1/tenants?cell=cell-001&tier=silver", nil)
	if len(tenants.Items) != 1 || tenants.Items[0].ID != "acme" {
		t.Errorf("silver ones in cell-001: %+v", tenants)
	}
	x.no(api.CodeInvalid, "GET", "/v1/tenants?limit=9999", nil)

	// Overrides and aliases.
	var o api.OverrideChange
	quarantine := api.OverrideSettings{Kind: cellway.Quarantine, By: "alice", Reason: "loud", ReviewBy: time.Date(2001, 1, 31, 0, 0, 0, 0, time.UTC)}
	x.ok(&o, "PUT", "/v1/overrides/acme", quarantine, create...)
	if !o.Overdue || o.Epoch == 0 {
		t.Errorf("override %+v", o)
	}
	x.no(api.CodeExists, "PUT", "/v1/overrides/acme", quarantine, create...)
	x.ok(&o, "PUT", "/v1/overrides/acme", quarantine, matching(o.Revision)...)
	pin := api.OverrideSettings{Kind: cellway.Pin, Cell: "cell-001", By: "alice", Reason: "near", ReviewBy: time.Date(2099, 1, 31, 0, 0, 0, 0, time.UTC)}
	x.ok(&o, "PUT", "/v1/overrides/acme/eu?dry_run=true", pin, create...)
	if !o.DryRun || o.Total != 1 || len(o.Changes) != 1 || o.Changes[0].Name != "acme/eu" || o.Digest == "" || o.ChangeID != "" {
		t.Errorf("the dry run says %+v", o.Change)
	}
	x.no(api.CodeNotFound, "GET", "/v1/overrides/acme/eu", nil)
	x.ok(&o, "PUT", "/v1/overrides/acme/eu", pin, create...)
	pin.Cell = "cell-002"
	x.no(api.CodeNeedsMove, "PUT", "/v1/overrides/acme/us", pin, create...)
	x.ok(nil, "GET", "/v1/overrides/acme/eu", nil)
	x.ok(nil, "GET", "/v1/overrides/acme", nil)
	x.ok(nil, "GET", "/v1/overrides?kind=pin", nil)
	x.no(api.CodeInvalid, "GET", "/v1/overrides?kind=placed", nil)
	x.ok(nil, "DELETE", "/v1/overrides/acme/eu?reason=done", nil, matching(o.Revision)...)
	x.no(api.CodeNotFound, "DELETE", "/v1/overrides/acme/eu", nil, matching(1)...)
	var alias api.AliasChange
	x.ok(&alias, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "globex"}, create...)
	x.no(api.CodeExists, "PUT", "/v1/aliases/globex", api.AliasSettings{Target: "acme"}, create...)
	x.ok(nil, "GET", "/v1/aliases/acme-corp", nil)
	x.ok(nil, "GET", "/v1/aliases", nil)
	x.ok(nil, "DELETE", "/v1/aliases/acme-corp?reason=old", nil, matching(alias.Revision)...)
	x.no(api.CodeNotFound, "GET", "/v1/aliases/acme-corp", nil)
	x.ok(&o, "GET", "/v1/overrides/acme", nil)
	x.ok(nil, "DELETE", "/v1/overrides/acme", nil, matching(o.Revision)...)

	settle(t, s) // the lists of versions below need more than two

	// Drains.
	x.ok(&cell, "POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: 0, Reason: "disk"})
	x.ok(&cell, "POST", "/v1/cells/cell-002/drain?wait=routers&timeout=1ms", api.DrainRequest{Admit: 25})
	if cell.Waited == nil || cell.Waited.Reached || cell.Waited.Why == "" {
		t.Errorf("nobody serves anything, and the answer is %+v", cell.Waited)
	}
	p := x.no(api.CodeGate, "POST", "/v1/cells/cell-003/drain", api.DrainRequest{Admit: 0, Reason: "it's hot"})
	if want := `cellway drain cell-003 --to 0 --reason 'it'\''s hot' --confirm ` + p.Digest; p.Command != want || len(p.Causes) != 1 || p.Counts == nil {
		t.Errorf("the refusal is %+v, want the command %s", p, want)
	}
	x.ok(&cell, "POST", "/v1/cells/cell-003/drain?dry_run=true", api.DrainRequest{Admit: 0})
	if len(cell.Causes) != 1 || cell.Digest != p.Digest || cell.Total != 1 || len(cell.Changes) != 1 {
		t.Errorf("a dry run of what must be confirmed says %+v", cell.Change)
	}
	x.ok(&cell, "POST", "/v1/cells/cell-003/drain?dry_run=true&confirm="+p.Digest, api.DrainRequest{Admit: 0})
	if len(cell.Causes) != 0 {
		t.Errorf("confirmed, and the dry run asks for %+v", cell.Causes)
	}
	x.ok(&cell, "POST", "/v1/cells/cell-003/drain?confirm="+p.Digest, api.DrainRequest{Admit: 0, Reason: "it's hot"})
	for i := range 3 {
		x.ok(&cell, "POST", fmt.Sprintf("/v1/cells/cell-%03d/undrain", i+1), api.DrainRequest{Admit: 100})
	}
	x.no(api.CodeInvalid, "POST", "/v1/cells/cell-001/undrain", api.DrainRequest{Admit: 50})
	x.no(api.CodeInUse, "POST", "/v1/cells/cell-001/retire", api.RetireRequest{}, matching(cellRevision(x, "cell-001"))...)
	x.no(api.CodeInUse, "PUT", "/v1/cells/cell-009", cellIn(1), create...) // an endpoint of cell-001
	x.ok(&cell, "PUT", "/v1/cells/cell-009", api.CellSettings{}, create...)
	x.no(api.CodePreconditionRequired, "POST", "/v1/cells/cell-009/retire", api.RetireRequest{})
	x.ok(&cell, "POST", "/v1/cells/cell-009/retire", api.RetireRequest{Reason: "never used"}, matching(cell.Revision)...)
	x.no(api.CodeExists, "PUT", "/v1/cells/cell-009", api.CellSettings{}, create...)
	x.no(api.CodeNotFound, "GET", "/v1/cells/cell-010", nil)
	x.ok(nil, "GET", "/v1/cells", nil)

	// The map.
	newest := settle(t, s)
	rec = x.ok(nil, "GET", "/v1/map/manifest", nil)
	if rec.Header().Get("X-Cellway-Map-Version") != newest.String() {
		t.Errorf("manifest of %s, the newest is %s", rec.Header().Get("X-Cellway-Map-Version"), newest)
	}
	if rec := x.do("GET", "/v1/map/manifest?timeout=1ms&after="+newest.String(), nil); rec.Code != http.StatusNoContent {
		t.Errorf("nothing newer: %d", rec.Code)
	}
	man := svc.Newest().Version.Manifest
	x.ok(nil, "GET", "/v1/map/parts/"+man.Base.Digest.String(), nil)
	x.ok(nil, "GET", "/v1/map/parts/"+man.Overlay.Digest.String(), nil)
	x.no(api.CodeNotFound, "GET", "/v1/map/parts/"+strings.Repeat("0", 64), nil)
	var versions api.Page[api.MapVersion]
	x.ok(&versions, "GET", "/v1/map/versions?limit=2", nil)
	if len(versions.Items) != 2 || versions.Items[0].Version != newest || versions.Next == "" {
		t.Errorf("versions %+v", versions)
	}
	x.ok(&versions, "GET", "/v1/map/versions?limit=1000&after="+versions.Next, nil)
	if last := versions.Items[len(versions.Items)-1]; last.Version != first || last.Change != "1" {
		t.Errorf("the oldest is %+v, want %s", last, first)
	}
	x.ok(nil, "GET", "/v1/map/versions/newest", nil)
	x.ok(nil, "GET", "/v1/map/versions/"+first.String(), nil)
	x.no(api.CodeNotFound, "GET", "/v1/map/versions/1.1", nil)
	x.no(api.CodeInvalid, "GET", "/v1/map/versions/first", nil)
	x.ok(nil, "GET", "/v1/map/content", nil)
	x.ok(nil, "GET", "/v1/map/content?version="+first.String(), nil)
	var diff api.MapDiff
	x.ok(&diff, "GET", "/v1/map/diff?from="+first.String(), nil)
	if diff.To != newest || diff.Total == 0 || diff.Total != len(diff.Changes) {
		t.Errorf("diff %+v", diff)
	}
	x.no(api.CodeInvalid, "GET", "/v1/map/diff", nil)
	x.no(api.CodeNotFound, "GET", "/v1/map/diff?from=1.1", nil)
	x.ok(nil, "GET", "/v1/explain?key=acme%2Feu", nil)
	x.ok(nil, "GET", "/v1/locate?key=acme", nil)
	var back api.RollbackChange
	x.ok(&back, "POST", "/v1/map/rollback?dry_run=true", api.RollbackRequest{Version: first})
	x.no(api.CodeNotFound, "POST", "/v1/map/rollback", api.RollbackRequest{Version: 7})
	x.ok(&back, "POST", "/v1/map/rollback", api.RollbackRequest{Version: first, Reason: "as it was"})

	// Routers.
	newest = settle(t, s)
	report := api.RouterReport{
		Fleet: "shop", Build: "v1", StartedAt: time.Now().UTC(), Listen: []string{":80"}, MapVersion: newest, MapDigest: svc.Newest().Version.Manifest.Digest().String(), SeenVersion: newest, IntervalMS: 5000,
		Refused: []api.RefusedMap{{Version: 3, Digest: strings.Repeat("0", 64), Reason: "map_fork", Message: "two", Count: 4, LastAt: time.Now().UTC()}},
		Cells:   []api.CellTraffic{{Cell: "cell-001", Requests: 10, TransportFailures: 1, Status5xx: 2, P99MS: 3.5, Tenants: []api.TenantTraffic{{Tenant: "acme", Requests: 9}}}},
	}
	var lease api.Lease
	x.ok(&lease, "POST", "/v1/routers/router-1", report)
	if lease.Version != newest || lease.LeaseMS != 30000 {
		t.Errorf("lease %+v", lease)
	}
	x.no(api.CodeInvalid, "POST", "/v1/routers/-", report)
	var router api.Router
	x.ok(&router, "GET", "/v1/routers/router-1", nil)
	if !router.Live || router.Behind || router.MapVersion != newest || len(router.Refused) != 1 || router.Refused[0].Reason != "map_fork" || len(router.Cells) != 1 || router.Cells[0].Tenants[0].Requests != 9 || router.IntervalMS != 5000 {
		t.Errorf("router %+v", router)
	}
	x.ok(nil, "GET", "/v1/routers", nil)
	x.no(api.CodeNotFound, "GET", "/v1/routers/router-2", nil)
	x.ok(nil, "DELETE", "/v1/routers/router-1?reason=gone", nil)
	x.no(api.CodeNotFound, "DELETE", "/v1/routers/router-1", nil)

	// Changes and the journal.
	var change api.ChangeStatus
	x.ok(&change, "GET", "/v1/changes/1", nil)
	if change.Version != first || change.Act != "buckets.assign buckets" || change.By != "local" {
		t.Errorf("change 1 is %+v", change)
	}
	x.no(api.CodeNotFound, "GET", "/v1/changes/99999", nil)
	x.no(api.CodeInvalid, "GET", "/v1/changes/one", nil)
	var journal api.Page[api.JournalEntry]
	x.ok(&journal, "GET", "/v1/journal?limit=2", nil)
	if len(journal.Items) != 2 || journal.Next != "2" {
		t.Errorf("journal %+v", journal)
	}
	x.ok(&journal, "GET", "/v1/journal?subject=cell/cell-003&after=2", nil)
	drained := false
	for _, e := range journal.Items {
		drained = drained || e.Act == "cell.drain" && e.Reason == "it's hot" && e.Change != "" && len(e.Before) > 0 && len(e.After) > 0
	}
	if !drained {
		t.Errorf("the journal does not tell of the drain: %+v", journal.Items)
	}
	x.no(api.CodeInvalid, "GET", "/v1/journal?after=first", nil)
	x.no(api.CodeInvalid, "GET", "/v1/journal?after=1&last=1", nil)
	x.ok(&journal, "GET", "/v1/journal?last=1", nil)
	if end, err := svc.JournalEnd(t.Context()); err != nil || len(journal.Items) != 1 || journal.Items[0].Number != end {
		t.Errorf("the last act is %+v, want number %d", journal.Items, end)
	}

	var alarms api.Page[api.Alarm]
	x.ok(&alarms, "GET", "/v1/alarms", nil)

	// The rest.
	x.ok(&tenant, "GET", "/v1/tenants/globex", nil)
	x.ok(nil, "DELETE", "/v1/tenants/globex?dry_run=true", nil, matching(tenant.Revision)...)
	x.ok(&tenant, "DELETE", "/v1/tenants/globex?reason=bye", nil, matching(tenant.Revision)...)
	if !tenant.Deleted {
		t.Errorf("deleted: %+v", tenant)
	}
	x.no(api.CodeConflict, "POST", "/v1/tenants/globex/undelete", api.UndeleteRequest{}, matching(tenant.Revision+1)...)
	x.ok(&tenant, "POST", "/v1/tenants/globex/undelete", api.UndeleteRequest{Reason: "by mistake"}, matching(tenant.Revision)...)
	if tenant.Deleted || tenant.Cell == "" {
		t.Errorf("undeleted: %+v", tenant)
	}
	x.workers()
	x.ok(nil, "GET", "/", nil)
	x.ok(nil, "GET", "/livez", nil)
	x.ok(nil, "GET", "/readyz", nil)
	x.ok(nil, "GET", "/metrics", nil)
	x.ok(nil, "GET", "/v1/openapi.yaml", nil)
	x.ok(nil, "GET", "/v1/backup", nil)
	x.no(api.CodeInvalid, "POST", "/v1/restore/confirm", api.RestoreConfirmation{Version: newest, Digest: strings.Repeat("0", 64)})
	x.ok(nil, "GET", "/v1/tokens", nil)
	x.no(api.CodeInvalid, "POST", "/v1/tokens", api.TokenCreation{Name: "r", Role: "router"})
	var dry api.NewToken
	x.ok(&dry, "POST", "/v1/tokens?dry_run=true", api.TokenCreation{Name: "alice", Role: api.RoleAdmin})
	if dry.Secret != "" {
		t.Error("a dry run tells a secret")
	}
	var token, other api.NewToken
	x.ok(&token, "POST", "/v1/tokens", api.TokenCreation{Name: "alice", Role: api.RoleAdmin})
	bearer := []string{"Authorization", "Bearer " + token.Secret}
	x.no(api.CodeUnauthenticated, "GET", "/v1/tokens", nil)
	x.ok(&other, "POST", "/v1/tokens", api.TokenCreation{Name: "bob", Role: api.RoleViewer, ExpiresAt: time.Now().Add(time.Hour).UTC()}, bearer...)
	x.no(api.CodeForbidden, "GET", "/v1/tokens", nil, "Authorization", "Bearer "+other.Secret)
	x.no(api.CodeInUse, "DELETE", "/v1/tokens/"+token.ID, nil, bearer...)
	x.ok(nil, "DELETE", "/v1/tokens/"+other.ID, nil, bearer...)
	x.no(api.CodeNotFound, "DELETE", "/v1/tokens/"+other.ID, nil, bearer...)
	s.Stop()
	x.no(api.CodeNotReady, "GET", "/readyz", nil)

	for pattern, op := range operations(document(t)) {
		good := false
		for status := range x.seen[op.OperationID] {
			good = good || status < 300
		}
		// A confirmation needs a restore; that is another test's.
		if !good && op.OperationID != "confirmRestore" {
			t.Errorf("the session does not use %s", pattern)
		}
	}
}

func cellRevision(x *session, id string) cellway.Revision {
	var c api.Cell
	x.ok(&c, "GET", "/v1/cells/"+id, nil)
	return c.Revision
}

// settle waits until all that was accepted is published, and returns the
// version.
func settle(t testing.TB, s *Server) cellway.Version {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		p := s.service.Newest()
		if _, err := s.service.LoggedChange(ctx, p.Seq+1); err != nil {
			return p.Map.Version()
		}
		if _, err := s.service.Await(ctx, p.Map.Version()); err != nil {
			t.Fatal(err)
		}
	}
}
