package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/cellway/cellway/api"
)

// Who says where the control plane is needs no folder for settings, as a job of
// the system has none, and no contexts that can be read.
func TestContextsThatNobodyNamesAreInNobodysWay(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(status)
			w.Write([]byte(`{"code": "unauthenticated", "status": 401, "detail": "no token"}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"items": []}`))
	}))
	defer s.Close()
	broken := t.TempDir() + "/config.yaml"
	if err := os.WriteFile(broken, []byte("contexts: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "CELLWAY_URL", "CELLWAY_CONTEXT"} {
		t.Setenv(name, "")
	}
	for _, tt := range []struct {
		file, args string
		status     int
		code       int
		want       string // on standard error
	}{
		{"", "alias list --url " + s.URL, 200, exitOK, "no alias"},
		{"", "context list", 200, exitOK, "no context yet"},
		{"", "alias list --context prod", 200, exitNotFound, `--context is "prod": not found; there are none`},
		{"", "context set prod --url " + s.URL, 200, exitFailed, "name a file with CELLWAY_CONFIG"},
		{broken, "alias list --url " + s.URL, 200, exitOK, "no alias"},
		{broken, "alias list --url " + s.URL, 401, exitForbidden, "the contexts were left aside: contexts in " + broken},
		{broken, "alias list --url " + s.URL + " --context prod", 200, exitFailed, "contexts in " + broken},
		{broken, "alias list", 200, exitFailed, "contexts in " + broken},
		{broken, "context list", 200, exitFailed, "contexts in " + broken},
	} {
		t.Setenv("CELLWAY_CONFIG", tt.file)
		status = tt.status
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields("cellway "+tt.args), strings.NewReader(""), &stdout, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q %s: code %d, %s; want %d, %s", tt.file, tt.args, code, stderr.String(), tt.code, tt.want)
		}
	}
}
