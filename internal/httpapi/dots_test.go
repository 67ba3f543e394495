package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// Names of dots alone are good names: their dots are escaped in a path, and then
// everything can be done with them, through a real server and client too.
func TestNamesOfDotsAreReachedByEscapedDots(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	srv := httptest.NewServer(s)
	defer srv.Close()
	do := func(want int, out any, method, path string, in any, headers ...string) *http.Response {
		t.Helper()
		var body io.Reader
		if in != nil {
			text, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			body = bytes.NewReader(text)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if in != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s %s: %d %s %v, want %d", method, path, resp.StatusCode, text, err, want)
		}
		if out != nil {
			if err := json.Unmarshal(text, out); err != nil {
				t.Fatalf("%s %s: %v: %s", method, path, err, text)
			}
		}
		return resp
	}
	for _, id := range []cellway.TenantID{".", ".."} {
		path := strings.ReplaceAll(string(id), ".", "%2E")
		var tenant api.TenantChange
		resp := do(201, &tenant, "POST", "/v1/tenants", api.TenantCreation{ID: id}, "Idempotency-Key", "sign-up-"+string(id))
		if got := resp.Header.Get("Location"); got != "/v1/tenants/"+path {
			t.Errorf("tenant %s is at %s", id, got)
		}
		do(200, &tenant, "GET", resp.Header.Get("Location"), nil)
		if tenant.ID != id {
			t.Errorf("at the place of %s is %s", id, tenant.ID)
		}
		do(200, &tenant, "PUT", "/v1/tenants/"+strings.ToLower(path), api.TenantSettings{Tier: "gold"}, matching(tenant.Revision)...)
		o := api.OverrideSettings{Kind: cellway.Test, Cell: tenant.Cell, By: "alice", Reason: "dots", ReviewBy: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)}
		var override api.OverrideChange
		do(201, &override, "PUT", "/v1/overrides/"+path+"/%2E%2E", o, create...)
		if override.Key != cellway.Key(id)+"/.." {
			t.Errorf("the override is of %s", override.Key)
		}
		do(200, nil, "DELETE", "/v1/overrides/"+path+"/%2E%2E", nil, matching(override.Revision)...)
		do(200, nil, "GET", "/v1/explain?key="+string(id), nil)
		do(200, nil, "DELETE", "/v1/tenants/"+path, nil, matching(tenant.Revision)...)
	}
}

// A path with plain dots is another path to whoever cleans it: nobody is sent
// there, where the same request would do something else.
func TestPathsThatOthersReadOtherwiseAreRefused(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	for _, path := range []string{"/v1/overrides/acme/.", "/v1/overrides/acme/..", "/v1/tenants/.", "/v1/tenants/..", "/v1/cells/../tenants/acme", "/v1//tenants/acme", "//v1/tenants/acme"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			p := refused(t, s, 400, api.CodeInvalid, method, path, nil)
			if !strings.Contains(p.Detail, "%2E") {
				t.Errorf("%s %s: %s", method, path, p.Detail)
			}
		}
	}
}
