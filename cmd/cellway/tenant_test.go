package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// What went is told though the rest was refused, to programs too.
func TestDeletionsThatAreRefusedHalfWayTellWhatWent(t *testing.T) {
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/contexts.yaml")
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := cellway.TenantID(strings.TrimPrefix(r.URL.Path, "/v1/tenants/"))
		if r.Method == http.MethodDelete {
			asked = append(asked, string(id)+" "+r.URL.Query().Get("wait"))
			if id == "beta" {
				w.Header().Set("Content-Type", api.ProblemType)
				w.WriteHeader(412)
				json.NewEncoder(w).Encode(api.Problem{Code: api.CodeConflict, Status: 412, Detail: "tenant beta was changed"})
				return
			}
		}
		json.NewEncoder(w).Encode(api.Tenant{ID: id, Cell: "cell-001", Revision: 1, Deleted: r.Method == http.MethodDelete})
	}))
	defer s.Close()
	for _, output := range []string{"json", "table"} {
		asked = nil
		var stdout, stderr bytes.Buffer
		args := strings.Fields("cellway tenant delete acme beta gamma --yes --wait routers -o " + output + " --url " + s.URL)
		code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if code != exitRefused || !strings.Contains(stdout.String(), "acme") || strings.Contains(stdout.String(), "beta") || !strings.Contains(stderr.String(), "1 of 3 are deleted; tenant beta was changed") {
			t.Errorf("%s: code %d, %s%s", output, code, stdout.String(), stderr.String())
		}
		if want := []string{"acme ", "beta "}; !slices.Equal(asked, want) {
			t.Errorf("%s: asked for %q, want %q", output, asked, want)
		}
		var all []api.TenantChange
		if err := json.Unmarshal(stdout.Bytes(), &all); output == "json" && (err != nil || len(all) != 1) {
			t.Errorf("%v: %s", err, stdout.String())
		}
	}
}
