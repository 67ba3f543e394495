package client_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/routemap"
)

// everything is each method that asks a control plane.
func everything() map[string]func(context.Context, *client.Client) error {
	first := func(_ any, err error) error { return err }
	return map[string]func(context.Context, *client.Client) error{
		"Fleet": func(ctx context.Context, c *client.Client) error { return first(c.Fleet(ctx)) },
		"PutFleet": func(ctx context.Context, c *client.Client) error {
			return first(c.PutFleet(ctx, api.FleetSettings{}, client.Write{}))
		},
		"UpdateFleet": func(ctx context.Context, c *client.Client) error {
			return first(c.UpdateFleet(ctx, func(*api.FleetSettings) error { return nil }, client.Write{}))
		},
		"Cells": func(ctx context.Context, c *client.Client) error { return walk(c.Cells(ctx)) },
		"Cell":  func(ctx context.Context, c *client.Client) error { return first(c.Cell(ctx, "cell-002")) },
		"PutCell": func(ctx context.Context, c *client.Client) error {
			return first(c.PutCell(ctx, "cell-002", api.CellSettings{}, client.Write{}))
		},
		"UpdateCell": func(ctx context.Context, c *client.Client) error {
			return first(c.UpdateCell(ctx, "cell-002", func(*api.CellSettings) error { return nil }, client.Write{}))
		},
		"Drain": func(ctx context.Context, c *client.Client) error {
			return first(c.Drain(ctx, "cell-002", 0, "", client.Write{}))
		},
		"Undrain": func(ctx context.Context, c *client.Client) error {
			return first(c.Undrain(ctx, "cell-002", 1, "", client.Write{}))
		},
		"Retire": func(ctx context.Context, c *client.Client) error {
			return first(c.Retire(ctx, "cell-002", "", client.Write{}))
		},
		"AssignBuckets": func(ctx context.Context, c *client.Client) error {
			return first(c.AssignBuckets(ctx, api.BucketAssignment{}, client.Write{}))
		},

		"Tenants": func(ctx context.Context, c *client.Client) error { return walk(c.Tenants(ctx, client.TenantFilter{})) },
		"Tenant":  func(ctx context.Context, c *client.Client) error { return first(c.Tenant(ctx, "acme")) },
		"PutTenant": func(ctx context.Context, c *client.Client) error {
			return first(c.PutTenant(ctx, "acme", api.TenantSettings{}, client.Write{}))
		},
		"CreateTenant": func(ctx context.Context, c *client.Client) error {
			return first(c.CreateTenant(ctx, "acme", api.TenantSettings{}, client.Write{}))
		},
		"UpdateTenant": func(ctx context.Context, c *client.Client) error {
			return first(c.UpdateTenant(ctx, "acme", func(*api.TenantSettings) error { return nil }, client.Write{}))
		},
		"DeleteTenant": func(ctx context.Context, c *client.Client) error {
			return first(c.DeleteTenant(ctx, "acme", client.Write{}))
		},
		"UndeleteTenant": func(ctx context.Context, c *client.Client) error {
			return first(c.UndeleteTenant(ctx, "acme", "", client.Write{}))
		},
		"Overrides": func(ctx context.Context, c *client.Client) error { return walk(c.Overrides(ctx, "")) },
		"Override":  func(ctx context.Context, c *client.Client) error { return first(c.Override(ctx, "acme")) },
		"PutOverride": func(ctx context.Context, c *client.Client) error {
			return first(c.PutOverride(ctx, "acme", api.OverrideSettings{}, client.Write{}))
		},
		"RemoveOverride": func(ctx context.Context, c *client.Client) error {
			return first(c.RemoveOverride(ctx, "acme", client.Write{}))
		},
		"Aliases": func(ctx context.Context, c *client.Client) error { return walk(c.Aliases(ctx)) },
		"Alias":   func(ctx context.Context, c *client.Client) error { return first(c.Alias(ctx, "acme")) },
		"PutAlias": func(ctx context.Context, c *client.Client) error {
			return first(c.PutAlias(ctx, "acme", api.AliasSettings{}, client.Write{}))
		},
		"RemoveAlias": func(ctx context.Context, c *client.Client) error {
			return first(c.RemoveAlias(ctx, "acme", client.Write{}))
		},

		"Workers": func(ctx context.Context, c *client.Client) error { return first(c.Workers(ctx, "cell-002")) },
		"PutWorkers": func(ctx context.Context, c *client.Client) error {
			return first(c.PutWorkers(ctx, "cell-002", api.WorkersSettings{}, client.Write{}))
		},
		"DeleteWorkers": func(ctx context.Context, c *client.Client) error {
			return first(c.DeleteWorkers(ctx, "cell-002", client.Write{}))
		},
		"PutWorker": func(ctx context.Context, c *client.Client) error {
			return first(c.PutWorker(ctx, "cell-002", "w1", api.WorkerSettings{}, client.Write{}))
		},
		"UpdateWorker": func(ctx context.Context, c *client.Client) error {
			return first(c.UpdateWorker(ctx, "cell-002", "w1", nil, client.Write{}))
		},
		"RemoveWorker": func(ctx context.Context, c *client.Client) error {
			return first(c.RemoveWorker(ctx, "cell-002", "w1", client.Write{}))
		},
		"DrainWorker": func(ctx context.Context, c *client.Client) error {
			return first(c.DrainWorker(ctx, "cell-002", "w1", client.Write{}))
		},
		"UndrainWorker": func(ctx context.Context, c *client.Client) error {
			return first(c.UndrainWorker(ctx, "cell-002", "w1", 0, client.Write{}))
		},

		"MapStatus": func(ctx context.Context, c *client.Client) error { return first(c.MapStatus(ctx)) },
		"Manifest":  func(ctx context.Context, c *client.Client) error { return first(c.Manifest(ctx, 0, 0)) },
		"Part": func(ctx context.Context, c *client.Client) error {
			return first(c.Part(ctx, routemap.Part{Size: 1000}))
		},
		"Versions":   func(ctx context.Context, c *client.Client) error { return walk(c.Versions(ctx)) },
		"Version":    func(ctx context.Context, c *client.Client) error { return first(c.Version(ctx, 0)) },
		"MapContent": func(ctx context.Context, c *client.Client) error { return first(c.MapContent(ctx, 0)) },
		"MapDiff":    func(ctx context.Context, c *client.Client) error { return first(c.MapDiff(ctx, 1, 2)) },
		"Rollback": func(ctx context.Context, c *client.Client) error {
			return first(c.Rollback(ctx, 1, "", client.Write{}))
		},
		"Explain": func(ctx context.Context, c *client.Client) error { return first(c.Explain(ctx, "acme")) },
		"Locate":  func(ctx context.Context, c *client.Client) error { return first(c.Locate(ctx, "acme")) },

		"Routers":      func(ctx context.Context, c *client.Client) error { return walk(c.Routers(ctx)) },
		"Router":       func(ctx context.Context, c *client.Client) error { return first(c.Router(ctx, "r1")) },
		"ForgetRouter": func(ctx context.Context, c *client.Client) error { return c.ForgetRouter(ctx, "r1", client.Write{}) },
		"Report": func(ctx context.Context, c *client.Client) error {
			return first(c.Report(ctx, "r1", api.RouterReport{}))
		},
		"Change":  func(ctx context.Context, c *client.Client) error { return first(c.Change(ctx, "7")) },
		"Journal": func(ctx context.Context, c *client.Client) error { return walk(c.Journal(ctx, client.JournalFilter{})) },
		"Alarms":  func(ctx context.Context, c *client.Client) error { return walk(c.Alarms(ctx)) },
		"Tokens":  func(ctx context.Context, c *client.Client) error { return walk(c.Tokens(ctx)) },
		"CreateToken": func(ctx context.Context, c *client.Client) error {
			return first(c.CreateToken(ctx, api.TokenCreation{}, client.Write{}))
		},
		"DeleteToken": func(ctx context.Context, c *client.Client) error { return c.DeleteToken(ctx, "t1", client.Write{}) },
		"Backup":      func(ctx context.Context, c *client.Client) error { return first(c.Backup(ctx, io.Discard)) },
		"ConfirmRestore": func(ctx context.Context, c *client.Client) error {
			return c.ConfirmRestore(ctx, api.RestoreConfirmation{})
		},
	}
}

