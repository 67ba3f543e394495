package registrytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func models() []rule {
	return []rule{
		{"random acts have the outcome that a list would give", func(t *testing.T, m Maker) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			s := m.Open(t)
			type kept struct {
				shuffle.Holding
				claims []int
			}
			model := map[string]kept{}
			last := uint64(0)
			for step := range 600 {
				tenant := fmt.Sprint("t", rng.IntN(8))
				now := model[tenant]
				at := now.Revision
				if rng.IntN(5) == 0 {
					at = rng.Uint64N(last + 2)
				}
				if rng.IntN(3) == 0 {
					var want error
					switch {
					case now.Revision == 0:
						want = shuffle.ErrNoHand
					case at != now.Revision:
						want = shuffle.ErrChanged
					}
					if err := s.Release(t.Context(), tenant, at); !errors.Is(err, want) {
						t.Fatalf("step %d: release %s at %d: %v, want %v", step, tenant, at, err, want)
					}
					if want == nil {
						delete(model, tenant)
					}
					continue
				}
				var numbers []int
				for n := range 12 {
					if rng.IntN(5) == 0 {
						numbers = append(numbers, n)
					}
				}
				var want error
				for other, k := range model {
					if other != tenant && slices.ContainsFunc(numbers, func(n int) bool { return slices.Contains(k.claims, n) }) {
						want = shuffle.ErrOverlap
					}
				}
				if at != now.Revision {
					want = shuffle.ErrChanged
				}
				h := shuffle.Holding{Tenant: tenant, Members: []string{fmt.Sprint("w", step)}, Attempt: step, Version: "v", Revision: at}
				rev, err := s.Reserve(t.Context(), h, claimsOf(numbers...))
				if !errors.Is(err, want) {
					t.Fatalf("step %d: reserve %v for %s at %d: %v, want %v", step, numbers, tenant, at, err, want)
				}
				if want == nil {
					if rev <= last {
						t.Fatalf("step %d: revision %d after %d", step, rev, last)
					}
					last, h.Revision = rev, rev
					model[tenant] = kept{h, numbers}
				}
				if step%50 == 0 && m.Reopen != nil {
					s = m.Reopen(t, s)
				}
			}
			wantCount(t, s, len(model))
			for _, k := range model {
				wantHolding(t, s, k.Holding)
			}
		}},
	}
}
