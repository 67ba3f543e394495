package control_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// override is a valid one that needs a review in a month.
func override(key cellway.Key, kind cellway.EntryKind, cell cellway.CellID) cellway.Entry {
	return cellway.Entry{Key: key, Kind: kind, Cell: cell, By: "ops", Reason: "test", ReviewBy: time.Now().Add(720 * time.Hour)}
}

// other returns a cell of n that is not c.
func other(c cellway.CellID, n int) cellway.CellID {
	for i := range n {
		if id := cell(i + 1).ID; id != c {
			return id
		}
	}
	return ""
}

func TestChangeThatPartsTenantFromDataNeedsMove(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []cellway.Key{"acme", "acme/eu"} {
		if _, _, err := s.PutOverride(t.Context(), by, override(key, cellway.Pin, other(acme.Cell, 3)), 0); !errors.Is(err, cellway.ErrNeedsMove) {
			t.Errorf("pin of %s elsewhere: %v, want ErrNeedsMove", key, err)
		}
	}
	if _, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Pin, acme.Cell), 0); err != nil {
		t.Errorf("pin to its own cell: %v", err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Residency: "mars"}, acme.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
		t.Errorf("residency that its cell is not in: %v, want ErrNeedsMove", err)
	}
}

func TestOwnersChangeFreelyInStatelessFleet(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Stateless: true}, 3)
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	to := other(acme.Cell, 3)
	o, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Pin, to), 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Accepted().Lookup("acme"); r.Cell.ID != to || r.Epoch != o.Epoch || o.Epoch == 0 {
		t.Errorf("acme is in %s at %v, want %s at %v", r.Cell.ID, r.Epoch, to, o.Epoch)
	}
}

func TestQuarantineRefusesAndEndsAtHome(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict=%t", strict), func(t *testing.T) {
			s := open(t, memstore.New())
			fleet(t, s, routemap.Settings{Strict: strict}, 3)
			acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
			if err != nil {
				t.Fatal(err)
			}
			before := s.Accepted().Lookup("acme")
			o, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Accepted().Lookup("acme")
			if r.Code != cellway.KeyQuarantined || r.Epoch <= before.Epoch {
				t.Errorf("quarantined: %q at %v after %v", r.Code, r.Epoch, before.Epoch)
			}
			if _, _, err := s.RemoveOverride(t.Context(), by, "acme", o.Revision); err != nil {
				t.Fatal(err)
			}
			after := s.Accepted().Lookup("acme")
			if after.Code != "" || after.Cell.ID != acme.Cell || after.Epoch <= r.Epoch {
				t.Errorf("freed: %q in %v at %v after %v, want %s", after.Code, after.Cell, after.Epoch, r.Epoch, acme.Cell)
			}
		})
	}
}

func TestUnregisteredKeyIsMovedOnlyOnConfirmation(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	to := other(s.Accepted().Lookup("walk-in").Cell.ID, 3)
	pin := override("walk-in", cellway.Pin, to)
	_, _, err := s.PutOverride(t.Context(), by, pin, 0)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok || gate.Causes[0].Name != "unregistered_key_moved" {
		t.Fatalf("pin of an unregistered key: %v", err)
	}
	call := by
	call.Confirm = gate.Digest
	if _, _, err := s.PutOverride(t.Context(), call, pin, 0); err != nil {
		t.Fatal(err)
	}
	if r := s.Accepted().Lookup("walk-in"); r.Cell.ID != to {
		t.Errorf("walk-in is in %s, want %s", r.Cell.ID, to)
	}
}

func TestDeletedAndRetiredNamesAreGone(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	ctx := t.Context()
	must := func(_ any, _ control.Change, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	acme, c, err := s.PutTenant(ctx, by, control.Tenant{ID: "acme"}, 0)
	must(acme, c, err)
	alias, c, err := s.PutAlias(ctx, by, cellway.Alias{Name: "acme-inc", Target: "acme"})
	must(alias, c, err)
	if _, _, err := s.PutTenant(ctx, by, control.Tenant{ID: "acme-inc"}, 0); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("a tenant took the name of an alias: %v", err)
	}
	if _, _, err := s.PutAlias(ctx, by, cellway.Alias{Name: "acme-inc", Target: "beta"}); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("an alias was pointed elsewhere: %v", err)
	}
	if r := s.Accepted().Lookup("acme-inc"); r.Key != "acme" {
		t.Errorf("alias leads to %q", r.Key)
	}
	a, c, err := s.RemoveAlias(ctx, by, "acme-inc", alias.Revision)
	must(a, c, err)
	if r := s.Accepted().Lookup("acme-inc"); r.Code != cellway.KeyGone {
		t.Errorf("a retired alias answers %q", r.Code)
	}
	again, c, err := s.PutTenant(ctx, by, control.Tenant{ID: "acme-inc"}, 0)
	must(again, c, err)
	if r := s.Accepted().Lookup("acme-inc"); r.Code != "" || r.Cell.ID != again.Cell {
		t.Errorf("the name of a retired alias that was taken anew answers %+v", r)
	}
	acme, c, err = s.DeleteTenant(ctx, by, "acme", acme.Revision)
	must(acme, c, err)
	if r := s.Accepted().Lookup("acme"); r.Code != cellway.KeyGone {
		t.Errorf("a deleted tenant answers %q", r.Code)
	}
	if _, _, err := s.PutTenant(ctx, by, control.Tenant{ID: "acme"}, 0); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("a deleted tenant's name was taken again: %v", err)
	}
}

