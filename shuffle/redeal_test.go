package shuffle_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// redealAll redeals whoever does not fit, and returns everybody's hand.
func redealAll(t *testing.T, r *shuffle.Registry, s *shuffle.Snapshot, m *shuffle.MemRegistry) map[string]shuffle.Holding {
	t.Helper()
	for h, err := range r.Unfit(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Redeal(t.Context(), s, h.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	for h, err := range r.Unfit(t.Context(), s) {
		t.Errorf("%q still does not fit: %v, %v", h.Tenant, h.Members, err)
	}
	all := map[string]shuffle.Holding{}
	var list []shuffle.Holding
	for h, err := range m.Holdings(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[h.Tenant] = h
		list = append(list, h)
	}
	wantApart(t, s, list, 2)
	return all
}

func without(workers []shuffle.Worker, id string) []shuffle.Worker {
	return slices.DeleteFunc(slices.Clone(workers), func(w shuffle.Worker) bool { return w.ID == id })
}

func TestRegistryLasting(t *testing.T) {
	workers := named(60, 3)
	cfg := shuffle.Config{Salt: "x", Size: 5, Workers: workers}
	m := new(shuffle.MemRegistry)
	r := registry(t, shuffle.RegistryConfig{Store: m, Overlap: 2})
	s := mustSnapshot(t, cfg)
	before := map[string]shuffle.Holding{}
	for _, tenant := range names("tenant-", 400) {
		before[tenant] = deal(t, r, s, tenant)
	}
	drained := slices.Clone(workers)
	drained[7].Weight = 0
	for what, now := range map[string][]shuffle.Worker{"removed": without(workers, "w-7"), "drained": drained} {
		cfg.Workers = now
		after := redealAll(t, r, mustSnapshot(t, cfg), m)
		for tenant, old := range before {
			lost := slices.Contains(old.Members, "w-7")
			kept := shared(old.Members, after[tenant].Members)
			switch {
			case !lost && (after[tenant].Revision != old.Revision || kept != 5):
				t.Errorf("%s: %q held %v and was given %v for nothing", what, tenant, old.Members, after[tenant].Members)
			case lost && kept != 4:
				t.Errorf("%s: %q held %v and was given %v", what, tenant, old.Members, after[tenant].Members)
			case lost && after[tenant].Attempt != shuffle.Searched:
				t.Errorf("%s: %q holds a hand that is no candidate, marked as %d", what, tenant, after[tenant].Attempt)
			}
		}
		// Back to where it was, for the other way.
		for tenant := range before {
			if err := r.Release(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		}
		for _, tenant := range names("tenant-", 400) {
			before[tenant] = deal(t, r, s, tenant)
		}
	}
}

func TestRedealGrowsAndShrinksHands(t *testing.T) {
	cfg := shuffle.Config{Salt: "x", Size: 4, Workers: named(60, 3)}
	m := new(shuffle.MemRegistry)
	r := registry(t, shuffle.RegistryConfig{Store: m, Overlap: 2})
	before := map[string]shuffle.Holding{}
	for _, tenant := range names("tenant-", 100) {
		before[tenant] = deal(t, r, mustSnapshot(t, cfg), tenant)
	}
	for _, size := range []int{6, 7, 3} {
		cfg.Size = size
		after := redealAll(t, r, mustSnapshot(t, cfg), m)
		for tenant, old := range before {
			if kept := shared(old.Members, after[tenant].Members); kept != min(len(old.Members), size) {
				t.Errorf("%q held %v, now of size %d %v", tenant, old.Members, size, after[tenant].Members)
			}
		}
		before = after
	}
}

func TestRedealGivesAWhollyNewHandWhereItMust(t *testing.T) {
	// With a new zone a balanced hand has room for fewer of the old ones.
	cfg := shuffle.Config{Salt: "x", Size: 4, Workers: named(16, 2)}
	m := new(shuffle.MemRegistry)
	r := registry(t, shuffle.RegistryConfig{Store: m, Overlap: 2})
	for _, tenant := range names("tenant-", 20) {
		deal(t, r, mustSnapshot(t, cfg), tenant)
	}
	cfg.Workers = named(32, 4)
	changed := 0
	for _, h := range redealAll(t, r, mustSnapshot(t, cfg), m) {
		if h.Version == mustSnapshot(t, cfg).Version() {
			changed++
		}
	}
	if changed < 5 {
		t.Errorf("%d hands of 20 changed with the zones", changed)
	}

	// a holds 0123, and b all that could go with three of them.
	cfg = shuffle.Config{Size: 4, Workers: named(8, 1)}
	m = new(shuffle.MemRegistry)
	r = registry(t, shuffle.RegistryConfig{Store: m, Overlap: 2, Attempts: 1})
	put := func(tenant string, members ...string) {
		t.Helper()
		claims, err := shuffle.Claims(members, 2)
		if err == nil {
			_, err = m.Reserve(t.Context(), shuffle.Holding{Tenant: tenant, Members: members}, claims)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("a", "w-0", "w-1", "w-2", "w-3")
	put("b", "w-0", "w-1", "w-4", "w-5")
	put("c", "w-1", "w-2", "w-4", "w-6")
	put("d", "w-0", "w-2", "w-5", "w-6")
	put("e", "w-0", "w-1", "w-6", "w-7")
	put("f", "w-1", "w-2", "w-5", "w-7")
	put("g", "w-0", "w-2", "w-4", "w-7")
	cfg.Workers = without(cfg.Workers, "w-3")
	s := mustSnapshot(t, cfg)
	h, err := r.Redeal(t.Context(), s, "a")
	if err != nil || shared(h.Members, []string{"w-0", "w-1", "w-2"}) == 3 {
		t.Errorf("a was given %v, %v", h.Members, err)
	}
}

func TestRedealThatFindsNothingLeavesTheHand(t *testing.T) {
	cfg := shuffle.Config{Size: 4, Workers: named(7, 1)}
	m := new(shuffle.MemRegistry)
	r := registry(t, shuffle.RegistryConfig{Store: m, Overlap: 1})
	var list []shuffle.Holding
	for i := 0; ; i++ {
		h, err := r.Deal(t.Context(), mustSnapshot(t, cfg), names("t", i+1)[i])
		if errors.Is(err, shuffle.ErrExhausted) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	if len(list) != 2 {
		t.Fatalf("%d hands of 4 of 7 that share one", len(list))
	}
	cfg.Workers = without(cfg.Workers, list[0].Members[0])
	s := mustSnapshot(t, cfg)
	for _, old := range list {
		h, err := r.Redeal(t.Context(), s, old.Tenant)
		now, _ := r.Holding(t.Context(), old.Tenant)
		if slices.Contains(old.Members, list[0].Members[0]) {
			if !errors.Is(err, shuffle.ErrExhausted) || now.Revision != old.Revision {
				t.Errorf("%q: %v, %v; it holds %+v", old.Tenant, h, err, now)
			}
		} else if err != nil || h.Revision != old.Revision {
			t.Errorf("%q: %v, %v; want the hand it had", old.Tenant, h, err)
		}
	}
}
