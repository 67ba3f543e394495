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

// confirmed repeats a write that was refused by the gate, with its digest.
func confirmed(t testing.TB, do func(control.Call) error) {
	t.Helper()
	err := do(by)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok {
		t.Fatalf("got %v, want a question", err)
	}
	call := by
	call.Confirm = gate.Digest
	if err := do(call); err != nil {
		t.Fatalf("confirmed: %v", err)
	}
}

// put sets an override and fails the test if it is refused.
func put(t testing.TB, s *control.Service, e cellway.Entry) control.Override {
	t.Helper()
	old, err := s.Override(t.Context(), e.Key)
	if err != nil && !errors.Is(err, cellway.ErrNotFound) {
		t.Fatal(err)
	}
	o, _, err := s.PutOverride(t.Context(), by, e, old.Revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func register(t testing.TB, s *control.Service, id cellway.TenantID) control.Tenant {
	t.Helper()
	tn, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: id}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tn
}

// A part was pinned before its tenant was registered elsewhere: its data is
// where the pin is, and no override takes it away from there.
func TestPartOfATenantStaysWithItsData(t *testing.T) {
	for _, set := range []routemap.Settings{{}, {Strict: true}, {Mapping: routemap.Full}} {
		t.Run(fmt.Sprintf("%v strict=%t", set.Mapping, set.Strict), func(t *testing.T) {
			s := open(t, memstore.New())
			fleet(t, s, set, 3)
			var away cellway.CellID
			if home := s.Accepted().Lookup("acme").Cell; home != nil {
				away = other(home.ID, 3)
				confirmed(t, func(call control.Call) error {
					_, _, err := s.PutOverride(t.Context(), call, override("acme/eu", cellway.Pin, away), 0)
					return err
				})
			} else {
				away = "cell-003"
				put(t, s, override("acme/eu", cellway.Pin, away)) // nobody has it
				put(t, s, override("acme", cellway.Pin, "cell-001"))
			}
			acme := register(t, s, "acme")
			if acme.Cell == away {
				t.Fatalf("acme is in %s too", away)
			}
			o, _ := s.Override(t.Context(), "acme/eu")
			if _, _, err := s.PutOverride(t.Context(), by, override("acme/eu", cellway.Pin, acme.Cell), o.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
				t.Errorf("pin to the tenant's own home: %v, want ErrNeedsMove", err)
			}
			if _, _, err := s.RemoveOverride(t.Context(), by, "acme/eu", o.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
				t.Errorf("fall back to the tenant's home: %v, want ErrNeedsMove", err)
			}
			// Quarantined, it is nowhere, and its data is where it was.
			o = put(t, s, override("acme/eu", cellway.Quarantine, ""))
			if _, _, err := s.RemoveOverride(t.Context(), by, "acme/eu", o.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
				t.Errorf("freed to the tenant's home: %v, want ErrNeedsMove", err)
			}
			// Quarantine of the tenant is no way round either.
			whole, _ := s.Override(t.Context(), "acme")
			q, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), whole.Revision)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.RemoveOverride(t.Context(), by, "acme/eu", o.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
				t.Errorf("removed while its tenant is quarantined: %v, want ErrNeedsMove", err)
			}
			if _, _, err := s.RemoveOverride(t.Context(), by, "acme", q.Revision); err != nil {
				t.Errorf("the tenant freed: %v", err)
			}
			o = put(t, s, override("acme/eu", cellway.Pin, away))
			if r := s.Accepted().Lookup("acme/eu"); r.Cell.ID != away {
				t.Errorf("acme/eu is in %s, want %s", r.Cell.ID, away)
			}
			// New parts follow the tenant, so they may be pinned to its home only.
			put(t, s, override("acme/us", cellway.Pin, acme.Cell))
			if _, _, err := s.PutOverride(t.Context(), by, override("acme/jp", cellway.Pin, away), 0); !errors.Is(err, cellway.ErrNeedsMove) {
				t.Errorf("pin of a new part elsewhere: %v, want ErrNeedsMove", err)
			}
		})
	}
}

