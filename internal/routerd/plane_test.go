package routerd

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/serving/servingtest"
	"github.com/cellway/cellway/internal/telemetry"
)

func nopLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A plane is what of a control plane a router talks to, over the fleet's folder
// of maps.
type plane struct {
	*httptest.Server
	mu      sync.Mutex
	reports []api.RouterReport
	tokens  map[string]bool
}

func (f *fleet) plane() *plane {
	p := &plane{tokens: map[string]bool{}}
	mux := http.NewServeMux()
	file := func(w http.ResponseWriter, r *http.Request, name string) {
		b, err := os.ReadFile(name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}
	mux.HandleFunc("GET /v1/map/manifest", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") != "" {
			time.Sleep(20 * time.Millisecond) // there is never a newer one
			w.WriteHeader(http.StatusNoContent)
			return
		}
		file(w, r, f.path("maps/"+feed.FolderManifest))
	})
	mux.HandleFunc("GET /v1/map/parts/{digest}", func(w http.ResponseWriter, r *http.Request) {
		file(w, r, filepath.Join(f.path("maps/"+feed.FolderParts), filepath.Base(r.PathValue("digest"))))
	})
	mux.HandleFunc("POST /v1/routers/{id}", func(w http.ResponseWriter, r *http.Request) {
		var report api.RouterReport
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reports = append(p.reports, report)
		p.tokens[r.Header.Get("Authorization")] = true
		_ = json.NewEncoder(w).Encode(api.Lease{LeaseMS: 30000, Version: report.MapVersion})
	})
	p.Server = httptest.NewServer(mux)
	f.t.Cleanup(p.Close)
	return p
}

func TestRouterOfAControlPlane(t *testing.T) {
	f := newFleet(t)
	control := f.plane()
	f.write("token", []byte("secret\n"))
	p := f.start(f.args("--source", "", "--source", control.URL, "--source-token", f.path("token"), "--router-id", "router-7")...)
	p.Ready()
	for range 3 {
		p.wantCell("acme", "cell-001")
	}
	p.wantCell("globex", "cell-002")
	var r api.RouterReport
	p.Eventually("a report", func() error {
		control.mu.Lock()
		defer control.mu.Unlock()
		if n := len(control.reports); n > 0 {
			r = control.reports[n-1]
		}
		if r.MapVersion == 0 {
			return fmt.Errorf("%d reports", len(control.reports))
		}
		return nil
	})
	if r.Fleet != "shop" || r.MapVersion != f.version || len(r.Listen) != 1 || !strings.Contains(r.Build, "go1.") || r.Leaving {
		t.Errorf("reported %+v", r)
	}
	if st := p.mapStatus(); st.Reports == nil || st.Reports.Sent == 0 || st.Router.ID != "router-7" {
		t.Errorf("the status says of reports: %+v", st.Reports)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	control.mu.Lock()
	defer control.mu.Unlock()
	if !control.reports[len(control.reports)-1].Leaving {
		t.Error("the last report does not say that the router goes")
	}
	if len(control.tokens) != 1 || !control.tokens["Bearer secret"] {
		t.Errorf("the tokens that were shown are %v", control.tokens)
	}
}

// What one report after the other says of the cells adds up.
func TestTrafficOfCells(t *testing.T) {
	f := newFleet(t)
	s, err := parse(f.args(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(s, serving.NewDaemon(&s.Settings, telemetry.Build{Version: "test"}, nil, nopLog()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(d.Log); err != nil {
			t.Error(err)
		}
	}()
	if err := d.rt.Swap(f.last); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(d.rt)
	defer front.Close()
	p := process{&servingtest.Process{T: t, Listen: []string{front.URL}}}
	cells := traffic{rt: d.rt}
	requests := func() map[string]int64 {
		t.Helper()
		got := map[string]int64{}
		for _, c := range cells.take() {
			got[string(c.Cell)] = c.Requests
			for _, tenant := range c.Tenants {
				got[string(tenant.Tenant)] = tenant.Requests
			}
			if c.Requests > 0 && c.P99MS <= 0 {
				t.Errorf("%s: p99 is %v ms", c.Cell, c.P99MS)
			}
		}
		return got
	}
	for range 3 {
		p.wantCell("acme", "cell-001")
	}
	p.wantCell("globex", "cell-002")
	if got := requests(); got["cell-001"] != 3 || got["acme"] != 3 || got["cell-002"] != 1 || got["globex"] != 1 {
		t.Errorf("first %v", got)
	}
	p.wantCell("globex", "cell-002")
	if got := requests(); got["cell-001"] != 0 || got["acme"] != 0 || got["cell-002"] != 1 || got["globex"] != 1 {
		t.Errorf("then %v", got)
	}
	f.cells[0].Close()
	if status, _ := p.get(front.URL, "acme"); status < 500 {
		t.Errorf("a dead cell: %d", status)
	}
	for _, c := range cells.take() {
		if want := int64(map[string]int{"cell-001": 1}[string(c.Cell)]); c.TransportFailures != want {
			t.Errorf("%s: %d transport failures, want %d", c.Cell, c.TransportFailures, want)
		}
		if c.Breaker != "closed" || c.RefusedOpen != 0 || c.Mismatches != 0 {
			t.Errorf("after one failure: %+v", c)
		}
	}
	// Once the breaker has opened, what is not even tried is told too.
	const more = 20
	for range more {
		p.get(front.URL, "acme")
	}
	for _, c := range cells.take() {
		if c.Cell == "cell-001" && (c.Breaker == "closed" || c.RefusedOpen == 0 || c.TransportFailures+c.RefusedOpen != more || c.Requests != more) {
			t.Errorf("behind a breaker: %+v", c)
		}
	}
	// And what a guard refuses, which is an answer of the cell.
	f.refuse.Store(true)
	for range 3 {
		if status, body := p.get(front.URL, "globex"); status != http.StatusServiceUnavailable || !strings.Contains(body, string(cellway.CellMismatch)) {
			t.Errorf("a refusing guard: %d %s", status, body)
		}
	}
	for range 2 { // told once
		for _, c := range cells.take() {
			if c.Cell == "cell-002" && (c.Mismatches != want(c.Requests, 3) || c.TransportFailures != 0 || c.Breaker != "closed") {
				t.Errorf("behind a guard: %+v", c)
			}
		}
	}
}

// want is n, if there was anything at all.
func want(requests, n int64) int64 { return min(requests, n) }

func TestWithoutAMapIsSaidWhy(t *testing.T) {
	f := newFleet(t)
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer control.Close()
	p := f.start(f.args("--source", "", "--source", control.URL)...)
	p.Eventually("the reason", func() error {
		status, body := p.get(p.Admin+"/readyz", "")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "there is no map yet; GET "+control.URL) || !strings.Contains(body, "401 Unauthorized") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}
