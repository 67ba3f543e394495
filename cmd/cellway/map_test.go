package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What another program answers is shown as far as it goes.
func TestVersionsWithoutADigestAreListed(t *testing.T) {
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/contexts.yaml")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"items": [{"version": "1.2", "digest": "", "parent": "1.1"}, {"version": "1.1", "base_digest": "abc"}]}`))
	}))
	defer s.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"cellway", "map", "versions", "-o", "wide", "--url", s.URL}, strings.NewReader(""), &stdout, &stderr)
	if code != exitOK || !strings.Contains(stdout.String(), "1.2") || !strings.Contains(stdout.String(), "abc") {
		t.Errorf("code %d, %s%s", code, stdout.String(), stderr.String())
	}
}