func walk[T any](seq iter.Seq2[T, error]) error {
	_, err := client.All(seq)
	return err
}

// A program that says yes to everything, as a file server or a mock does, is no
// control plane: what it answers is never taken for a record, for a list or for a
// write that is done.
func TestWhatSaysYesToEverythingIsNoControlPlane(t *testing.T) {
	methods := everything()
	for method := range reflect.TypeFor[*client.Client]().Methods() {
		if name := method.Name; methods[name] == nil && name != "Close" && name != "URL" {
			t.Errorf("%s is not tried", name)
		}
	}
	for name, text := range map[string]string{
		"an object":       `{"ok": true}`,
		"a record":        `{"id": 7, "name": "x", "status": "active"}`,
		"empty names":     `{"id": "", "name": "", "key": "", "cell": "", "asked": null, "to": null, "version": null, "revision": 1}`,
		"an array":        `[]`,
		"another list":    `{"items": [{"sku": 1}]}`,
		"a list of words": `{"items": ["a"]}`,
		"a list of none":  `{"items": null}`,
		"a number":        `7`,
		"null":            `null`,
		"a page":          `<html><body>hello</body></html>`,
		"nothing":         ``,
	} {
		var url string
		c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			url = "http://" + r.Host
			if strings.HasPrefix(text, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			io.WriteString(w, text)
		})
		for method, ask := range methods {
			err := ask(t.Context(), c)
			if method == "Part" && errors.Is(err, routemap.ErrDigest) {
				continue // whoever has it: it is the part or not
			}
			if !errors.Is(err, client.ErrForeign) || !strings.Contains(err.Error(), url) {
				t.Errorf("%s, answered with %s: %v", method, name, err)
			}
		}
	}
}