func TestCellWithTenantsIsNotRetired(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	home, _ := s.Cell(t.Context(), acme.Cell)
	if _, _, err := s.Retire(t.Context(), by, acme.Cell, home.Revision); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("retire with a tenant: %v, want ErrInUse", err)
	}
	empty, _ := s.Cell(t.Context(), other(acme.Cell, 2))
	if _, _, err := s.Retire(t.Context(), by, empty.ID, empty.Revision); err != nil {
		t.Errorf("retire of an empty cell: %v", err)
	}
	if _, _, err := s.PutCell(t.Context(), by, control.Cell{Cell: cellway.Cell{ID: empty.ID, State: cellway.CellNew}}, 0); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("the name of a retired cell was used again: %v", err)
	}
}

func TestDrainedCellTakesNoPlacements(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
	if _, _, err := s.Drain(t.Context(), by, "cell-002", 99); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		tn, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if tn.Cell == "cell-002" {
			t.Fatalf("%s was placed in a cell that is drained", tn.ID)
		}
	}
	c, _, err := s.Undrain(t.Context(), by, "cell-002", 100)
	if err != nil || s.Accepted().Cell("cell-002").State != cellway.CellActive {
		t.Errorf("undrained to %d %%, state %v: %v", c.Admit, s.Accepted().Cell("cell-002").State, err)
	}
}

func TestDrainBelowHalfTheFleetAsksOnce(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
		t.Fatalf("the first of two cells: %v", err)
	}
	_, _, err := s.Drain(t.Context(), by, "cell-002", 0)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok {
		t.Fatalf("the second of two cells: %v, want a question", err)
	}
	call := by
	call.Confirm = gate.Digest
	if _, _, err := s.Drain(t.Context(), call, "cell-002", 0); err != nil {
		t.Errorf("confirmed: %v", err)
	}
	if _, _, err := s.Drain(t.Context(), by, "cell-002", 0); err != nil {
		t.Errorf("the same drain again: %v", err)
	}
}

func TestGateSumsChangesOfTenMinutes(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full, Stateless: true}, 5)
	for i := range 200 {
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%03d", i))}, 0); err != nil {
			t.Fatal(err)
		}
	}
	var moved int
	for i := range 200 {
		key := cellway.Key(fmt.Sprintf("t%03d", i))
		home, _ := s.Tenant(t.Context(), cellway.TenantID(key))
		_, _, err := s.PutOverride(t.Context(), by, override(key, cellway.Pin, other(home.Cell, 5)), 0)
		if gate, ok := errors.AsType[*control.GateError](err); ok {
			// One cell's share is more than a tenth.
			if moved != 40 || gate.Causes[0].Name != "entries_moved" || gate.Causes[0].Limit != 40 {
				t.Errorf("refused after %d: %v", moved, gate)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		moved++
	}
	t.Errorf("the gate let %d of 200 keys go in one ten minutes", moved)
}

// The limits are shares of the fleet: when it shrinks, what was let through
// may exceed them. Only who moves more must confirm that.
func TestGateBlamesNoChangeForThoseBeforeIt(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full, Stateless: true}, 5)
	for i := range 100 {
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%03d", i))}, 0); err != nil {
			t.Fatal(err)
		}
	}
	pin := func(i int) error {
		key := cellway.Key(fmt.Sprintf("t%03d", i))
		home, err := s.Tenant(t.Context(), cellway.TenantID(key))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.PutOverride(t.Context(), by, override(key, cellway.Pin, other(home.Cell, 5)), 0)
		return err
	}
	for i := range 20 { // one cell's share of 100
		if err := pin(i); err != nil {
			t.Fatal(err)
		}
	}
	for i := 95; i < 100; i++ { // of 95 it is 19
		if _, _, err := s.DeleteTenant(t.Context(), by, cellway.TenantID(fmt.Sprintf("t%03d", i)), 1); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
		t.Errorf("drain: %v", err)
	}
	if _, _, err := s.Undrain(t.Context(), by, "cell-001", 100); err != nil {
		t.Errorf("undrain: %v", err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "late"}, 0); err != nil {
		t.Errorf("create: %v", err)
	}
	if err := pin(20); !errors.Is(err, cellway.ErrGate) {
		t.Errorf("one more key was moved: %v", err)
	}
}

