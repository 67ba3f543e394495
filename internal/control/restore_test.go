package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A tenant that its bucket places changes no map, and neither does a cell's
// capacity: after a restore they wait all the same.
func TestRestoredStoreRefusesWhatChangesNoMapToo(t *testing.T) {
	st := memstore.New()
	fleet(t, open(t, st), routemap.Settings{}, 2)
	if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
		t.Fatal(err)
	}
	s := open(t, st)
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a sign-up: %v, want it refused", err)
	}
	c, err := s.Cell(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	c.Capacity = control.Vector{"tenants": 5}
	if _, _, err := s.PutCell(t.Context(), by, c.Cell, c.Revision); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a capacity: %v, want it refused", err)
	}
	// Whoever mends this needs a way in.
	if _, _, err := s.CreateToken(t.Context(), by, "alice", control.Admin, time.Time{}); err != nil {
		t.Errorf("a token: %v", err)
	}
	state, err := s.RestoreState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); err != nil {
		t.Errorf("a sign-up after the confirmation: %v", err)
	}
}

func TestCreatingACellThatIsThereIsTold(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 1)
	c := cell(1)
	c.State = cellway.CellNew // no reason to complain of another thing first
	if _, _, err := s.PutCell(t.Context(), by, c, 0); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("got %v, want a conflict of revisions", err)
	}
}
