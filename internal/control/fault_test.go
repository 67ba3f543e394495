package control_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// script is a short life of a fleet. Each step is one write that a caller may
// ask for again when it does not know what became of it.
var script = []struct {
	name string
	do   func(t *testing.T, s *control.Service) error
	// done are answers to a repetition that say the first try was applied.
	done []error
}{
	{name: "fleet", done: []error{cellway.ErrConflict}, do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutFleet(t.Context(), by, routemap.Settings{Fleet: "shop", Buckets: 64, Strict: true}, 0)
		return err
	}},
	{name: "cell 1", done: []error{cellway.ErrConflict}, do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutCell(t.Context(), by, cell(1), 0)
		return err
	}},
	{name: "cell 2", done: []error{cellway.ErrConflict}, do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutCell(t.Context(), by, cell(2), 0)
		return err
	}},
	{name: "buckets", do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.AssignBuckets(t.Context(), by)
		return err
	}},
	{name: "tenant", do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Request: "req-1"}, 0)
		return err
	}},
	{name: "quarantine", done: []error{cellway.ErrConflict}, do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0)
		return err
	}},
	{name: "free", done: []error{cellway.ErrNotFound}, do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.RemoveOverride(t.Context(), by, "acme", 1)
		return err
	}},
	{name: "drain", do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.Drain(t.Context(), by, "cell-001", 0)
		return err
	}},
	{name: "undrain", do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.Undrain(t.Context(), by, "cell-001", 100)
		return err
	}},
	{name: "workers", done: []error{cellway.ErrConflict}, do: func(t *testing.T, s *control.Service) error {
		_, err := s.PutWorkers(t.Context(), by, "cell-001", aList(3), 0)
		return err
	}},
	{name: "worker", done: []error{cellway.ErrExists}, do: func(t *testing.T, s *control.Service) error {
		_, err := s.PutWorker(t.Context(), by, "cell-001", aWorker(4), 0)
		return err
	}},
	{name: "drained worker", do: func(t *testing.T, s *control.Service) error {
		_, err := s.DrainWorker(t.Context(), by, "cell-001", "w1")
		return err
	}},
	{name: "alias", do: func(t *testing.T, s *control.Service) error {
		_, _, err := s.PutAlias(t.Context(), by, cellway.Alias{Name: "acme-inc", Target: "acme"})
		return err
	}},
}

// Whichever write of the store fails, and whether or not it took effect, the
// same request asked again converges, and what is published is what was
// accepted: nothing is half there and nothing is there twice.
func TestEveryFailedWriteConverges(t *testing.T) {
	writes := 0
	synctest.Test(t, func(t *testing.T) {
		st := faultstore.New(memstore.New())
		live(t, st)
		writes = st.Writes()
	})
	if writes < 20 {
		t.Fatalf("only %d writes", writes)
	}
	for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
		for nth := 1; nth <= writes; nth++ {
			t.Run(fmt.Sprintf("%v/%d", mode, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := faultstore.New(memstore.New())
					st.Fail(nth, mode)
					live(t, st)
				})
			})
		}
	}
}

// live plays the script, asking again after an injected fault, restarts, and
// checks the end.
func live(t *testing.T, st *faultstore.Store) {
	t.Helper()
	if _, err := control.Open(t.Context(), config(t, st)); err != nil && !errors.Is(err, fault.ErrInjected) {
		t.Fatal(err)
	}
	s := open(t, st)
	for _, step := range script {
		err := step.do(t, s)
		if errors.Is(err, fault.ErrInjected) {
			err = step.do(t, s)
			for _, done := range step.done {
				if errors.Is(err, done) {
					err = nil
				}
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	time.Sleep(5 * time.Second)
	for _, s := range []*control.Service{s, open(t, st)} {
		home, err := s.Tenant(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*routemap.Map{s.Accepted(), s.Newest().Map} {
			r := m.Lookup("acme-inc")
			if code, _ := m.Admit(&r); code != "" || r.Key != "acme" || r.Cell.ID != home.Cell {
				t.Errorf("acme is at %+v with code %q, its home is %s", r, code, home.Cell)
			}
			if err := m.Check(); err != nil {
				t.Error(err)
			}
		}
		if l, err := s.Workers(t.Context(), "cell-001"); err != nil || len(l.Workers) != 4 || weight(t, l, "w1") != 0 || l.Revision != 3 {
			t.Errorf("list of workers %+v, %v", l, err)
		}
		total := 0
		for _, id := range []cellway.CellID{"cell-001", "cell-002"} {
			c, err := s.Cell(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			total += c.Usage.Tenants
		}
		if total != 1 {
			t.Errorf("one tenant takes the room of %d", total)
		}
	}
	checkVersions(t, s)
}

// checkVersions holds that published versions form one chain and that the
// journal tells of each act once for each time that it was applied.
func checkVersions(t *testing.T, s *control.Service) {
	t.Helper()
	versions, err := s.Versions(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range versions {
		if i+1 < len(versions) && (v.Manifest.Parent != versions[i+1].Manifest.Version || v.Seq < versions[i+1].Seq) {
			t.Errorf("version %v follows %v at change %d", v.Manifest.Version, v.Manifest.Parent, v.Seq)
		}
		if _, _, err := s.OpenVersion(t.Context(), v.Manifest.Version); err != nil {
			t.Errorf("version %v: %v", v.Manifest.Version, err)
		}
	}
}

// A store that is down refuses writes, keeps nothing of them, and hurts neither
// what is published nor what comes after.
func TestStoreDownRefusesWritesAndServesTheMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faultstore.New(memstore.New())
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		before := s.Newest()
		st.SetDown(true)
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); !errors.Is(err, cellway.ErrStoreDown) {
			t.Errorf("drain with the store down: %v", err)
		}
		time.Sleep(time.Minute)
		if s.Newest() != before || s.Accepted().Cell("cell-001").Admit != 100 {
			t.Error("the map changed with the store down")
		}
		st.SetDown(false)
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		if published(t, s, c).Cell("cell-001").Admit != 0 {
			t.Error("the drain was not published")
		}
	})
}
