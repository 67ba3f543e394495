package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestHandsAreCountedTenantByTenant(t *testing.T) {
	cfg := ShuffleConfig{Workers: 7, Hand: 3, Zones: 1, Tenants: 40, Trials: 30, Overlap: 2, Seed: 11}
	r, err := Shuffle(t.Context(), cfg, Run{Cores: 3})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := cfg.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var hands [40][]string
	on := map[string]int{}
	for i := range hands {
		for _, w := range s.AppendHand(nil, name("tenant", i)) {
			hands[i] = append(hands[i], w.ID)
			on[w.ID]++
		}
	}
	shared := func(a, b int) (n int) {
		for _, w := range hands[a] {
			if slices.Contains(hands[b], w) {
				n++
			}
		}
		return n
	}
	var simulated [4]float64
	worst, same := 0.0, 0
	for trial := range cfg.Trials {
		random := streamOf(cfg.Seed, 1, uint64(trial))
		bad, all := random.below(40), 0.0
		for i := range hands {
			if i == bad {
				continue
			}
			simulated[shared(i, bad)] += 1. / 39 / 30
			if shared(i, bad) == 3 {
				all += 1. / 39
			}
		}
		worst = max(worst, all)
	}
	for i := range hands {
		for j := range i {
			if shared(i, j) == 3 {
				same++
			}
		}
	}
	for i, want := range simulated {
		if got := r.Overlap[i].Simulated; math.Abs(got-want) > 1e-9 {
			t.Errorf("%v of the others share %d, want %v", got, i, want)
		}
	}
	if worst == 0 || math.Abs(r.Blast[4].Worst-worst) > 1e-9 || r.SamePairs != same {
		t.Errorf("worst trial %v, %d pairs with one hand; want %v and %d", r.Blast[4].Worst, r.SamePairs, worst, same)
	}
	mean, squares, least, most := 120./7, 0.0, math.MaxInt, 0
	for _, n := range on {
		squares += (float64(n) - mean) * (float64(n) - mean) / 7
		least, most = min(least, n), max(most, n)
	}
	if r.Spread.Least != least || r.Spread.Most != most {
		t.Errorf("spread %+v, want %d to %d", r.Spread, least, most)
	}
	near(t, "deviation", r.Spread.Deviation, math.Sqrt(squares)/mean, 1e-9)
	near(t, "mean", r.Spread.Mean, mean, 1e-12)

	// The registry permits any other hand, so whoever comes first with a hand has it.
	seen, usual := map[string]bool{}, 0.0
	for i := range r.Registry.Dealt {
		sorted := slices.Sorted(slices.Values(hands[i]))
		if key := fmt.Sprint(sorted); !seen[key] {
			seen[key] = true
			usual++
		}
	}
	if d := r.Registry; d.Capacity != "35" || d.Dealt > 35 || d.Usual > usual/float64(d.Dealt)+1e-9 || d.Usual < 0.3 {
		t.Errorf("registry %+v, want 35 at most, of which %v have their usual hand at most", d, usual)
	}
}

func TestFixedGroupsAreWholeHands(t *testing.T) {
	cfg := ShuffleConfig{Workers: 7, Hand: 3, Tenants: 40, Trials: 100, Overlap: -1, Seed: 10}
	r, err := Shuffle(t.Context(), cfg, Run{})
	if err != nil {
		t.Fatal(err)
	}
	// Seven workers are two groups, one of them with a worker more.
	near(t, "a group", r.Blast[1].Total, 0.5, 1e-12)
	for i, want := range []float64{0.5, 0.75, 0.9375} {
		near(t, fmt.Sprint("groups hit by ", r.Squeeze[i].Bad), r.Squeeze[i].Fixed, want, 1e-12)
	}
	for _, o := range r.Outage {
		near(t, "tenants of a group", o.TenantsFixed, 20, 1e-12)
	}
	var in [2]int
	of := func(tenant int) int { s := streamOf(cfg.Seed, 2, uint64(tenant)); return s.below(2) }
	for i := range 40 {
		in[of(i)]++
	}
	mean, worst, share := 0.0, 0.0, 0.0
	for trial := range cfg.Trials {
		random := streamOf(cfg.Seed, 1, uint64(trial))
		share = float64(in[of(random.below(40))]-1) / 39
		mean += share / 100
		worst = max(worst, share)
	}
	if share == worst {
		t.Fatal("the last trial is the worst, which shows nothing: take another seed")
	}
	near(t, "simulated", r.Blast[2].Total, mean, 1e-9)
	near(t, "worst trial", r.Blast[2].Worst, worst, 1e-9)
}

