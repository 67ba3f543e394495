package control_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// Keys that came lately must not hide that others go: a router judges each
// version by itself, and would refuse it.
func TestChangeThatRoutersWouldRefuseIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
		remove := func(call control.Call, i int) error {
			_, _, err := s.DeleteTenant(t.Context(), call, cellway.TenantID(fmt.Sprintf("t%d", i)), 1)
			return err
		}
		for i := range 12 {
			register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i)))
		}
		time.Sleep(time.Second) // published
		for i := range 10 {
			if err := remove(by, i); err != nil {
				t.Fatalf("tenant %d of ten: %v", i+1, err)
			}
		}
		confirmed(t, func(call control.Call) error { return remove(call, 10) })
		time.Sleep(time.Second)
		agree(t, s) // each version is one that routers take
	})
}

// A small fleet deletes a tenant without being asked, but is asked before the
// last of several goes.
func TestFewTenantsAreDeletedWithoutAQuestionButNotAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
		remove := func(call control.Call, id cellway.TenantID) error {
			_, _, err := s.DeleteTenant(t.Context(), call, id, 1)
			return err
		}
		for _, id := range []cellway.TenantID{"a", "b", "c", "d"} {
			register(t, s, id)
		}
		time.Sleep(11 * time.Minute)
		for _, id := range []cellway.TenantID{"a", "b", "c"} {
			if err := remove(by, id); err != nil {
				t.Fatalf("tenant %s of four: %v", id, err)
			}
		}
		confirmed(t, func(call control.Call) error { return remove(call, "d") })
		register(t, s, "only")
		time.Sleep(11 * time.Minute)
		if err := remove(by, "only"); err != nil {
			t.Errorf("the only tenant: %v", err)
		}
		time.Sleep(time.Second)
		agree(t, s) // each version is one that routers take
	})
}

// Many changes, each let through, whose sum since the last version is more than
// routers take in one: then they go out in several.
func TestSumThatRoutersWouldRefuseGoesOutInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, err := control.Open(t.Context(), config(t, st)) // publishes nothing
		if err != nil {
			t.Fatal(err)
		}
		fleet(t, s, routemap.Settings{Mapping: routemap.Full, Stateless: true}, 4)
		homes := map[cellway.Key]cellway.CellID{}
		for i := range 100 {
			tn := register(t, s, cellway.TenantID(fmt.Sprintf("t%03d", i)))
			homes[cellway.Key(tn.ID)] = tn.Cell
		}
		first, stop := start(t, st)
		time.Sleep(time.Second)
		version := first.Newest().Map.Version()
		stop()
		for i := range 75 { // three times one cell's share, a while apart
			key := cellway.Key(fmt.Sprintf("t%03d", i))
			put(t, s, override(key, cellway.Pin, other(homes[key], 4)))
			if i%25 == 24 {
				time.Sleep(11 * time.Minute)
			}
		}
		again := open(t, st)
		time.Sleep(2 * time.Second)
		if n := again.Newest().Map.Version() - version; n < 3 {
			t.Errorf("75 of 100 keys moved within %d versions", n)
		}
		agree(t, again)
	})
}

// A digest stands for what a person has read. It holds although time passes,
// others write and the map is folded, and not for what comes on top.
func TestDigestHoldsUntilSomethingElseIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 3)
		pin := override("walk-in", cellway.Pin, other(s.Accepted().Lookup("walk-in").Cell.ID, 3))
		_, _, err := s.PutOverride(t.Context(), by, pin, 0)
		gate, ok := errors.AsType[*control.GateError](err)
		if !ok {
			t.Fatal(err)
		}
		register(t, s, "acme")
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 50); err != nil {
			t.Fatal(err)
		}
		if err := s.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		call := by
		call.Confirm = gate.Digest
		pin.Reason = "another reason"
		if _, _, err := s.PutOverride(t.Context(), call, pin, 0); !errors.Is(err, cellway.ErrGate) {
			t.Errorf("another change was confirmed by that digest: %v", err)
		}
		pin.Reason = "test"
		if _, _, err := s.PutOverride(t.Context(), call, pin, 0); err != nil {
			t.Errorf("confirmed later: %v", err)
		}
	})
}

func TestConfirmationOfOneCauseIsNoneOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 5)
		for i := range 60 {
			put(t, s, override(cellway.Key(fmt.Sprintf("k%02d", i)), cellway.Pin, "cell-001"))
		}
		move := func(i int) (*control.GateError, error) {
			o, err := s.Override(t.Context(), cellway.Key(fmt.Sprintf("k%02d", i)))
			if err != nil {
				t.Fatal(err)
			}
			pin := override(o.Key, cellway.Pin, "cell-002")
			_, _, err = s.PutOverride(t.Context(), by, pin, o.Revision)
			gate, ok := errors.AsType[*control.GateError](err)
			if !ok {
				t.Fatalf("k%02d: %v", i, err)
			}
			call := by
			call.Confirm = gate.Digest
			_, _, err = s.PutOverride(t.Context(), call, pin, o.Revision)
			return gate, err
		}
		pin := override("k59", cellway.Pin, "cell-002")
		_, _, err := s.PutOverride(t.Context(), by, pin, 1)
		early, _ := errors.AsType[*control.GateError](err)
		for i := range 12 { // one cell's share of 60
			if _, err := move(i); err != nil {
				t.Fatal(err)
			}
		}
		// What was confirmed is not counted again.
		gate, err := move(12)
		if err != nil || len(gate.Causes) != 1 {
			t.Errorf("causes %v, %v; confirmed moves were counted", gate.Causes, err)
		}
		// Unconfirmed moves are: without state, a pin asks for nothing of its own.
		stateless(t, s, true)
		for i := 20; i < 32; i++ {
			put(t, s, override(cellway.Key(fmt.Sprintf("k%02d", i)), cellway.Pin, "cell-003"))
		}
		stateless(t, s, false)
		call := by
		call.Confirm = early.Digest
		_, _, err = s.PutOverride(t.Context(), call, pin, 1)
		late, ok := errors.AsType[*control.GateError](err)
		if !ok || len(late.Causes) != 2 {
			t.Fatalf("a digest of one cause confirmed two: %v", err)
		}
		time.Sleep(11 * time.Minute)
		if _, _, err = s.PutOverride(t.Context(), call, pin, 1); err != nil {
			t.Errorf("ten minutes later the first digest is good again: %v", err)
		}
	})
}

// stateless says whether the fleet has state, and confirms it.
func stateless(t *testing.T, s *control.Service, is bool) {
	t.Helper()
	f, err := s.Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set := f.Settings
	set.Stateless = is
	_, _, err = s.PutFleet(t.Context(), by, set, f.Revision)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok {
		t.Fatalf("stateless %t: %v, want a question", is, err)
	}
	call := by
	call.Confirm = gate.Digest
	if _, _, err := s.PutFleet(t.Context(), call, set, f.Revision); err != nil {
		t.Fatal(err)
	}
}

func TestGateForgetsAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full, Stateless: true}, 5)
		for i := range 60 {
			put(t, s, override(cellway.Key(fmt.Sprintf("k%02d", i)), cellway.Pin, "cell-001"))
		}
		move := func(i int) error {
			_, _, err := s.PutOverride(t.Context(), by, override(cellway.Key(fmt.Sprintf("k%02d", i)), cellway.Pin, "cell-002"), 1)
			return err
		}
		for i := range 12 {
			if err := move(i); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		if err := move(12); !errors.Is(err, cellway.ErrGate) {
			t.Errorf("the thirteenth within ten minutes: %v", err)
		}
		time.Sleep(5 * time.Minute)
		if err := move(12); err != nil {
			t.Errorf("when the first ones are past: %v", err)
		}
	})
}

