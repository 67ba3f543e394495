package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
)

func TestNobodyLocksEverybodyOut(t *testing.T) {
	s := open(t, memstore.New())
	ctx := t.Context()
	call := by
	if _, _, err := s.CreateToken(ctx, call, "router-1", control.RouterIs, time.Time{}); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a router's token as the first: %v, want it refused", err)
	}
	admin, secret, err := s.CreateToken(ctx, call, "alice", control.Admin, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Authenticate(ctx, secret); err != nil || got.ID != admin.ID || got.Hash != "" {
		t.Errorf("Authenticate = %+v, %v", got, err)
	}
	other, _, err := s.CreateToken(ctx, call, "router-1", control.RouterIs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteToken(ctx, call, admin.ID); !errors.Is(err, cellway.ErrInUse) {
		t.Errorf("deleting the only admin's token: %v, want it refused", err)
	}
	for _, id := range []string{other.ID, admin.ID} {
		if err := s.DeleteToken(ctx, call, id); err != nil {
			t.Errorf("deleting %s: %v", id, err)
		}
	}
	if _, err := s.Authenticate(ctx, secret); !errors.Is(err, cellway.ErrForbidden) {
		t.Errorf("a deleted token: %v, want it refused", err)
	}
}
