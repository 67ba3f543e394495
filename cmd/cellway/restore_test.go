package main

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

// A plane is the part of a control plane that a restore is confirmed with.
type plane struct {
	status    []api.MapStatus // one an answer; the last one stays
	confirmed *api.RestoreConfirmation
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "r1")
	switch r.URL.Path {
	case "/v1/map":
		json.NewEncoder(w).Encode(p.status[0])
		if len(p.status) > 1 {
			p.status = p.status[1:]
		}
	case "/v1/routers":
		io.WriteString(w, `{"items":[]}`)
	case "/v1/restore/confirm":
		p.confirmed = &api.RestoreConfirmation{}
		json.NewDecoder(r.Body).Decode(p.confirmed)
		w.WriteHeader(http.StatusNoContent)
	}
}

// confirm runs cellway restore confirm at p.
func (p *plane) confirm(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	srv := httptest.NewServer(p)
	defer srv.Close()
	var b bytes.Buffer
	code = run(t.Context(), append([]string{"cellway", "restore", "confirm", "--url", srv.URL}, args...), strings.NewReader(""), &b, &b)
	return code, b.String()
}

func waiting(highest cellway.Version, ready int, unheard ...string) api.MapStatus {
	return api.MapStatus{Fleet: "shop", Version: 5, Restore: &api.RestoreState{From: "copy.db", Version: 5, Highest: highest, HighestDigest: "aa", ReadyInSeconds: ready, Unheard: unheard}}
}

// What is confirmed after a wait is what was reported by then.
func TestConfirmWaitsForRoutersToReport(t *testing.T) {
	p := &plane{status: []api.MapStatus{waiting(5, 1, "router r1"), waiting(9, 0)}}
	code, out := p.confirm(t, "--wait", "routers", "--yes")
	if code != exitOK || p.confirmed == nil || p.confirmed.Version != 9 || p.confirmed.LoseNewerMaps {
		t.Errorf("ends with %d, has confirmed %+v:\n%s", code, p.confirmed, out)
	}
}

func TestConfirmIsRefusedWhileRoutersMayReport(t *testing.T) {
	p := &plane{status: []api.MapStatus{waiting(5, 28, "router r1", "directory /maps")}}
	code, out := p.confirm(t, "--yes")
	if code != exitUnavailable || p.confirmed != nil || !strings.Contains(out, "28s more to report (not heard of yet: router r1, directory /maps)") || !strings.Contains(out, "--lose-newer-maps") {
		t.Errorf("ends with %d, has confirmed %+v:\n%s", code, p.confirmed, out)
	}
	code, out = p.confirm(t, "--yes", "--lose-newer-maps")
	if code != exitOK || p.confirmed == nil || !p.confirmed.LoseNewerMaps {
		t.Errorf("ends with %d, has confirmed %+v:\n%s", code, p.confirmed, out)
	}
}

// Only what all who are known have told is the newest of all.
func TestNoMapIsCalledTheNewestOfAllWhileSomebodyMayHaveANewerOne(t *testing.T) {
	for name, tt := range map[string]struct {
		ready   int
		unheard []string
		live    int
		says    string
	}{
		"there is time to report":  {20, nil, 1, "so far"},
		"one was not heard of":     {0, []string{"router r1"}, 1, "that was heard of"},
		"no router is live":        {0, nil, 0, "that is known"},
		"all are live and told it": {0, nil, 2, "of all"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tellRestore(*waiting(5, tt.ready, tt.unheard...).Restore, tt.live)
			if !strings.Contains(got, "the newest map "+tt.says+" is 0.5") {
				t.Errorf("says %s", got)
			}
		})
	}
}

// A map that was undone is told with what to do, and seen by naming it.
func TestAMapThatWasUndoneIsSeen(t *testing.T) {
	s := api.MapStatus{Fleet: "shop", Version: 12, Undone: &api.UndoneMap{At: time.Now(), Who: "router r1", Version: 9, Digest: "bb", From: 5}}
	p := &plane{status: []api.MapStatus{s}}
	for _, args := range [][]string{nil, {"--dry-run"}} {
		code, out := p.confirm(t, args...)
		if code == exitOK != (args != nil) || p.confirmed != nil || !strings.Contains(out, "router r1 had map 0.9 when the control plane had gone on from 0.5") || !strings.Contains(out, "enter it again") {
			t.Errorf("%v: ends with %d, has confirmed %+v:\n%s", args, code, p.confirmed, out)
		}
	}
	code, out := p.confirm(t, "--yes", "-o", "json")
	if code != exitOK || p.confirmed == nil || p.confirmed.Version != 9 || p.confirmed.Digest != "bb" || !strings.Contains(out, `"undone": true`) {
		t.Errorf("ends with %d, has confirmed %+v:\n%s", code, p.confirmed, out)
	}
}

func TestTheNextCommandTowardsTheFirstMap(t *testing.T) {
	here := []string{"http://10.0.0.1:8080"}
	one := func(state cellway.CellState, admit uint8, endpoints ...string) []api.Cell {
		c := api.Cell{ID: "a", Admit: admit}
		c.State, c.Endpoints = state, endpoints
		return []api.Cell{c}
	}
	for want, tt := range map[string]struct {
		fleet string
		cells []api.Cell
	}{
		"cellway fleet create NAME --extractor header:X-Tenant-Id":        {"", one(cellway.CellActive, 100, here...)},
		"cellway cell add CELL --endpoint URL --state active":             {"shop", one(cellway.CellRetired, 100)},
		"cellway cell set a --endpoint URL, then cellway cell activate a": {"shop", one(cellway.CellNew, 100)},
		"cellway cell activate a":                                         {"shop", one(cellway.CellCordoned, 100, here...)},
		"cellway undrain a --to 100":                                      {"shop", one(cellway.CellActive, 25, here...)},
		"cellway map assign":                                              {"shop", one(cellway.CellActive, 100, here...)},
	} {
		if got := untilMap(tt.fleet, tt.cells); got != want {
			t.Errorf("%+v: %q, want %q", tt, got, want)
		}
	}
}
