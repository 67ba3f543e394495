package control_test

import (
	"errors"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestAWriteThatChangesNothingLeavesNoTrace(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	set := cell(1)
	set.Capacity, set.Tags = control.Vector{"rps": 5}, map[string]string{"rack": "7"}
	first, err := s.Cell(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	full, _, err := s.PutCell(t.Context(), by, set, first.Revision)
	if err != nil {
		t.Fatal(err)
	}
	tenant, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Tier: "gold"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := s.Fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end, err := s.JournalEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set.Endpoints = append([]string{}, set.Endpoints...)
	if again, c, err := s.PutCell(t.Context(), by, set, full.Revision); err != nil || again.Revision != full.Revision || c.Seq != 0 || c.Upto == 0 || !c.Unchanged {
		t.Errorf("the cell is at %d, was at %d: %+v, %v", again.Revision, full.Revision, c, err)
	}
	if again, c, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Tier: "gold"}, tenant.Revision); err != nil || again.Revision != tenant.Revision || c.Seq != 0 || !c.Unchanged {
		t.Errorf("the tenant is at %d, was at %d: %+v, %v", again.Revision, tenant.Revision, c, err)
	}
	if again, c, err := s.PutFleet(t.Context(), by, settings.Settings, settings.Revision); err != nil || again.Revision != settings.Revision || c.Seq != 0 || !c.Unchanged {
		t.Errorf("the fleet is at %d, was at %d: %+v, %v", again.Revision, settings.Revision, c, err)
	}
	if now, _ := s.JournalEnd(t.Context()); now != end {
		t.Errorf("the journal has %d more entries", now-end)
	}
	for name, write := range map[string]func(cellway.Revision) error{
		"cell": func(r cellway.Revision) error { _, _, err := s.PutCell(t.Context(), by, set, r); return err },
		"tenant": func(r cellway.Revision) error {
			_, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Tier: "gold"}, r)
			return err
		},
		"fleet": func(r cellway.Revision) error {
			_, _, err := s.PutFleet(t.Context(), by, settings.Settings, r)
			return err
		},
	} {
		if err := write(99); !errors.Is(err, cellway.ErrConflict) {
			t.Errorf("%s at another revision: %v", name, err)
		}
	}
	set.Title = "one"
	if again, c, err := s.PutCell(t.Context(), by, set, full.Revision); err != nil || again.Revision == full.Revision || c.Unchanged {
		t.Errorf("another title leaves the cell at %d, %v", again.Revision, err)
	}
}

// Who only tries a change is told all of it, with what a person must confirm.
func TestADryRunOfWhatMustBeConfirmedTellsItAll(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Drain(t.Context(), by, "cell-002", 0)
	gate, ok := errors.AsType[*control.GateError](err)
	if !ok {
		t.Fatalf("%v, want a question", err)
	}
	dry := by
	dry.DryRun = true
	_, c, err := s.Drain(t.Context(), dry, "cell-002", 0)
	if err != nil || len(c.Causes) != 1 || c.Causes[0] != gate.Causes[0] || c.Digest != gate.Digest || c.After == nil {
		t.Errorf("%+v, %v", c, err)
	}
	dry.Confirm = gate.Digest
	if _, c, err := s.Drain(t.Context(), dry, "cell-002", 0); err != nil || len(c.Causes) != 0 {
		t.Errorf("confirmed: %+v, %v", c, err)
	}
	if now, _ := s.Cell(t.Context(), "cell-002"); now.Admit != 100 {
		t.Errorf("a dry run left an admit of %d", now.Admit)
	}
}
