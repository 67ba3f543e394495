package routerd

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A source without a map that can be used is told of, and is no reason not to start. It
// is not waited for longer than a start may take.
func TestACheckTellsOfSourcesWithoutAMap(t *testing.T) {
	f := newFleet(t)
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(over)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer page.Close()
	for want, args := range map[string][]string{
		"": nil,
		"warning: source: " + f.path("none") + ": there is no map to use now: no such file or directory\n": {"--source", f.path("none")},
		"no answer within 2s\n": {"--source", hangs.URL},
		"map format broken\n":   {"--source", page.URL},
		`is of fleet "`:         {"--fleet", "another"},
	} {
		var out bytes.Buffer
		begun := time.Now()
		if err := Run(t.Context(), f.args(append(args, "--check")...), &out, io.Discard); err != nil || time.Since(begun) > 10*time.Second {
			t.Errorf("%v: %v after %v", args, err, time.Since(begun))
		}
		if got := out.String(); !strings.HasSuffix(got, "ok\n") || !strings.Contains(got, want) || want == "" && got != "ok\n" {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
}