// Whatever is done to an unregistered key, one that may be in use is sent
// elsewhere only when a person says so.
func TestUnregisteredKeyRemembersWhereItWasServed(t *testing.T) {
	for _, set := range []routemap.Settings{{}, {Strict: true}, {Mapping: routemap.Full}} {
		t.Run(fmt.Sprintf("%v strict=%t", set.Mapping, set.Strict), func(t *testing.T) {
			s := open(t, memstore.New())
			fleet(t, s, set, 3)
			at := cellway.CellID("cell-001")
			if r := s.Accepted().Lookup("walk-in"); r.Cell != nil {
				at = r.Cell.ID
			}
			put(t, s, override("walk-in", cellway.Pin, at))
			put(t, s, override("walk-in", cellway.Quarantine, ""))
			o, _ := s.Override(t.Context(), "walk-in")
			_, _, err := s.PutOverride(t.Context(), by, override("walk-in", cellway.Pin, other(at, 3)), o.Revision)
			if gate, ok := errors.AsType[*control.GateError](err); !ok || gate.Causes[0].Name != "unregistered_key_moved" {
				t.Errorf("pinned elsewhere out of quarantine: %v, want a question", err)
			}
			put(t, s, override("walk-in", cellway.Pin, at)) // back is no question
		})
	}
}

func TestNamesThatHaveNoDataTakeNoOverride(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	register(t, s, "acme")
	gone := register(t, s, "gone")
	if _, _, err := s.PutAlias(t.Context(), by, cellway.Alias{Name: "slug", Target: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.DeleteTenant(t.Context(), by, "gone", gone.Revision); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[cellway.Key]error{"slug": cellway.ErrInvalid, "slug/eu": cellway.ErrInvalid, "gone": cellway.ErrExists, "gone/eu": cellway.ErrExists} {
		if _, _, err := s.PutOverride(t.Context(), by, override(key, cellway.Quarantine, ""), 0); !errors.Is(err, want) {
			t.Errorf("override of %s: %v, want %v", key, err, want)
		}
	}
}

func TestCatchAllKeyIsMovedOnlyOnConfirmation(t *testing.T) {
	s := open(t, memstore.New())
	if _, _, err := s.PutCell(t.Context(), by, cell(1), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutCell(t.Context(), by, cell(2), 0); err != nil {
		t.Fatal(err)
	}
	set := routemap.Settings{Fleet: "shop", Mapping: routemap.Full, CatchAll: "cell-001"}
	if _, _, err := s.PutFleet(t.Context(), by, set, 0); err != nil {
		t.Fatal(err)
	}
	put(t, s, override("walk-in", cellway.Pin, "cell-001"))
	confirmed(t, func(call control.Call) error {
		_, _, err := s.PutOverride(t.Context(), call, override("walk-in", cellway.Pin, "cell-002"), 1)
		return err
	})
	o, err := s.Override(t.Context(), "walk-in")
	if err != nil || o.Data != "cell-002" {
		t.Errorf("walk-in has its data in %q, %v; want cell-002", o.Data, err)
	}
	confirmed(t, func(call control.Call) error {
		_, _, err := s.RemoveOverride(t.Context(), call, "walk-in", o.Revision)
		return err
	})
	if c, _ := s.Cell(t.Context(), "cell-001"); true {
		if _, _, err := s.Retire(t.Context(), by, c.ID, c.Revision); !errors.Is(err, cellway.ErrInUse) {
			t.Errorf("the catch-all cell was retired: %v", err)
		}
	}
}

func TestResidencyBindsOverridesAndRegions(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Stateless: true}, 0+2)
	for i, region := range []string{"eu", "us"} {
		c := cell(i + 1)
		c.Region = region
		if _, _, err := s.PutCell(t.Context(), by, c, 1+0*cellway.Revision(i)); err != nil {
			t.Fatal(err)
		}
	}
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Residency: "eu"}, 0)
	if err != nil || acme.Cell != "cell-001" {
		t.Fatalf("acme is in %s, %v", acme.Cell, err)
	}
	if _, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Pin, "cell-002"), 0); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a tenant that must stay in eu was pinned to us: %v", err)
	}
	c, _ := s.Cell(t.Context(), "cell-001")
	c.Region = "us"
	if _, _, err := s.PutCell(t.Context(), by, c.Cell, c.Revision); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("the region of a cell was renamed under a tenant that must stay in it: %v", err)
	}
}

func TestCellWithQuarantinedDataIsNotRetired(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	put(t, s, override("walk-in", cellway.Pin, "cell-002"))
	put(t, s, override("walk-in", cellway.Quarantine, ""))
	c, _ := s.Cell(t.Context(), "cell-002")
	if _, _, err := s.Retire(t.Context(), by, c.ID, c.Revision); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("retired with the data of a quarantined key: %v", err)
	}
}

