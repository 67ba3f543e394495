// Package registrytest holds implementations of [shuffle.RegistryStore] to its
// contract.
//
// Each rule of the contract is a subtest, named by what must hold. A store's
// own tests call [Run] and add what only they can know.
package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// A Maker makes stores for the tests.
type Maker struct {
	// Open returns an empty store, closed at the end of the test if it must be.
	Open func(t *testing.T) shuffle.RegistryStore

	// Again returns another handle on what s stores, as another process would
	// have. s is not closed. nil if the implementation can't be shared.
	Again func(t *testing.T, s shuffle.RegistryStore) shuffle.RegistryStore

	// Reopen closes s and opens again what it kept. nil if the implementation
	// keeps nothing beyond its process.
	Reopen func(t *testing.T, s shuffle.RegistryStore) shuffle.RegistryStore
}

// Run tests the store that m makes.
func Run(t *testing.T, m Maker) {
	for _, group := range []struct {
		name  string
		tests []rule
	}{
		{"rules", bindings()},
		{"holdings", holdings()},
		{"claims", claims()},
		{"concurrency", concurrency()},
		{"faults", faults()},
		{"model", models()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, r := range group.tests {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.test(t, m)
				})
			}
		})
	}
}

// A rule is one sentence of the contract with its test.
type rule struct {
	name string
	test func(t *testing.T, m Maker)
}

// claim returns a claim that differs for each number.
func claim(n int) shuffle.Claim { return shuffle.Claim{byte(n), byte(n >> 8), byte(n >> 16), 0xff} }

func claimsOf(numbers ...int) []shuffle.Claim {
	all := make([]shuffle.Claim, len(numbers))
	for i, n := range numbers {
		all[i] = claim(n)
	}
	return all
}

// reserve reserves a holding that must be accepted.
func reserve(t *testing.T, s shuffle.RegistryStore, tenant string, at uint64, numbers ...int) shuffle.Holding {
	t.Helper()
	h := shuffle.Holding{Tenant: tenant, Members: []string{"w-1", "w-2"}, Attempt: 3, Version: "v", Revision: at}
	rev, err := s.Reserve(t.Context(), h, claimsOf(numbers...))
	if err != nil {
		t.Fatalf("reserve %v for %q at %d: %v", numbers, tenant, at, err)
	}
	h.Revision = rev
	return h
}

// refuse reserves a holding that must be refused.
func refuse(t *testing.T, s shuffle.RegistryStore, tenant string, at uint64, want error, numbers ...int) {
	t.Helper()
	h := shuffle.Holding{Tenant: tenant, Members: []string{"refused"}, Revision: at}
	if rev, err := s.Reserve(t.Context(), h, claimsOf(numbers...)); !errors.Is(err, want) {
		t.Errorf("reserve %v for %q at %d = %d, %v; want %v", numbers, tenant, at, rev, err, want)
	}
}

// wantHolding checks what the tenant of want holds.
func wantHolding(t *testing.T, s shuffle.RegistryStore, want shuffle.Holding) {
	t.Helper()
	if got, err := s.Holding(t.Context(), want.Tenant); err != nil || !equal(got, want) {
		t.Errorf("holding of %q is %+v, %v; want %+v", want.Tenant, got, err, want)
	}
}

// wantNone checks that a tenant holds nothing.
func wantNone(t *testing.T, s shuffle.RegistryStore, tenant string) {
	t.Helper()
	if got, err := s.Holding(t.Context(), tenant); !errors.Is(err, shuffle.ErrNoHand) {
		t.Errorf("holding of %q is %+v, %v; want none", tenant, got, err)
	}
}

func wantErr(t *testing.T, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", doing, err, want)
	}
}

func equal(a, b shuffle.Holding) bool {
	return a.Tenant == b.Tenant && slices.Equal(a.Members, b.Members) && a.Attempt == b.Attempt && a.Version == b.Version && a.Revision == b.Revision
}

// all returns every holding.
func all(t *testing.T, s shuffle.RegistryStore) (list []shuffle.Holding) {
	t.Helper()
	for h, err := range s.Holdings(t.Context()) {
		if err != nil {
			t.Fatalf("holdings: %v", err)
		}
		list = append(list, h)
	}
	return list
}

// wantCount checks the number of holdings in both ways to learn it.
func wantCount(t *testing.T, s shuffle.RegistryStore, want int) {
	t.Helper()
	if n, err := s.Count(t.Context()); n != want || err != nil {
		t.Errorf("count is %d, %v; want %d", n, err, want)
	}
	if n := len(all(t, s)); n != want {
		t.Errorf("%d holdings are listed, want %d", n, want)
	}
}

// wantApart checks the promise of a registry: no two hands share more than
// overlap workers. It returns how many there are.
func wantApart(t *testing.T, s shuffle.RegistryStore, size, overlap int) int {
	t.Helper()
	list := all(t, s)
	for i, a := range list {
		if members := slices.Compact(slices.Sorted(slices.Values(a.Members))); len(members) != size || len(a.Members) != size {
			t.Errorf("%q holds %v, want %d workers", a.Tenant, a.Members, size)
		}
		for _, b := range list[:i] {
			shared := 0
			for _, w := range a.Members {
				if slices.Contains(b.Members, w) {
					shared++
				}
			}
			if shared > overlap {
				t.Errorf("%q and %q share %d: %v, %v", a.Tenant, b.Tenant, shared, a.Members, b.Members)
			}
		}
	}
	return len(list)
}

// snapshot returns one of n workers in so many zones.
func snapshot(t *testing.T, n, zones, size int) *shuffle.Snapshot {
	t.Helper()
	cfg := shuffle.Config{Salt: "registrytest", Size: size}
	for i := range n {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: fmt.Sprintf("w-%02d", i), Zone: fmt.Sprintf("z%d", i%zones), Weight: 1})
	}
	s, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// registry returns one over s.
func registry(t *testing.T, s shuffle.RegistryStore, overlap int) *shuffle.Registry {
	t.Helper()
	r, err := shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: s, Overlap: overlap})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
