package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

func TestErrorsBecomeStatuses(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{cellway.ErrInvalid, 400, api.CodeInvalid},
		{cellway.ErrNotFound, 404, api.CodeNotFound},
		{cellway.ErrExists, 409, api.CodeExists},
		{cellway.ErrConflict, 412, api.CodeConflict},
		{cellway.ErrNeedsMove, 409, api.CodeNeedsMove},
		{&control.GateError{Causes: []routemap.Cause{{Name: "x"}}}, 409, api.CodeGate},
		{cellway.ErrNoRoom, 409, api.CodeNoRoom},
		{cellway.ErrInUse, 409, api.CodeInUse},
		{cellway.ErrNotReady, 503, api.CodeNotReady},
		{cellway.ErrForbidden, 403, api.CodeForbidden},
		{cellway.ErrStoreDown, 503, api.CodeStoreDown},
		{routemap.ErrOverlayFull, 503, api.CodeNotReady},
		{errors.New("disk on fire"), 500, api.CodeInternal},
		// The more telling one counts.
		{fmt.Errorf("%w, %w", cellway.ErrNotFound, cellway.ErrStoreDown), 503, api.CodeStoreDown},
		{fmt.Errorf("no room; %w", cellway.ErrNeedsMove), 409, api.CodeNeedsMove},
	} {
		p, fault := problem(fmt.Errorf("tenant acme: %w", tt.err))
		if p.Status != tt.status || p.Code != tt.code || fault != (tt.code == api.CodeInternal) {
			t.Errorf("%v: %d %s, fault %t; want %d %s", tt.err, p.Status, p.Code, fault, tt.status, tt.code)
		}
		if fault && strings.Contains(p.Detail, "fire") {
			t.Errorf("the caller is told of a fault: %s", p.Detail)
		}
	}
}

// Every code has a row, and every row is one that the document lists.
func TestEveryCodeIsDocumented(t *testing.T) {
	text := string(api.OpenAPI())
	for _, row := range statuses {
		if !strings.Contains(text, row.code) && row.code != api.CodeMethodNotAllowed {
			t.Errorf("openapi.yaml does not know the code %s", row.code)
		}
	}
}

func TestFaultsAreLoggedOnceAndNotTold(t *testing.T) {
	var log strings.Builder
	s, _ := newServer(t)
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	rec := httptest.NewRecorder()
	r := local("GET", "/v1/cells", nil)
	r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, "req-1"))
	s.refuse(rec, r, errors.New("disk on fire"))
	if rec.Code != 500 || strings.Contains(rec.Body.String(), "fire") || !strings.Contains(rec.Body.String(), "req-1") {
		t.Errorf("the caller gets %d %s", rec.Code, rec.Body)
	}
	if n := strings.Count(log.String(), "disk on fire"); n != 1 || !strings.Contains(log.String(), "request_id=req-1") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	s, _ := newServer(t)
	mux := http.NewServeMux()
	mux.Handle("GET /v1/cells", s.serve(route{"GET /v1/cells", nil, func(*Server, *request) (*answer, error) { panic("at the disco") }}))
	s.handler = s.guarded(mux)
	refused(t, s, 500, api.CodeInternal, "GET", "/v1/cells", nil)
}

func TestNowhereIsAProblemToo(t *testing.T) {
	s, _ := newServer(t)
	refused(t, s, 404, api.CodeNotFound, "GET", "/v2/cells", nil)
	refused(t, s, 404, api.CodeNotFound, "GET", "/v1", nil)
	rec := ask(t, s, "PATCH", "/v1/cells/cell-001", nil)
	if allow := rec.Header().Get("Allow"); rec.Code != 405 || allow != "GET, HEAD, PUT" {
		t.Errorf("%d, Allow %q", rec.Code, allow)
	}
	refused(t, s, 405, api.CodeMethodNotAllowed, "PATCH", "/v1/cells/cell-001", nil)
}

