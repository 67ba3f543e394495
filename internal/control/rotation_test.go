package control_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// Keys rotate on a quiet fleet too: whoever starts with a new key has the map
// signed with it, once, and routers that trust only that key have a map.
func TestStartWithANewKeyPublishesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		first := open(t, st)
		fleet(t, first, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		before := first.Newest().Map
		second := routemap.LocalSigner(ed25519.NewKeyFromSeed([]byte("another seed of thirty-two bytes")))
		cfg := config(t, st)
		cfg.Signers = []routemap.Signer{second}
		s, err := control.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		<-done
		p := s.Newest()
		if err := (routemap.Keyring{{Key: second.Public()}}).Verify(p.Version.Manifest, false); err != nil {
			t.Error(err)
		}
		if p.Map.Version() != before.Version()+1 || !p.Map.Equal(before) {
			t.Errorf("map %v after %v, the same content: %t", p.Map.Version(), before.Version(), p.Map.Equal(before))
		}
	})
}

// An emergency is refused at the door as often as it takes.
func TestQuarantineIsNeverStoppedByTheGate(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		o, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.RemoveOverride(t.Context(), by, "acme", o.Revision); err != nil {
			t.Fatal(err)
		}
	}
	// What it did does not count against others either.
	if _, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Test, s.Accepted().Lookup("acme").Cell.ID), 0); errors.Is(err, cellway.ErrGate) {
		t.Error(err)
	}
}
