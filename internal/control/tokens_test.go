package control_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
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

// An expired token lets nobody in, so it does not count as another admin's.
func TestExpiredAdminIsNoAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		ctx := t.Context()
		alice, secret, err := s.CreateToken(ctx, by, "alice", control.Admin, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		bob, bobs, err := s.CreateToken(ctx, by, "bob", control.Admin, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := s.Authenticate(ctx, bobs); !errors.Is(err, cellway.ErrForbidden) {
			t.Errorf("an expired token: %v", err)
		}
		if _, err := s.Authenticate(ctx, secret); err != nil {
			t.Error(err)
		}
		if err := s.DeleteToken(ctx, by, alice.ID); !errors.Is(err, cellway.ErrInUse) {
			t.Errorf("deleting the only admin's token that is good: %v", err)
		}
		if err := s.DeleteToken(ctx, by, bob.ID); err != nil {
			t.Errorf("deleting an expired one: %v", err)
		}
		if _, _, err := s.CreateToken(ctx, by, "carol", control.Viewer, time.Now().Add(-time.Second)); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("a token that has expired already: %v", err)
		}
	})
}

// No list and no journal entry has a secret or its hash.
func TestSecretsAreToldOnce(t *testing.T) {
	st := memstore.New()
	s := open(t, st)
	_, secret, err := s.CreateToken(t.Context(), by, "alice", control.Admin, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(dump(t, st), []byte(secret)) {
		t.Error("the store holds the secret")
	}
	list, err := s.Tokens(t.Context(), "", 10)
	if err != nil || len(list.Items) != 1 || list.Items[0].Hash != "" {
		t.Errorf("listed as %+v, %v", list.Items, err)
	}
	lines, _, err := s.Journal(t.Context(), 0, 10, "token/")
	if err != nil || len(lines) != 1 {
		t.Fatalf("journal: %+v, %v", lines, err)
	}
	var told control.Token
	if err := json.Unmarshal(lines[0].After, &told); err != nil || told.Hash != "" || told.Name != "alice" {
		t.Errorf("the journal tells of %+v, %v", told, err)
	}
}
