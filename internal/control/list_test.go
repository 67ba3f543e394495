package control_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A list with filters gives each match once, whole pages at a time, in order.
func TestPagesOfTenantsWithFilters(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	want := map[string][]cellway.TenantID{}
	for i := range 60 {
		tier := []string{"", "gold", "silver"}[i%3]
		tn, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%02d", i)), Tier: tier}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 { // changed tier, and one of them deleted
			if tn, _, err = s.PutTenant(t.Context(), by, control.Tenant{ID: tn.ID, Tier: "gold"}, tn.Revision); err != nil {
				t.Fatal(err)
			}
			if i == 50 {
				if _, _, err := s.DeleteTenant(t.Context(), by, tn.ID, tn.Revision); err != nil {
					t.Fatal(err)
				}
				continue
			}
		}
		for _, key := range []string{"|", string(tn.Cell) + "|", "|" + tn.Tier, string(tn.Cell) + "|" + tn.Tier} {
			want[key] = append(want[key], tn.ID)
		}
	}
	for _, cell := range []cellway.CellID{"", "cell-001", "cell-002", "cell-003"} {
		for _, tier := range []string{"", "gold", "silver", "bronze"} {
			var got []cellway.TenantID
			for after := ""; ; {
				p, err := s.Tenants(t.Context(), cell, tier, after, 7)
				if err != nil {
					t.Fatal(err)
				}
				if p.Next != "" && len(p.Items) != 7 {
					t.Errorf("a page in the middle has %d tenants", len(p.Items))
				}
				for _, tn := range p.Items {
					got = append(got, tn.ID)
				}
				if after = p.Next; after == "" {
					break
				}
			}
			key := string(cell) + "|" + tier
			expect := want[key]
			if tier == "" && cell == "" {
				expect = want["|"]
			}
			slices.Sort(expect)
			if expect = slices.Compact(expect); !slices.Equal(got, expect) {
				t.Errorf("cell %q, tier %q: %v, want %v", cell, tier, got, expect)
			}
		}
	}
}

func TestJournalOfOneSubjectGoesOnToItsEnd(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	for i := range 30 {
		if _, _, err := s.Drain(t.Context(), by, "cell-001", uint8(90-i)); err != nil {
			t.Fatal(err)
		}
		register(t, s, cellway.TenantID(fmt.Sprintf("t%02d", i)))
	}
	var acts []string
	end, err := s.JournalEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for after := uint64(0); after < end; {
		lines, next, err := s.Journal(t.Context(), after, 7, "cell/cell-001")
		if err != nil || next <= after {
			t.Fatalf("after %d: %d, %v", after, next, err)
		}
		for _, l := range lines {
			acts = append(acts, l.Act)
		}
		after = next
	}
	if len(acts) != 31 || acts[0] != "cell.set" || acts[30] != "cell.drain" {
		t.Errorf("%d acts: %v", len(acts), acts)
	}
}

// Whatever a person is asked to confirm after a restore, nothing but drains,
// tokens and routers goes through until then, also as a dry run.
func TestRestoredStoreRefusesEveryActButDrains(t *testing.T) {
	st := memstore.New()
	first, stop := start(t, st)
	actsOn(t, first)
	stop()
	if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
		t.Fatal(err)
	}
	s := open(t, st)
	for name, act := range acts(t, s) {
		call := by
		call.DryRun = true
		err := act(call)
		if gate, ok := errors.AsType[*control.GateError](err); ok {
			call.Confirm = gate.Digest
			err = act(call)
		}
		switch name {
		case "cell.drain", "token.create", "token.delete", "router.forget":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if !errors.Is(err, cellway.ErrNotReady) {
				t.Errorf("%s: %v, want ErrNotReady", name, err)
			}
		}
	}
}
