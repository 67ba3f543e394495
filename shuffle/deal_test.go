package shuffle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestDealIsPortable(t *testing.T) {
	var vectors []struct {
		Salt, Tenant string
		N            int
		Seed         uint64 `json:",string"`
		Hand         []int
	}
	readJSON(t, "deal1_vectors.json", &vectors)
	if len(vectors) < 100 {
		t.Fatalf("%d vectors, want at least 100", len(vectors))
	}
	for _, v := range vectors {
		if got := shuffle.Seed(v.Salt, v.Tenant); got != v.Seed {
			t.Errorf("seed of %q with salt %q is %d, want %d", v.Tenant, v.Salt, got, v.Seed)
		}
		hand := make([]int, len(v.Hand))
		if shuffle.Deal(hand, v.Seed, v.N); !slices.Equal(hand, v.Hand) {
			t.Errorf("%d of %d for %q: %v, want %v", len(hand), v.N, v.Tenant, hand, v.Hand)
		}
	}
}

func TestDealOfMoreThanAllPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("dealt 3 of 2")
		}
	}()
	shuffle.Deal(make([]int, 3), 1, 2)
}

// No hand is likelier than another, where a dealer that takes digits of one
// 64-bit number has a skew (1,024 and 6), or can't deal at all (100 and 10).
func TestDealIsUniform(t *testing.T) {
	for _, c := range []struct{ n, k int }{{5, 2}, {7, 7}, {64, 8}, {100, 5}, {100, 10}, {128, 6}, {1024, 6}} {
		t.Run(fmt.Sprintf("%d_of_%d", c.k, c.n), func(t *testing.T) {
			hand := make([]int, c.k)
			first, all := make([]float64, c.n), newTally(c.n, c.k)
			for i := range 40_000 {
				shuffle.Deal(hand, shuffle.Seed("uniform", fmt.Sprint("tenant-", i)), c.n)
				first[hand[0]]++
				all.add(hand)
			}
			evenly(t, "first cards", first, 1)
			all.uniform(t)
		})
	}
}

func FuzzDeal(f *testing.F) {
	f.Add(uint64(0), uint16(1), uint16(0))
	f.Add(uint64(1), uint16(100), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, n, k uint16) {
		n %= 600
		k %= n + 1
		hand := make([]int, k)
		shuffle.Deal(hand, seed, int(n))
		half := make([]int, k/2)
		shuffle.Deal(half, seed, int(n))
		if !slices.Equal(half, hand[:k/2]) {
			t.Errorf("a smaller hand is not the beginning of a larger one: %v, %v", half, hand)
		}
		slices.Sort(hand)
		if len(slices.Compact(hand)) != int(k) || k > 0 && (hand[0] < 0 || hand[k-1] >= int(n)) {
			t.Errorf("%d of %d: %v", k, n, hand)
		}
	})
}
