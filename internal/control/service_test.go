package control_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

var by = control.Call{Who: "tester", Reason: "test"}

// signer is the same in all tests.
func signer() routemap.Signer {
	return routemap.LocalSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
}

func config(t testing.TB, st control.Store) control.Config {
	cfg := control.Config{Store: st, Signers: []routemap.Signer{signer()}}
	if _, measured := t.(*testing.B); !measured {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return cfg
}

// open starts a service over st; it publishes until the test ends.
func open(t testing.TB, st control.Store, sinks ...control.Sink) *control.Service {
	t.Helper()
	s, stop := start(t, st, sinks...)
	t.Cleanup(stop)
	return s
}

// start is open until stop is called, once or more.
func start(t testing.TB, st control.Store, sinks ...control.Sink) (s *control.Service, stop func()) {
	t.Helper()
	cfg := config(t, st)
	cfg.Sinks = sinks
	return startWith(t, cfg)
}

// startWith is start with all that a service may be told.
func startWith(t testing.TB, cfg control.Config) (s *control.Service, stop func()) {
	t.Helper()
	s, err := control.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	return s, func() { cancel(); <-done }
}

// fleet creates a fleet of n cells in s, with buckets assigned.
func fleet(t testing.TB, s *control.Service, set routemap.Settings, n int) {
	t.Helper()
	set.Fleet = "shop"
	if set.Mapping == routemap.Buckets && set.Buckets == 0 {
		set.Buckets = 256
	}
	set.Extractors = []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}
	if _, _, err := s.PutFleet(t.Context(), by, set, 0); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, _, err := s.PutCell(t.Context(), by, cell(i+1), 0); err != nil {
			t.Fatal(err)
		}
	}
	if set.Mapping == routemap.Buckets {
		if _, _, err := s.AssignBuckets(t.Context(), by); err != nil {
			t.Fatal(err)
		}
	}
}

func cell(i int) control.Cell {
	return control.Cell{Cell: cellway.Cell{
		ID: cellway.CellID(fmt.Sprintf("cell-%03d", i)), Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", 9000+i)}, State: cellway.CellActive,
	}}
}

// published waits for the version that contains c and returns its map.
func published(t testing.TB, s *control.Service, c control.Change) *routemap.Map {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for after := cellway.Version(0); ; {
		p, err := s.Await(ctx, after)
		if err != nil {
			t.Fatalf("change %d was not published: %v", c.Seq, err)
		}
		if p.Seq >= c.Seq {
			return p.Map
		}
		after = p.Map.Version()
	}
}

func TestFleetFromNothingToDrain(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 4)
	tenant, c, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c.Seq != 0 {
		t.Errorf("a tenant in its bucket's own cell changed the map: %+v", c)
	}
	_, c, err = s.Drain(t.Context(), by, tenant.Cell, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := published(t, s, c)
	r := m.Lookup("acme")
	if code, _ := m.Admit(&r); r.Cell.ID != tenant.Cell || code != cellway.CellDrained {
		t.Errorf("acme is in %v with code %q, want %s, cell_drained", r.Cell, code, tenant.Cell)
	}
}

func TestLastSlotGoesToOneOfManySignUps(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 0)
	c := cell(1)
	c.Capacity = control.Vector{"tenants": 3}
	if _, _, err := s.PutCell(t.Context(), by, c, 0); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		wg.Go(func() {
			_, _, errs[i] = s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0)
		})
	}
	wg.Wait()
	placed := 0
	for _, err := range errs {
		switch {
		case err == nil:
			placed++
		case !errors.Is(err, cellway.ErrNoRoom):
			t.Error(err)
		}
	}
	if placed != 3 {
		t.Errorf("%d tenants were placed in a cell for 3", placed)
	}
	if m := s.Accepted(); m.Keys() != 3 {
		t.Errorf("the map has %d keys, want 3", m.Keys())
	}
}