func TestRollbackAsksForWhatItChanges(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
	_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
	if err != nil {
		t.Fatal(err)
	}
	old := published(t, s, c)
	if _, _, err := s.Undrain(t.Context(), by, "cell-001", 100); err != nil {
		t.Fatal(err)
	}
	status, _ := s.Cell(t.Context(), "cell-002")
	status.Title = "two"
	if _, _, err := s.PutCell(t.Context(), by, status.Cell, status.Revision); err != nil {
		t.Fatal(err)
	}
	r, c, err := s.RollbackTo(t.Context(), by, old.Version())
	if err != nil {
		t.Fatal(err)
	}
	m := published(t, s, c)
	if got := m.Cell("cell-001"); got.Admit != 100 || got.State != cellway.CellActive {
		t.Errorf("a rollback drained a cell again: %d %%, %v", got.Admit, got.State)
	}
	if len(r.LeftCells) != 1 || r.LeftCells[0] != "cell-001" {
		t.Errorf("left %v, want the cell whose drain has changed", r.LeftCells)
	}
	if m.Cell("cell-002").Title != "" {
		t.Errorf("the title is %q", m.Cell("cell-002").Title)
	}
}

// repoint gives a cell other endpoints.
func repoint(ctx context.Context, s *control.Service, call control.Call, id cellway.CellID, endpoints ...string) error {
	c, err := s.Cell(ctx, id)
	if err != nil {
		return err
	}
	c.Endpoints = endpoints
	_, _, err = s.PutCell(ctx, call, c.Cell, c.Revision)
	return err
}

// What is wrong with the endpoints of one cell is wrong for that cell alone, however
// often they change. Those of a second one within ten minutes need a person.
func TestOtherEndpointsOfASecondCellAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 3)
		for i := range 30 {
			if err := repoint(t.Context(), s, by, "cell-001", fmt.Sprintf("http://10.9.0.1:%d", 8000+i)); err != nil {
				t.Fatalf("change %d of one cell: %v", i+1, err)
			}
			time.Sleep(7 * time.Second)
		}
		err := repoint(t.Context(), s, by, "cell-002", "http://10.9.0.2:8080")
		gate, ok := errors.AsType[*control.GateError](err)
		if !ok || len(gate.Causes) != 1 || gate.Causes[0] != (routemap.Cause{Name: "cells_repointed", Count: 2, Limit: 1}) || gate.Counts.CellsRepointed != 2 {
			t.Fatalf("a second cell: %v", err)
		}
		if err := repoint(t.Context(), s, by, "cell-001", "http://10.9.0.1:9000"); err != nil {
			t.Errorf("the first one again, after that was refused: %v", err)
		}
		call := by
		call.Confirm = gate.Digest
		if err := repoint(t.Context(), s, call, "cell-002", "http://10.9.0.2:8080"); err != nil {
			t.Fatalf("confirmed: %v", err)
		}
		if err := repoint(t.Context(), s, by, "cell-001", "http://10.9.0.1:9001"); err != nil {
			t.Errorf("what was confirmed is counted again: %v", err)
		}
		time.Sleep(11 * time.Minute)
		if err := repoint(t.Context(), s, by, "cell-003", "http://10.9.0.3:8080"); err != nil {
			t.Errorf("another cell ten minutes later: %v", err)
		}
		time.Sleep(time.Second)
		agree(t, s) // each version is one that routers take
	})
}

// To say where a cell listens that nothing is sent to yet is no change of traffic.
func TestEndpointsOfNewCellsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		for i := range 5 {
			c := control.Cell{Cell: cellway.Cell{ID: cellway.CellID(fmt.Sprintf("new-%d", i))}}
			if _, _, err := s.PutCell(t.Context(), by, c, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := repoint(t.Context(), s, by, "cell-001", "http://10.9.0.1:8080"); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if err := repoint(t.Context(), s, by, cellway.CellID(fmt.Sprintf("new-%d", i)), fmt.Sprintf("http://10.9.1.%d:8080", i)); err != nil {
				t.Fatalf("the first endpoint of new cell %d: %v", i+1, err)
			}
		}
		if err := repoint(t.Context(), s, by, "cell-002", "http://10.9.0.2:8080"); !errors.Is(err, cellway.ErrGate) {
			t.Errorf("a second cell that serves: %v", err)
		}
		time.Sleep(2 * time.Second)
		agree(t, s) // each version is one that routers take
	})
}
