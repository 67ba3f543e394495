package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func concurrency() []rule {
	return []rule{
		{"of many who want one claim, one gets it", func(t *testing.T, m Maker) {
			s := m.Open(t)
			handles := share(t, m, s)
			for round := range 10 {
				var won atomic.Int32
				var wg sync.WaitGroup
				for i := range 16 {
					wg.Go(func() {
						h := shuffle.Holding{Tenant: fmt.Sprintf("t-%d-%d", round, i), Members: []string{"w"}}
						// The last claim is what all of them want.
						_, err := handles[i%len(handles)].Reserve(t.Context(), h, claimsOf(1000+100*round+i, round))
						switch {
						case err == nil:
							won.Add(1)
						case !errors.Is(err, shuffle.ErrOverlap):
							t.Errorf("reserve: %v", err)
						}
					})
				}
				wg.Wait()
				if won.Load() != 1 {
					t.Errorf("%d got the claim", won.Load())
				}
			}
			wantCount(t, s, 10)
		}},
		{"of many who give one tenant a hand, one does", func(t *testing.T, m Maker) {
			s := m.Open(t)
			handles := share(t, m, s)
			var won atomic.Int32
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					_, err := handles[i%len(handles)].Reserve(t.Context(), shuffle.Holding{Tenant: "a"}, claimsOf(i))
					switch {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, shuffle.ErrChanged):
						t.Errorf("reserve: %v", err)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Errorf("%d gave it one", won.Load())
			}
			wantCount(t, s, 1)
		}},
		{"racing sign-ups never overlap too much", func(t *testing.T, m Maker) {
			// 4 of 16 with 2 shared: at most 140 hands, so that they crowd.
			s := m.Open(t)
			handles := share(t, m, s)
			workers := snapshot(t, 16, 1, 4)
			var next, full atomic.Int32
			var wg sync.WaitGroup
			for i := range 8 {
				r := registry(t, handles[i%len(handles)], 2)
				wg.Go(func() {
					for n := next.Add(1); n <= 110; n = next.Add(1) {
						// Each tenant signs up twice.
						h, err := r.Deal(t.Context(), workers, fmt.Sprint("tenant-", n/2))
						switch {
						case errors.Is(err, shuffle.ErrExhausted):
							full.Add(1)
						case err != nil:
							t.Errorf("deal: %v", err)
						case n%7 == 0:
							if err := r.Release(t.Context(), h.Tenant); err != nil && !errors.Is(err, shuffle.ErrNoHand) {
								t.Errorf("release: %v", err)
							}
						}
					}
				})
			}
			wg.Wait()
			n := wantApart(t, s, 4, 2)
			if full.Load() > 0 || n < 40 {
				t.Errorf("%d hold hands, %d were told that none is left", n, full.Load())
			}
		}},
		{"workers leave while tenants come", func(t *testing.T, m Maker) {
			s := m.Open(t)
			handles := share(t, m, s)
			before, after := snapshot(t, 25, 1, 4), snapshot(t, 24, 1, 4)
			r := registry(t, s, 2)
			for i := range 30 {
				if _, err := r.Deal(t.Context(), before, fmt.Sprint("old-", i)); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for i := range 4 {
				r := registry(t, handles[i%len(handles)], 2)
				wg.Go(func() {
					for j := range 10 {
						if _, err := r.Deal(t.Context(), after, fmt.Sprintf("new-%d-%d", i, j)); err != nil {
							t.Errorf("deal: %v", err)
						}
					}
				})
				wg.Go(func() {
					for h, err := range r.Unfit(t.Context(), after) {
						if err == nil {
							_, err = r.Redeal(t.Context(), after, h.Tenant)
						}
						if err != nil {
							t.Errorf("redeal: %v", err)
						}
					}
				})
			}
			wg.Wait()
			if n := wantApart(t, s, 4, 2); n != 70 {
				t.Errorf("%d hold hands, want 70", n)
			}
			for _, h := range all(t, s) {
				if slices.Contains(h.Members, "w-24") {
					t.Errorf("%q still has the worker that left: %v", h.Tenant, h.Members)
				}
			}
		}},
	}
}

// share returns handles on what s stores: s itself, and others if m can make
// them.
func share(t *testing.T, m Maker, s shuffle.RegistryStore) []shuffle.RegistryStore {
	handles := []shuffle.RegistryStore{s}
	if m.Again != nil {
		handles = append(handles, m.Again(t, s), m.Again(t, s))
	}
	return handles
}