func TestAnAnswerWithoutABodyIsTheControlPlanesIfItNamesTheRequest(t *testing.T) {
	ours := false
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		if ours {
			w.Header().Set("X-Request-Id", "r1")
		}
		w.WriteHeader(http.StatusNoContent)
	})
	for method, ask := range everything() {
		if err := ask(t.Context(), c); method != "Part" && !errors.Is(err, client.ErrForeign) {
			t.Errorf("%s: %v", method, err)
		}
	}
	ours = true
	if err := c.ForgetRouter(t.Context(), "r1", client.Write{}); err != nil {
		t.Error(err)
	}
	if man, err := c.Manifest(t.Context(), 1, 0); man != nil || err != nil {
		t.Errorf("%v, %v", man, err)
	}
	if _, err := c.Cell(t.Context(), "cell-001"); !errors.Is(err, client.ErrForeign) {
		t.Errorf("a cell of nothing: %v", err)
	}
}

// What a program did that a write went to, and that is no control plane, nobody knows.
func TestAWriteThatSomebodyElseAnswersIsLeftOpen(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) { answer(w, 200, map[string]bool{"ok": true}) })
	_, err := c.Drain(t.Context(), "cell-002", 0, "", client.Write{})
	var e *client.Error
	if !errors.Is(err, client.ErrForeign) || !errors.Is(err, client.ErrUnanswered) || !errors.As(err, &e) || e.Op != "POST /v1/cells/cell-002/drain" {
		t.Errorf("a write: %v", err)
	}
	if _, err := c.Drain(t.Context(), "cell-002", 0, "", client.Write{DryRun: true}); !errors.Is(err, client.ErrForeign) || errors.Is(err, client.ErrUnanswered) {
		t.Errorf("a dry run: %v", err)
	}
	// An answer that begins as ours and breaks off is no other program's.
	c = dial(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"id": "cell-002", "rev`) })
	if _, err := c.Drain(t.Context(), "cell-002", 0, "", client.Write{}); errors.Is(err, client.ErrForeign) || !errors.Is(err, client.ErrUnanswered) {
		t.Errorf("half an answer: %v", err)
	}
}
