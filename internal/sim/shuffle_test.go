package sim

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/cellway/cellway"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The published table of 5 of 100, in percent.
func TestExactTableOfFiveOfAHundred(t *testing.T) {
	r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 100, Hand: 5, Tenants: 10_000, Overlap: -1, Trials: 200, Seed: 1}, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Hands != "75287520" {
		t.Errorf("%s hands, want 75287520", r.Hands)
	}
	for i, want := range []float64{76.9590, 21.1426, 1.83849, 0.059306, 0.000630915, 1.32824e-6} {
		o := r.Overlap[i]
		near(t, fmt.Sprint("exact share with ", i), 100*o.Exact, want, 1e-5)
		// Trials share tenants, so that their error is below that of independent
		// ones; five standard errors of all pairs are wide enough for one seed.
		if sigma := math.Sqrt(o.Exact / (200 * 9_999)); math.Abs(o.Simulated-o.Exact) > 5*sigma {
			t.Errorf("simulated share with %d is %v, want %v ± %v", i, o.Simulated, o.Exact, 5*sigma)
		}
	}
	near(t, "probability of one hand for two of 10,000", r.SameHand, 0.485, 0.002)
	near(t, "expected same pairs", r.Overlap[5].Pairs, 49_995_000/75287520., 1e-9)
	if r.Bounds[1].Capacity != "480" || r.Bounds[1].Fits || r.Bounds[2].Capacity != "15840" || !r.Bounds[2].Fits {
		t.Errorf("bounds %+v, want 480 with one shared, 15840 with two", r.Bounds)
	}
	near(t, "one bad tenant squeezes", r.Squeeze[0].Squeezed, 1/75287520., 1e-9)
}

// The well-known simulation of 2,000 tenants, 100 workers, 60 trials.
func TestFixedGroupsLoseFivePercentAndHandsNobody(t *testing.T) {
	r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 100, Hand: 5, Tenants: 2_000, Overlap: -1, Trials: 60, Seed: 7}, Run{})
	if err != nil {
		t.Fatal(err)
	}
	fixed, hands := r.Blast[2], r.Blast[4]
	near(t, "fixed groups, total", fixed.Total, 0.05, 0.1)
	if fixed.Degraded != 0 || hands.Total != 0 {
		t.Errorf("fixed groups degrade %v, hands lose %v; want nothing of both", fixed.Degraded, hands.Total)
	}
	near(t, "hands, degraded", hands.Degraded, 0.2304, 0.02)
	near(t, "hands, degraded, exact", r.Blast[3].Degraded, 0.230410, 1e-5)
}

func TestZonesShrinkTheChoiceOfHands(t *testing.T) {
	r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 90, Hand: 3, Zones: 3, Tenants: 5_000, Overlap: -1, Trials: 100}, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{90.3296, 9.3444, 0.3222, 0.0037} {
		near(t, fmt.Sprint("exact share with ", i), 100*r.Overlap[i].Exact, want, 2e-3)
	}
	near(t, "simulated share without", r.Overlap[0].Simulated, 0.903296, 2e-3)
	if r.Hands != "27000" {
		t.Errorf("%s hands, want 27000", r.Hands)
	}
}

func TestSmallTables(t *testing.T) {
	for _, tt := range []struct {
		workers, hand int
		percent       []float64
	}{
		{8, 2, []float64{53.5714, 42.8571, 3.57143}},
		{54, 4, []float64{72.824, 24.790, 2.324, 0.06324}},
		{2048, 4, []float64{99.2205, 0.777818, 0.0017141, 1.11868e-6, 1.368e-10}},
	} {
		r, err := Shuffle(t.Context(), ShuffleConfig{Workers: tt.workers, Hand: tt.hand, Tenants: 100, Overlap: -1, Trials: 5}, Run{})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range tt.percent {
			near(t, fmt.Sprint(tt.workers, " choose ", tt.hand, ", sharing ", i), 100*r.Overlap[i].Exact, want, 4e-4)
		}
	}
}

func TestManyHandsMakeSomebodysOutageLikely(t *testing.T) {
	anyone := func(tenants int) OutageRow {
		r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 100, Hand: 5, Tenants: tenants, Overlap: -1, Trials: 1}, Run{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Outage {
			if o.Dead == 20 {
				return o
			}
		}
		t.Fatal("no row for 20 dead")
		return OutageRow{}
	}
	few, many := anyone(20), anyone(2_000)
	near(t, "a tenant of few", few.Tenant, 2.06e-4, 0.01)
	near(t, "a tenant of many", many.Tenant, few.Tenant, 1e-9)
	near(t, "anyone of 20", few.AnyTenant, 0.004, 0.05)
	near(t, "anyone of 2,000", many.AnyTenant, 0.34, 0.03)
	near(t, "any of 20 groups", many.AnyFixed, 0.004, 0.05)
}

func TestARegistryKeepsTheOverlap(t *testing.T) {
	cfg := ShuffleConfig{Workers: 20, Hand: 4, Tenants: 400, Overlap: 2, Trials: 100}
	r, err := Shuffle(t.Context(), cfg, Run{})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Registry
	if d.MaxShared > 2 || d.Capacity != "285" || d.Dealt < 200 || d.Dealt > 285 || d.Stopped == "" {
		t.Errorf("registry %+v; want 200 to 285 hands, two shared at most, and a reason to stop", d)
	}
}

func TestTheSameSeedGivesTheSameReportOnAnyNumberOfCores(t *testing.T) {
	cfg := ShuffleConfig{Workers: 50, Hand: 4, Zones: 3, Tenants: 9_000, Overlap: 3, Trials: 30, Seed: 42}
	want, err := Shuffle(t.Context(), cfg, Run{Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, cores := range []int{2, 7} {
		if got, err := Shuffle(t.Context(), cfg, Run{Cores: cores}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("on %d cores, %v:\n%+v\nwant\n%+v", cores, err, got, want)
		}
	}
	cfg.Seed = 43
	if got, _ := Shuffle(t.Context(), cfg, Run{Cores: 1}); reflect.DeepEqual(got.Overlap, want.Overlap) {
		t.Error("another seed gives the same report")
	}
}

func TestShuffleRefusesWhatCannotBe(t *testing.T) {
	for _, cfg := range []ShuffleConfig{
		{Workers: 0, Hand: 1, Tenants: 10}, {Workers: 4, Hand: 5, Tenants: 10}, {Workers: 4, Hand: 2, Tenants: 1},
		{Workers: 4, Hand: 2, Tenants: 10, Zones: 5}, {Workers: 4, Hand: 2, Tenants: 10, Overlap: 2}, {Workers: 4, Hand: 2, Tenants: 10, Trials: -1},
		{Workers: MaxWorkers + 1, Hand: 2, Tenants: 10}, {Workers: 4, Hand: 2, Tenants: MaxTenants + 1}, {Workers: 1000, Hand: 2, Zones: MaxZones + 1, Tenants: 10},
		{Workers: 100, Hand: 64, Tenants: 10, Overlap: 31}, // 2e18 sets of 32 to remember of each hand
	} {
		if _, err := Shuffle(t.Context(), cfg, Run{}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%+v: %v, want an ErrInvalid", cfg, err)
		}
	}
}