// Whoever repeats a creation, since its answer was lost, waits for the change
// that the first one made.
func TestRepeatedCreationHasTheChangeOfTheFirst(t *testing.T) {
	for _, strict := range []bool{true, false} {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Buckets, Strict: strict}, 2)
		ask := control.Tenant{ID: "acme", Request: "sign-up-1"}
		first, made, err := s.PutTenant(t.Context(), by, ask, 0)
		if err != nil || (made.Seq > 0) != strict {
			t.Fatalf("strict %v: change %d, %v", strict, made.Seq, err)
		}
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "other", Request: "sign-up-2"}, 0); err != nil {
			t.Fatal(err)
		}
		again, repeated, err := s.PutTenant(t.Context(), by, ask, 0)
		if err != nil || again.Revision != first.Revision || repeated.Seq != made.Seq {
			t.Errorf("strict %v: revision %d and change %d, then %d and %d: %v", strict, first.Revision, made.Seq, again.Revision, repeated.Seq, err)
		}
		dry := by
		dry.DryRun = true
		if _, c, err := s.PutTenant(t.Context(), dry, ask, 0); err != nil || c.Seq != 0 {
			t.Errorf("strict %v: a dry run has change %d, %v", strict, c.Seq, err)
		}
	}
}

func TestSecondCreationOfTheFleetIsRefusedAsOne(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 1)
	if _, _, err := s.PutFleet(t.Context(), by, routemap.Settings{Fleet: "shop"}, 0); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("creation of what exists: %v", err)
	}
}

func TestStaleRevisionIsRefused(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	c := cell(1)
	c.Title = "first"
	got, _, err := s.PutCell(t.Context(), by, c, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Title = "second"
	if _, _, err := s.PutCell(t.Context(), by, c, 1); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("write at revision 1 of a record at %d: %v", got.Revision, err)
	}
	if _, _, err := s.PutCell(t.Context(), by, c, 0); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("creation of what exists: %v", err)
	}
}

func TestDryRunKeepsNothing(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	dry := by
	dry.DryRun = true
	before, _ := s.JournalEnd(t.Context())
	c, change, err := s.Drain(t.Context(), dry, "cell-001", 0)
	if err != nil || c.Admit != 0 || change.Seq != 0 {
		t.Errorf("dry drain: %v %+v %v", c.Admit, change, err)
	}
	if got, _ := s.Cell(t.Context(), "cell-001"); got.Admit != 100 {
		t.Errorf("admit is %d after a dry run", got.Admit)
	}
	if after, _ := s.JournalEnd(t.Context()); after != before {
		t.Errorf("a dry run left %d journal entries", after-before)
	}
	if s.Accepted().Cell("cell-001").Admit != 100 {
		t.Error("a dry run changed the accepted map")
	}
}

func TestNewCellTakesNoBucketThatHoldsTenants(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Strict: false}, 3)
	homes := map[cellway.TenantID]cellway.CellID{}
	for i := range 40 {
		tn, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0)
		if err != nil {
			t.Fatal(err)
		}
		homes[tn.ID] = tn.Cell
	}
	if _, _, err := s.PutCell(t.Context(), by, cell(4), 0); err != nil {
		t.Fatal(err)
	}
	for id, home := range homes {
		if r := s.Accepted().Lookup(cellway.Key(id)); r.Cell.ID != home {
			t.Fatalf("adding a cell moved %s to %s", id, r.Cell.ID)
		}
	}
	_, _, err := s.AssignBuckets(t.Context(), by)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok {
		t.Fatalf("moving buckets of a fleet that is neither strict nor stateless: %v", err)
	}
	call := by
	call.Confirm = gate.Digest
	plan, _, err := s.AssignBuckets(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if plan.After["cell-004"] == 0 || plan.Moved == 0 {
		t.Errorf("plan %+v gave the new cell nothing", plan)
	}
	for id, home := range homes {
		if r := s.Accepted().Lookup(cellway.Key(id)); r.Cell.ID != home {
			t.Errorf("assigning buckets moved %s from %s to %s", id, home, r.Cell.ID)
		}
	}
}
