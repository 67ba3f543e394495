package cellhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client/cellhttp"
)

// That no cell can be learned is in the log once for each cause, and so is the end
// of it; the figures tell what went where.
func TestWhyCellsCantBeLearnedIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		var log bytes.Buffer
		var refuse error
		rt := f.transport(cellhttp.Config{Router: "http://router:80", Log: slog.New(slog.NewTextHandler(&log, nil)),
			Locate: func(ctx context.Context, key cellway.Key) (api.Location, error) {
				if refuse != nil {
					return api.Location{}, fmt.Errorf("GET /v1/locate?key=%s: %w", key, refuse)
				}
				return f.locate(ctx, key)
			}})
		round := func(name string) {
			t.Helper()
			for i := range 50 {
				if code, _, err := do(rt, http.MethodGet, fmt.Sprint(name, i), ""); code != 200 || err != nil {
					t.Fatal(code, err)
				}
				time.Sleep(time.Second)
			}
		}
		told := func(message, and string) (n int) {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, message) && strings.Contains(line, and) {
					n++
				}
			}
			return n
		}
		refuse = errors.New("not authenticated")
		round("a")
		refuse = errors.New("connection refused")
		round("b")
		s := rt.Stats()
		if s.Direct != 0 || s.Routed != 100 || s.Asked == 0 || s.Failed != s.Asked || s.Trouble == nil {
			t.Errorf("figures: %+v", s)
		}
		for _, cause := range []string{"not authenticated", "connection refused"} {
			if n := told("cells of keys can't be learned", cause); n != 1 {
				t.Errorf("%s is told %d times\n%s", cause, n, log.String())
			}
		}
		time.Sleep(5 * time.Second)
		refuse = nil
		do(rt, http.MethodGet, "nobody", "") // not known: an answer of the control plane
		round("c")
		if s := rt.Stats(); s.Direct != 50 || s.Routed != 101 || s.Trouble != nil {
			t.Errorf("figures: %+v", s)
		}
		if n := told("cells of keys can be learned again", ""); n != 1 {
			t.Errorf("the end is told %d times\n%s", n, log.String())
		}
	})
}

// A router that names no cell teaches nothing.
func TestARouterThatNamesNoCellIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.serve("mute", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") })
		for router, tt := range map[string]struct {
			endpoints func(cellway.CellID) []string
			want      string
		}{
			"mute":   {endpoints, "--explain-headers"},
			"router": {func(cellway.CellID) []string { return nil }, "Config.Endpoints knows none"},
		} {
			var log bytes.Buffer
			rt := f.transport(cellhttp.Config{Router: "http://" + router + ":80", Endpoints: tt.endpoints, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for range 5 {
				do(rt, http.MethodGet, "acme", "")
			}
			if s := rt.Stats(); s.Direct != 0 || s.Routed != 5 || s.Trouble == nil {
				t.Errorf("%s: figures: %+v", router, s)
			}
			if strings.Count(log.String(), tt.want) != 1 {
				t.Errorf("%s: told\n%s", router, log.String())
			}
		}
	})
}
