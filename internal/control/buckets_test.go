package control_test

import (
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

func TestBucketsNeedACellThatTakesThem(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Stateless: true}, 2)
	for i, id := range []cellway.CellID{"cell-001", "cell-002"} {
		call := by
		for range 2 {
			_, _, err := s.Drain(t.Context(), call, id, 0)
			if gate, ok := errors.AsType[*control.GateError](err); ok {
				call.Confirm = gate.Digest
			} else if err != nil {
				t.Fatal(i, err)
			}
		}
	}
	before := s.Accepted()
	if _, _, err := s.AssignBuckets(t.Context(), by); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("with all cells drained: %v", err)
	}
	if s.Accepted() != before {
		t.Error("the map changed")
	}
}

// In a stateless fleet tenants follow their buckets, so that a drained cell can
// be emptied and retired.
func TestStatelessTenantsFollowTheirBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Stateless: true}, 3)
		for i := range 50 {
			register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i)))
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-003", 0); err != nil {
			t.Fatal(err)
		}
		var plan control.BucketPlan
		confirmed(t, func(call control.Call) (err error) {
			plan, _, err = s.AssignBuckets(t.Context(), call)
			return err
		})
		if plan.After["cell-003"] != 0 || plan.Moved == 0 {
			t.Fatalf("plan %+v", plan)
		}
		c, _ := s.Cell(t.Context(), "cell-003")
		if c.Usage.Tenants != 0 || c.Buckets != 0 {
			t.Errorf("the drained cell has %d tenants and %d buckets", c.Usage.Tenants, c.Buckets)
		}
		if _, _, err := s.Retire(t.Context(), by, "cell-003", c.Revision); err != nil {
			t.Errorf("retire: %v", err)
		}
		time.Sleep(time.Second)
		agree(t, s)
	})
}

// A fleet that becomes strict still finds each tenant that it knows.
func TestFleetThatBecomesStrictKeepsItsTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 3)
		homes := map[cellway.Key]cellway.CellID{}
		for i := range 300 {
			tn := register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i)))
			homes[cellway.Key(tn.ID)] = tn.Cell
		}
		time.Sleep(time.Second)
		lax := s.Newest().Map
		strict := func(on bool) {
			t.Helper()
			f, err := s.Fleet(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.Strict = on
			confirmed(t, func(call control.Call) error {
				_, _, err := s.PutFleet(t.Context(), call, f.Settings, f.Revision)
				return err
			})
		}
		found := func(when string) {
			t.Helper()
			time.Sleep(time.Second)
			for key, home := range homes {
				if r := s.Newest().Map.Lookup(key); r.Cell == nil || r.Cell.ID != home {
					t.Fatalf("%s %s answers %q", when, key, r.Code)
				}
			}
			agree(t, s)
		}
		strict(true)
		found("strict:")
		if r := s.Accepted().Lookup("walk-in"); r.Code != cellway.KeyUnknown {
			t.Errorf("a strict fleet sends an unknown key to %v", r.Cell)
		}
		// All have entries now, so that buckets are free to move.
		if _, _, err := s.PutCell(t.Context(), by, cell(4), 0); err != nil {
			t.Fatal(err)
		}
		plan, _, err := s.AssignBuckets(t.Context(), by)
		if gate, ok := errors.AsType[*control.GateError](err); ok {
			call := by
			call.Confirm = gate.Digest
			plan, _, err = s.AssignBuckets(t.Context(), call)
		}
		if err != nil || plan.Moved == 0 || plan.Kept != 0 {
			t.Errorf("plan %+v, %v", plan, err)
		}
		found("strict with other buckets:")
		strict(false)
		found("lax again:")
		// Rolling back to the strict one would lose those that came since.
		late := register(t, s, "late")
		homes["late"] = late.Cell
		old := s.Newest().Map.Version() - 1
		confirmed(t, func(call control.Call) error {
			_, _, err := s.RollbackTo(t.Context(), call, old)
			return err
		})
		if !s.Accepted().Settings().Strict {
			t.Fatal("not rolled back")
		}
		found("rolled back to strict:")
		if lax.Settings().Strict {
			t.Error("a map changed")
		}
	})
}