func TestBoundsAreMetByAsManyTenants(t *testing.T) {
	for tenants, fits := range map[int]bool{27: true, 28: true, 29: false} {
		r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 8, Hand: 2, Tenants: tenants, Trials: 1, Overlap: -1}, Run{})
		if err != nil {
			t.Fatal(err)
		}
		one := r.Bounds[1]
		if one.Capacity != "28" || one.Fits != fits {
			t.Errorf("%d tenants of pairs from 8: %+v", tenants, one)
		}
		pairs := float64(tenants*(tenants-1)) / 2
		near(t, "pairs that share both", one.Beyond, pairs/28, 1e-9)
		near(t, "pairs that share one or both", r.Bounds[0].Beyond, pairs*13/28, 1e-9)
		if r.Overlap[0].AnyPair != 1 || r.Overlap[2].AnyPair != r.SameHand {
			t.Errorf("any pair: %v, %v; same hand %v", r.Overlap[0].AnyPair, r.Overlap[2].AnyPair, r.SameHand)
		}
	}
}

func TestWhatMustMove(t *testing.T) {
	r, err := Hands(t.Context(), HandsConfig{Workers: 40, Hand: 4, Tenants: 8_000, ToWorkers: 10}, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]float64{"one worker more": 4. / 41, "a middle worker leaves": 0.1, "40 to 10 workers": 3, "hands of one more": 0} {
		near(t, change, rowOf(t, r, change, "hrw-1").Least, want, 1e-12)
	}
	for _, l := range r.Load {
		// Chance gives 800 tenants a worker a deviation of 3.5 %; rings are less even.
		least, most := 0.85, 1.15
		switch {
		case strings.HasPrefix(l.Way, "ring"), strings.HasPrefix(l.Way, "Python"):
			least, most = 0.6, 1.5
		case strings.HasPrefix(l.Way, "multi"): // bounds the most only
			least, most = 0, 1.5
		}
		if l.Least < least || l.Least > 1 || l.Most < 1 || l.Most > most {
			t.Errorf("%s loads workers by %v to %v of the mean, want %v to %v", l.Way, l.Least, l.Most, least, most)
		}
	}
}

func TestEveryOrderIsAsLikely(t *testing.T) {
	random := streamOf(7)
	seen := map[[3]int]int{}
	for range 6_000 {
		all := [3]int{0, 1, 2}
		reorder(&random, all[:])
		seen[all]++
	}
	for order, n := range seen {
		if n < 850 || n > 1_150 { // five standard deviations
			t.Errorf("order %v comes up %d times of 6,000", order, n)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d orders, want 6", len(seen))
	}
	counts := [5]int{}
	for range 50_000 {
		counts[random.below(5)]++
	}
	for i, n := range counts {
		if n < 9_550 || n > 10_450 {
			t.Errorf("%d comes up %d times of 50,000", i, n)
		}
	}
	var sum, squares float64
	for range 100_000 {
		x := random.normal()
		sum += x
		squares += x * x
	}
	if mean := sum / 100_000; math.Abs(mean) > 0.016 || math.Abs(squares/100_000-1) > 0.023 {
		t.Errorf("normal numbers have the mean %v and the square %v", mean, squares/100_000)
	}
}

// Hands of an exact table of zones add up to those that are dealt.
func TestZonesOfUnevenSizes(t *testing.T) {
	cfg := ShuffleConfig{Workers: 11, Hand: 4, Zones: 3, Tenants: 3_000, Trials: 300, Overlap: -1, Seed: 5}
	if got := cfg.zoneSizes(); !slices.Equal(got, []int{4, 4, 3}) {
		t.Errorf("zones %v, want 4, 4 and 3", got)
	}
	r, err := Shuffle(t.Context(), cfg, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	want, err := shuffle.ZoneOverlap([]int{4, 4, 3}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range r.Overlap {
		near(t, "exact", o.Exact, want[i], 1e-12)
		if math.Abs(o.Simulated-o.Exact) > 2.5*o.Error { // five standard errors
			t.Errorf("simulated share with %d is %v, want %v ± %v", i, o.Simulated, o.Exact, o.Error)
		}
	}
}
