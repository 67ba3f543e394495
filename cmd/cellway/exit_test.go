package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellway/cellway/api"
)

// 7 is for what nobody did. A store that failed under a write may have kept it.
func TestAWriteWhoseStoreFailedIsNotToldAsUndone(t *testing.T) {
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/contexts.yaml")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.ProblemType)
		w.WriteHeader(503)
		io.WriteString(w, `{"code":"store_down","title":"store not usable","status":503,"detail":"the disk is full"}`)
	}))
	defer s.Close()
	for _, tt := range []struct {
		args string
		code int
		says bool
	}{
		{"drain cell-001", exitFailed, true}, {"drain cell-001 --dry-run", exitUnavailable, false}, {"cell list", exitUnavailable, false},
	} {
		var stderr bytes.Buffer
		code := run(context.Background(), append(strings.Fields(tt.args), "--url", s.URL), strings.NewReader(""), io.Discard, &stderr)
		if code != tt.code || strings.Contains(stderr.String(), "it may have been done all the same") != tt.says {
			t.Errorf("%s: code %d, %s", tt.args, code, stderr.String())
		}
	}
}