func TestRequestsThatSayTooMuchOrTooLittleAreRefused(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 1)
	json := []string{"Content-Type", "application/json", "If-None-Match", "*"}
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		code, say          string
	}{
		"unknown field":         {"PUT", "/v1/cells/cell-009", `{"endpoint":"x"}`, json, 400, api.CodeInvalid, `unknown field "endpoint"`},
		"another type":          {"PUT", "/v1/cells/cell-009", `{"endpoints":"x"}`, json, 400, api.CodeInvalid, "endpoints"},
		"admit is not settable": {"PUT", "/v1/cells/cell-009", `{"admit":50}`, json, 400, api.CodeInvalid, `"admit"`},
		"two values":            {"PUT", "/v1/cells/cell-009", `{} {}`, json, 400, api.CodeInvalid, "something follows"},
		"no JSON":               {"PUT", "/v1/cells/cell-009", `nope`, json, 400, api.CodeInvalid, "body"},
		"no body":               {"PUT", "/v1/cells/cell-009", ``, json, 400, api.CodeInvalid, "body"},
		"another media type":    {"PUT", "/v1/cells/cell-009", `{}`, []string{"Content-Type", "text/plain"}, 415, api.CodeUnsupportedMedia, "application/json"},
		"too large":             {"PUT", "/v1/cells/cell-009", `{"title":"` + strings.Repeat("x", maxBody) + `"}`, json, 413, api.CodeBodyTooLarge, "at most"},
		"unknown parameter":     {"GET", "/v1/cells?limits=5", ``, nil, 400, api.CodeInvalid, `"limits" is unknown here; known are after, limit`},
		"misspelt dry run":      {"POST", "/v1/cells/cell-001/drain?dry-run=true", `{"admit":0}`, json, 400, api.CodeInvalid, `"dry-run" is unknown here`},
		"given twice":           {"GET", "/v1/cells?limit=5&limit=6", ``, nil, 400, api.CodeInvalid, "given 2 times"},
		"limit":                 {"GET", "/v1/cells?limit=0", ``, nil, 400, api.CodeInvalid, "1 to 1000"},
		"flag":                  {"POST", "/v1/cells/cell-001/drain?dry_run=yes", `{"admit":0}`, json, 400, api.CodeInvalid, "true or false"},
		"wait":                  {"POST", "/v1/cells/cell-001/drain?wait=all", `{"admit":0}`, json, 400, api.CodeInvalid, "only routers"},
		"timeout":               {"POST", "/v1/cells/cell-001/drain?wait=routers&timeout=1h", `{"admit":0}`, json, 400, api.CodeInvalid, "at most 5m"},
		"confirm":               {"POST", "/v1/cells/cell-001/drain?confirm=" + strings.Repeat("ab", 40), `{"admit":0}`, json, 400, api.CodeInvalid, "64 hexadecimal"},
		"no If-Match":           {"PUT", "/v1/cells/cell-001", `{}`, []string{"Content-Type", "application/json"}, 428, api.CodePreconditionRequired, "If-Match"},
		"weak ETag":             {"PUT", "/v1/cells/cell-001", `{}`, []string{"Content-Type", "application/json", "If-Match", `W/"1"`}, 400, api.CodeInvalid, "as it was read"},
		"If-Match any":          {"PUT", "/v1/cells/cell-001", `{}`, []string{"Content-Type", "application/json", "If-Match", `*`}, 400, api.CodeInvalid, "as it was read"},
		"both":                  {"PUT", "/v1/cells/cell-001", `{}`, []string{"Content-Type", "application/json", "If-Match", `"1"`, "If-None-Match", "*"}, 400, api.CodeInvalid, "not both"},
		"delete what is not":    {"DELETE", "/v1/tenants/acme", ``, []string{"If-None-Match", "*"}, 428, api.CodePreconditionRequired, "If-Match"},
		"no idempotency key":    {"POST", "/v1/tenants", `{"id":"acme"}`, []string{"Content-Type", "application/json"}, 428, api.CodePreconditionRequired, "Idempotency-Key"},
		"odd idempotency key":   {"POST", "/v1/tenants", `{"id":"acme"}`, []string{"Content-Type", "application/json", "Idempotency-Key", "a b"}, 400, api.CodeInvalid, "Idempotency-Key"},
		"bad cell":              {"GET", "/v1/cells/Cell", ``, nil, 400, api.CodeInvalid, "lower-case letter"},
		"bad tenant":            {"GET", "/v1/tenants/a%20b", ``, nil, 400, api.CodeInvalid, "byte ' '"},
		"bad key":               {"GET", "/v1/explain?key=a%2Fb%2Fc", ``, nil, 400, api.CodeInvalid, "part"},
		"no key":                {"GET", "/v1/locate", ``, nil, 400, api.CodeInvalid, "empty"},
		"bad version":           {"GET", "/v1/map/content?version=new", ``, nil, 400, api.CodeInvalid, "incarnation.sequence"},
		"bad digest":            {"GET", "/v1/map/parts/abc", ``, nil, 400, api.CodeInvalid, "64 hexadecimal"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			r.Host = "localhost"
			for i := 0; i < len(tt.headers); i += 2 {
				r.Header.Set(tt.headers[i], tt.headers[i+1])
			}
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, r)
			plainlySaid(t, tt.method+" "+tt.path, rec)
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), `"code":"`+tt.code+`"`) || !strings.Contains(strings.ReplaceAll(rec.Body.String(), `\"`, `"`), tt.say) {
				t.Errorf("%d %s, want %d %s that says %q", rec.Code, rec.Body, tt.status, tt.code, tt.say)
			}
		})
	}
	// Nothing of that did anything.
	var c api.Cell
	must(t, s, &c, "GET", "/v1/cells/cell-001", nil)
	if c.Admit != 100 || c.Revision != 1 {
		t.Errorf("cell-001 is %+v", c)
	}
}

func TestRequestIDsOfCallersAreKeptIfTheyArePlain(t *testing.T) {
	s, _ := newServer(t)
	for id, kept := range map[string]bool{"trace-1:a.b_c": true, "": false, "a b": false, "<script>": false, strings.Repeat("x", 65): false} {
		got := ask(t, s, "GET", "/livez", nil, "X-Request-Id", id).Header().Get("X-Request-Id")
		if (got == id) != kept || got == "" {
			t.Errorf("id %q came back as %q", id, got)
		}
	}
}

func FuzzParseETag(f *testing.F) {
	for _, s := range []string{`"7"`, `W/"7"`, `""`, `"`, `"-1"`, `"99999999999999999999"`, ` "3" `, `"1","2"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rev, ok := parseETag(s)
		if again, sure := parseETag(etag(rev)); ok && (!sure || again != rev) {
			t.Errorf("%q is %d, written %s, read again %d", s, rev, etag(rev), again)
		}
	})
}
