package client_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// Somebody else changes the list between the reading and the writing: then it is
// read again, and the worker as it is now is edited.
func TestWorkerIsEditedAsItIsNow(t *testing.T) {
	list := api.CellWorkers{Cell: "cell-001", Revision: 7, Workers: []api.Worker{{ID: "w/1", WorkerSettings: api.WorkerSettings{Endpoint: "http://a:1"}}}}
	var asked []string
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+"?"+r.URL.RawQuery+" "+r.Header.Get("If-Match"))
		switch {
		case r.Method == http.MethodGet:
			answer(w, 200, list)
		case len(asked) == 2:
			list.Revision, list.Workers[0].Zone = 8, "b"
			w.Header().Set("Content-Type", api.ProblemType)
			answer(w, 412, api.Problem{Code: api.CodeConflict, Status: 412, Detail: "the list is at revision 8"})
		default:
			answer(w, 200, api.CellWorkersChange{CellWorkers: list})
		}
	})
	var zones []string
	_, err := c.UpdateWorker(t.Context(), "cell-001", "w/1", func(s *api.WorkerSettings) error {
		zones = append(zones, s.Zone)
		return nil
	}, client.Write{Wait: time.Second})
	if err != nil || !slices.Equal(zones, []string{"", "b"}) {
		t.Errorf("zones %q, %v", zones, err)
	}
	want := []string{"GET /v1/cells/cell-001/workers? ", `PUT /v1/cells/cell-001/workers/w%2F1? "7"`, "GET /v1/cells/cell-001/workers? ", `PUT /v1/cells/cell-001/workers/w%2F1? "8"`}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if _, err := c.UpdateWorker(t.Context(), "cell-001", "w9", nil, client.Write{}); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("a worker that is not there: %v", err)
	}
}

func TestWritesOfWorkersSayHowTheyAreMeant(t *testing.T) {
	var got string
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery + " " + r.Header.Get("If-Match") + r.Header.Get("If-None-Match")
		answer(w, 200, api.CellWorkersChange{CellWorkers: api.CellWorkers{Cell: "cell-001", Workers: []api.Worker{}, Revision: 4}})
	})
	ctx, cell := t.Context(), cellway.CellID("cell-001")
	at := client.Write{Revision: 3, Reason: "why", DryRun: true, Wait: time.Minute}
	const path = "/v1/cells/cell-001/workers"
	for want, do := range map[string]func() error{
		"PUT " + path + "? *":                             func() error { _, err := c.PutWorkers(ctx, cell, api.WorkersSettings{}, client.Write{}); return err },
		"PUT " + path + `?dry_run=true&reason=why "3"`:    func() error { _, err := c.PutWorkers(ctx, cell, api.WorkersSettings{}, at); return err },
		"DELETE " + path + `?dry_run=true&reason=why "3"`: func() error { _, err := c.DeleteWorkers(ctx, cell, at); return err },
		"PUT " + path + "/w1? *": func() error {
			_, err := c.PutWorker(ctx, cell, "w1", api.WorkerSettings{}, client.Write{Wait: time.Minute})
			return err
		},
		"DELETE " + path + `/%2E%2E?dry_run=true&reason=why "3"`: func() error { _, err := c.RemoveWorker(ctx, cell, "..", at); return err },
		"POST " + path + "/w1/drain? ":                           func() error { _, err := c.DrainWorker(ctx, cell, "w1", client.Write{Reason: "why"}); return err },
		"POST " + path + `/w1/undrain?dry_run=true "3"`:          func() error { _, err := c.UndrainWorker(ctx, cell, "w1", 2, at); return err },
	} {
		if err := do(); err != nil || got != want {
			t.Errorf("asked %q, want %q: %v", got, want, err)
		}
	}
}
