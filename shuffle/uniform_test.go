package shuffle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// positions returns where the members of hand are among workers called w-0, w-1…
func positions(hand []shuffle.Worker) []int {
	all := make([]int, len(hand))
	for i, w := range hand {
		for _, c := range w.ID[len("w-"):] {
			all[i] = 10*all[i] + int(c-'0')
		}
	}
	return all
}

func TestUniform(t *testing.T) {
	for _, c := range []struct {
		n, zones, k, tenants int
		name                 string // of the i-th tenant
	}{
		{8, 1, 2, 30_000, "tenant-%d"},
		{100, 1, 5, 40_000, "tenant-%d"},
		{100, 1, 5, 40_000, "%064d"},        // differ in few bits, at the end
		{100, 1, 5, 40_000, "%d-eu-west"},   // or at the beginning
		{100, 1, 5, 40_000, "acme/unit-%x"}, // hexadecimal
		{128, 1, 8, 30_000, "tenant-%d"},
		{100, 1, 1, 40_000, "t%d"},
		{20, 1, 19, 20_000, "t%d"},
	} {
		t.Run(fmt.Sprintf("%d_of_%d/"+c.name, c.k, c.n, 0), func(t *testing.T) {
			s := mustSnapshot(t, shuffle.Config{Salt: "uniform", Size: c.k, Workers: named(c.n, c.zones)})
			all, first := newTally(c.n, c.k), make([]float64, c.n)
			var hand []shuffle.Worker
			for i := range c.tenants {
				hand = s.AppendHand(hand[:0], fmt.Sprintf(c.name, i))
				dealt := positions(hand)
				all.add(dealt)
				first[dealt[0]]++
			}
			evenly(t, "first members", first, 1)
			all.uniform(t)
		})
	}
}

// Where there are few hands, count each of them.
func TestUniformHands(t *testing.T) {
	for _, c := range []struct{ n, k, hands int }{{8, 2, 28}, {8, 4, 70}, {6, 3, 20}, {5, 5, 1}, {16, 4, 1820}} {
		s := mustSnapshot(t, shuffle.Config{Salt: "hands", Size: c.k, Workers: named(c.n, 1)})
		sets, orders := map[int]float64{}, map[int]float64{}
		var hand []shuffle.Worker
		for i := range 60_000 {
			hand = s.AppendHand(hand[:0], fmt.Sprint("tenant-", i))
			set, order := 0, 0
			for _, x := range positions(hand) {
				set |= 1 << x
				order = order*c.n + x
			}
			sets[set]++
			orders[order]++
		}
		if len(sets) != c.hands {
			t.Errorf("%d of %d: %d different hands, want all %d", c.k, c.n, len(sets), c.hands)
		}
		if c.hands > 1 {
			evenly(t, fmt.Sprintf("hands of %d of %d", c.k, c.n), values(sets), 1)
		}
		if c.n < 16 {
			evenly(t, fmt.Sprintf("hands of %d of %d, in order", c.k, c.n), values(orders), 1)
		}
	}
}

// values returns the values of m by rising key, since sums of floats depend on
// their order.
func values(m map[int]float64) []float64 {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	all := make([]float64, len(keys))
	for i, k := range keys {
		all[i] = m[k]
	}
	return all
}