// An override is set before the tenant comes: then that says where it goes.
func TestTenantFollowsTheOverrideThatWasThereFirst(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	to := other(s.Accepted().Lookup("acme").Cell.ID, 3)
	confirmed(t, func(call control.Call) error {
		_, _, err := s.PutOverride(t.Context(), call, override("acme", cellway.Heavy, to), 0)
		return err
	})
	if acme := register(t, s, "acme"); acme.Cell != to {
		t.Errorf("acme was placed in %s, its override says %s", acme.Cell, to)
	}
	o, _ := s.Override(t.Context(), "acme")
	if _, _, err := s.RemoveOverride(t.Context(), by, "acme", o.Revision); err != nil {
		t.Fatal(err)
	}
	if r := s.Accepted().Lookup("acme"); r.Cell.ID != to || r.Kind != cellway.Placed {
		t.Errorf("without it acme is in %s by %v", r.Cell.ID, r.Kind)
	}
	// Quarantined before it came, it is placed like any other, and freed there.
	put(t, s, override("beta", cellway.Quarantine, ""))
	beta := register(t, s, "beta")
	if r := s.Accepted().Lookup("beta"); r.Code != cellway.KeyQuarantined {
		t.Errorf("beta answers %q", r.Code)
	}
	o, _ = s.Override(t.Context(), "beta")
	if o.Data != beta.Cell {
		t.Errorf("its override says that the data is in %s, it is in %s", o.Data, beta.Cell)
	}
	if _, _, err := s.RemoveOverride(t.Context(), by, "beta", o.Revision); err != nil {
		t.Fatal(err)
	}
	if r := s.Accepted().Lookup("beta"); r.Cell.ID != beta.Cell {
		t.Errorf("beta was freed to %s, want %s", r.Cell.ID, beta.Cell)
	}
}

func TestDeletedTenantComesBackToItsData(t *testing.T) {
	for _, strict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, memstore.New())
			fleet(t, s, routemap.Settings{Strict: strict}, 2)
			acme := register(t, s, "acme")
			register(t, s, "beta")
			put(t, s, override("acme/eu", cellway.Pin, acme.Cell))
			gone, _, err := s.DeleteTenant(t.Context(), by, "acme", acme.Revision)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []cellway.Key{"acme", "acme/eu", "acme/us"} {
				if r := s.Accepted().Lookup(key); r.Code != cellway.KeyGone {
					t.Errorf("%s answers %q after the deletion", key, r.Code)
				}
			}
			before := s.Accepted().Lookup("acme").Epoch
			back, _, err := s.UndeleteTenant(t.Context(), by, "acme", gone.Revision)
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Accepted().Lookup("acme"); r.Code != "" || r.Cell.ID != acme.Cell || r.Epoch <= before {
				t.Errorf("brought back: %q in %v at %v after %v", r.Code, r.Cell, r.Epoch, before)
			}
			if _, _, err := s.UndeleteTenant(t.Context(), by, "acme", back.Revision); !errors.Is(err, cellway.ErrExists) {
				t.Errorf("brought back twice: %v", err)
			}
			time.Sleep(time.Second)
			agree(t, s)
		})
	}
}

// The whole of a tenant goes, however many overrides it has, and asks, since
// keys are lost.
func TestTenantWithManyOverridesIsDeletedWhole(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	acme := register(t, s, "acme")
	const parts = 1010 // more than a page of records
	for i := range parts {
		put(t, s, override(cellway.Key(fmt.Sprintf("acme/p%04d", i)), cellway.Pin, acme.Cell))
	}
	var c control.Change
	confirmed(t, func(call control.Call) (err error) {
		_, c, err = s.DeleteTenant(t.Context(), call, "acme", acme.Revision)
		return err
	})
	if left, err := s.Overrides(t.Context(), "", "", 10); err != nil || len(left.Items) > 0 {
		t.Errorf("%d overrides are left, %v", len(left.Items), err)
	}
	if m := s.Accepted(); m.Keys() != 0 || m.Lookup("acme/p1009").Code != cellway.KeyGone {
		t.Errorf("the map has %d keys, a part answers %q", m.Keys(), m.Lookup("acme/p1009").Code)
	}
	if c.Counts.EntriesLost != parts+1 {
		t.Errorf("%d keys are lost by the counts, want %d", c.Counts.EntriesLost, parts+1)
	}
}