func TestFleetStopsBeingStatelessOnlyWithTenantsAtHome(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Stateless: true}, 3)
	acme := register(t, s, "acme")
	o := put(t, s, override("acme", cellway.Pin, other(acme.Cell, 3)))
	f, _ := s.Fleet(t.Context())
	f.Stateless = false
	if _, _, err := s.PutFleet(t.Context(), by, f.Settings, f.Revision); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("with a tenant elsewhere: %v", err)
	}
	if _, _, err := s.RemoveOverride(t.Context(), by, "acme", o.Revision); err != nil {
		t.Fatal(err)
	}
	confirmed(t, func(call control.Call) error {
		_, _, err := s.PutFleet(t.Context(), call, f.Settings, f.Revision)
		return err
	})
}

// Sign-ups that come while an assignment is worked out are seen by it.
func TestAssignmentSeesTenantsThatComeMeanwhile(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	for i := range 5 {
		if _, _, err := s.PutCell(t.Context(), by, cell(4+i), 0); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for j := range 40 {
				if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d-%d", i, j))}, 0); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 3 {
			call := by
			_, _, err := s.AssignBuckets(t.Context(), call)
			if gate, ok := errors.AsType[*control.GateError](err); ok {
				call.Confirm = gate.Digest
				_, _, err = s.AssignBuckets(t.Context(), call)
			}
			// What moved meanwhile is another change, and asks again.
			if err != nil && !errors.Is(err, cellway.ErrGate) {
				t.Error(err)
			}
		}
		<-done
	}
	for _, tn := range all(t, func(after string) (control.Page[control.Tenant], error) {
		return s.Tenants(t.Context(), "", "", after, 100)
	}) {
		if r := s.Accepted().Lookup(cellway.Key(tn.ID)); r.Cell == nil || r.Cell.ID != tn.Cell {
			t.Errorf("%s of %s is sent to %+v", tn.ID, tn.Cell, r.Cell)
		}
	}
}

func TestCordonAndDrainDoNotUndoEachOther(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
	state := func() string {
		c := s.Accepted().Cell("cell-001")
		return fmt.Sprintf("%v %d", c.State, c.Admit)
	}
	set := func(to cellway.CellState) {
		t.Helper()
		c, err := s.Cell(t.Context(), "cell-001")
		if err != nil {
			t.Fatal(err)
		}
		c.State, c.Cordoned = to, false
		if _, _, err := s.PutCell(t.Context(), by, c.Cell, c.Revision); err != nil {
			t.Fatal(err)
		}
	}
	admit := func(do func(control.Call, cellway.CellID, uint8) (control.CellStatus, control.Change, error), to uint8) control.Change {
		t.Helper()
		_, c, err := do(by, "cell-001", to)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	drain := func(call control.Call, id cellway.CellID, to uint8) (control.CellStatus, control.Change, error) {
		return s.Drain(t.Context(), call, id, to)
	}
	undrain := func(call control.Call, id cellway.CellID, to uint8) (control.CellStatus, control.Change, error) {
		return s.Undrain(t.Context(), call, id, to)
	}
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() { admit(drain, 40) }, "cordoned 40"},
		{func() { set(cellway.CellCordoned) }, "cordoned 40"},
		{func() { admit(undrain, 100) }, "cordoned 100"}, // a person's cordon stays
		{func() { admit(drain, 0) }, "cordoned 0"},
		{func() { set(cellway.CellActive) }, "cordoned 0"}, // and so does a drain
		{func() { admit(undrain, 1) }, "cordoned 1"},
		{func() { admit(undrain, 100) }, "active 100"},
	} {
		if step.do(); state() != step.want {
			t.Errorf("after step %d: %s, want %s", i+1, state(), step.want)
		}
	}
	// A cordon that was read is a cordon that is written back.
	set(cellway.CellCordoned)
	c, _ := s.Cell(t.Context(), "cell-001")
	c.Title = "one"
	if _, _, err := s.PutCell(t.Context(), by, c.Cell, c.Revision); err != nil || state() != "cordoned 100" {
		t.Errorf("%s after another change: %v", state(), err)
	}
	// The same drain again does nothing, and waiting for it waits for the first.
	first := admit(drain, 0)
	end, _ := s.JournalEnd(t.Context())
	again := admit(drain, 0)
	if after, _ := s.JournalEnd(t.Context()); again.Seq != 0 || again.Upto != first.Seq || after != end {
		t.Errorf("the same drain again: %+v, %d acts", again, after-end)
	}
}
