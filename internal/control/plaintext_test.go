package control_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/internal/workers"
	"github.com/cellway/cellway/routemap"
)

// What people read as a name or a reason reads as it is, wherever it is taken in.
func TestTextThatDeceivesIsRefused(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	put3(t, s, 0)
	const bad = "w\u202e1"
	reason := by
	reason.Reason = bad
	change := func(edit func(*control.Cell)) func() error {
		return func() error {
			c, err := s.Cell(t.Context(), "cell-001")
			if err != nil {
				return err
			}
			edit(&c.Cell)
			_, _, err = s.PutCell(t.Context(), by, c.Cell, c.Revision)
			return err
		}
	}
	override := func(edit func(*cellway.Entry)) func() error {
		return func() error {
			o := override("acme", cellway.Quarantine, "")
			edit(&o)
			_, _, err := s.PutOverride(t.Context(), by, o, 0)
			return err
		}
	}
	add := func(w workers.Worker) func() error {
		return func() error { _, err := s.PutWorker(t.Context(), by, "cell-001", w, 0); return err }
	}
	for name, do := range map[string]func() error{
		"a worker's id":       add(worker(bad)),
		"a worker's endpoint": add(workers.Worker{ID: "w9", Endpoint: "http://" + bad + ":80"}),
		"a worker's zone":     add(workers.Worker{ID: "w9", Endpoint: "http://w9:80", Zone: bad}),
		"a list": func() error {
			_, err := s.PutWorkers(t.Context(), by, "cell-002", control.WorkersSettings{List: workers.List{Size: 1, Workers: []workers.Worker{worker(bad), worker("w2")}}}, 0)
			return err
		},
		"a cell's title":    change(func(c *control.Cell) { c.Title = bad }),
		"a cell's zone":     change(func(c *control.Cell) { c.Zone = bad }),
		"a cell's region":   change(func(c *control.Cell) { c.Region = bad }),
		"a tag":             change(func(c *control.Cell) { c.Tags = map[string]string{bad: "x"} }),
		"a tag's value":     change(func(c *control.Cell) { c.Tags = map[string]string{"x": bad} }),
		"a tier":            change(func(c *control.Cell) { c.Tiers = []string{bad} }),
		"a cell's endpoint": change(func(c *control.Cell) { c.Endpoints = []string{"http://" + bad + ":80"} }),
		"a tenant's tier": func() error {
			_, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Tier: bad}, 0)
			return err
		},
		"a tenant's name": func() error {
			_, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "ac\u202eme"}, 0)
			return err
		},
		"who set an override":  override(func(o *cellway.Entry) { o.By = bad }),
		"an override's reason": override(func(o *cellway.Entry) { o.Reason = bad }),
		"a reason":             func() error { _, _, err := s.Drain(t.Context(), reason, "cell-001", 0); return err },
		"a token's name":       func() error { _, _, err := s.CreateToken(t.Context(), by, bad, control.Admin, time.Time{}); return err },
		"a router's build":     func() error { return s.Report(t.Context(), "r1", control.Report{Build: bad}) },
	} {
		err := do()
		if !errors.Is(err, cellway.ErrInvalid) || strings.Contains(err.Error(), "\u202e") || name != "a tenant's name" && !strings.Contains(err.Error(), "U+202E") {
			t.Errorf("%s: %v", name, err)
		}
	}
	reason.Reason = "two lines\nof why: 👩\u200d🚒"
	if _, _, err := s.Drain(t.Context(), reason, "cell-001", 0); err != nil {
		t.Error(err)
	}
}

// A list from before names were checked is no reason to refuse a drain in it.
func TestAWorkerIsDrainedBesideOneWithANameThatDeceives(t *testing.T) {
	st := newForgetful()
	s := open(t, st)
	fleet(t, s, routemap.Settings{}, 1)
	put3(t, s, 0)
	if err := st.Update(t.Context(), func(tx store.Tx) error { // as an earlier build took it
		r, err := tx.Get("workers", "cell-001")
		if err != nil {
			return err
		}
		r.Body = bytes.ReplaceAll(r.Body, []byte(`"w3"`), []byte("\"w\u202e3\""))
		_, err = tx.Put(r)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, worker := range []string{"w1", "w\u202e3"} {
		if _, err := s.DrainWorker(t.Context(), by, "cell-001", worker); err != nil {
			t.Errorf("%q: %v", worker, err)
		}
		if _, err := s.UndrainWorker(t.Context(), by, "cell-001", worker, 0); err != nil {
			t.Errorf("%q: %v", worker, err)
		}
	}
}