// Pairs of tenants share as many workers as chance says: hypergeometric, and with
// zones the sum of one such number for each zone.
func TestUniformOverlap(t *testing.T) {
	choose := func(n, k int) float64 {
		c := 1.0
		for i := range k {
			c = c * float64(n-i) / float64(i+1)
		}
		return c
	}
	// share is the chance that hands of k of n share each number of workers.
	share := func(n, k int) []float64 {
		p := make([]float64, k+1)
		for i := range p {
			p[i] = choose(k, i) * choose(n-k, k-i) / choose(n, k)
		}
		return p
	}
	three := []float64{1} // one of 30 in each of three zones
	for range 3 {
		next := make([]float64, len(three)+1)
		for i, p := range three {
			for j, q := range share(30, 1) {
				next[i+j] += p * q
			}
		}
		three = next
	}
	for _, c := range []struct {
		n, zones, k int
		want        []float64
	}{{100, 1, 5, share(100, 5)}, {8, 1, 2, share(8, 2)}, {90, 3, 3, three}} {
		s := mustSnapshot(t, shuffle.Config{Salt: "overlap", Size: c.k, Workers: named(c.n, c.zones)})
		got := make([]float64, c.k+1)
		const pairs = 60_000
		var a, b []shuffle.Worker
		for i := range pairs {
			a, b = s.AppendHand(a[:0], fmt.Sprint("a-", i)), s.AppendHand(b[:0], fmt.Sprint("b-", i))
			both := 0
			for _, w := range a {
				if slices.Contains(b, w) {
					both++
				}
			}
			got[both]++
		}
		x, df, rest := 0.0, 0, 0.0
		for i, p := range c.want {
			e := p * pairs
			if e < 5 { // too few to judge alone
				rest += got[i] - e
				continue
			}
			x += (got[i] - e) * (got[i] - e) / e
			df++
		}
		fair(t, fmt.Sprintf("overlap of hands of %d of %d in %d zones, %v", c.k, c.n, c.zones, got), x, df-1)
		if rest > 5 {
			t.Errorf("%v more pairs than expected share what next to none should", rest)
		}
	}
}

// A hash that is linear, such as a CRC, deals few of the hands when names are
// regular: all must come up.
func TestEveryHandIsReachable(t *testing.T) {
	for _, n := range []int{6, 8} {
		var workers []shuffle.Worker
		for i := range n {
			workers = append(workers, shuffle.Worker{ID: fmt.Sprintf("NODE%d", i+1), Weight: 1})
		}
		s := mustSnapshot(t, shuffle.Config{Size: 2, Workers: workers})
		pairs := map[[2]string]bool{}
		for i := range 2000 {
			hand := ids(s.AppendHand(nil, fmt.Sprintf("tenant-%d", i)))
			slices.Sort(hand)
			pairs[[2]string(hand)] = true
		}
		if len(pairs) != n*(n-1)/2 {
			t.Errorf("%d workers: %d pairs are dealt, want %d", n, len(pairs), n*(n-1)/2)
		}
	}
}

// Two names that a dealer with 31 bits of seed can't tell apart.
func TestTenantsDoNotCollideInShortSeeds(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(1000, 1)})
	if a, b := s.AppendHand(nil, "tenant-19883"), s.AppendHand(nil, "tenant-38523"); slices.Equal(a, b) {
		t.Errorf("two tenants have the hand %v", ids(a))
	}
}

func TestSaltAndNamesDoNotRunTogether(t *testing.T) {
	hand := func(salt, tenant string) string {
		s := mustSnapshot(t, shuffle.Config{Salt: salt, Size: 5, Workers: named(100, 1)})
		return fmt.Sprint(ids(s.AppendHand(nil, tenant)))
	}
	if hand("1", "23") == hand("12", "3") {
		t.Error("salt 1, tenant 23 has the hand of salt 12, tenant 3")
	}
	if hand("a", "tenant") == hand("b", "tenant") {
		t.Error("another salt, the same hand")
	}
}

// The most a hand of one can do is to follow the weights.
func TestWeightsShareHandsOfOne(t *testing.T) {
	workers := named(10, 1)
	workers[0].Weight, workers[1].Weight = 2, 3
	s := mustSnapshot(t, shuffle.Config{Size: 1, Workers: workers})
	counts := make([]float64, 10)
	for _, tenant := range names("tenant-", 65_000) {
		counts[positions(s.AppendHand(nil, tenant))[0]]++
	}
	x := 0.0
	for i, c := range counts {
		e := 65_000 / 13.0 * float64(workers[i].Weight)
		x += (c - e) * (c - e) / e
	}
	fair(t, "weights 2, 3, 1…", x, 9)
}
