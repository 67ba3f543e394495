package shuffle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestBalanced(t *testing.T) {
	for zones := 1; zones <= 5; zones++ {
		for k := 1; k <= 12; k++ {
			s := mustSnapshot(t, shuffle.Config{Size: k, Strict: true, Workers: named(15*zones, zones)})
			for _, tenant := range names("tenant-", 100) {
				hand := s.AppendHand(nil, tenant)
				counts := make([]int, zones)
				for i, w := range hand {
					counts[w.Zone[1]-'0']++
					if zones > 1 && i > 0 && hand[i-1].Zone == w.Zone {
						t.Fatalf("%s: neighbours in one zone: %v", tenant, hand)
					}
				}
				if slices.Max(counts)-slices.Min(counts) > 1 {
					t.Fatalf("%s: hand of %d over %d zones has %v", tenant, k, zones, counts)
				}
			}
		}
	}
}

// The zone that gets one worker more is another for each tenant.
func TestBalancedOverTenants(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(30, 3)})
	counts := make([]float64, 3)
	for _, tenant := range names("tenant-", 30_000) {
		counts[s.AppendHand(nil, tenant)[0].Zone[1]-'0']++
	}
	evenly(t, "zone that comes first", counts, 1)
}

// With a zone lost, a hand over three zones keeps its members in the other two.
func TestBalancedHandsSurviveAZone(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 6, Strict: true, Workers: named(30, 3)})
	for _, tenant := range names("tenant-", 1000) {
		for lost := range 3 {
			hand := s.AppendHand(nil, tenant)
			if n := shuffle.Prefer(hand, func(w shuffle.Worker) bool { return w.Zone != fmt.Sprint("z", lost) }); n != 4 {
				t.Fatalf("%s keeps %d of 6 without z%d", tenant, n, lost)
			}
		}
	}
}

func TestQuiet(t *testing.T) {
	for _, c := range []struct{ n, zones, k int }{{100, 1, 5}, {100, 3, 5}, {1000, 1, 32}, {1000, 32, 32}, {1000, 500, 5}, {2048, 1, 4}} {
		s := mustSnapshot(t, shuffle.Config{Salt: "quiet", Size: c.k, Sizes: map[string]int{"x": 1}, Workers: named(c.n, c.zones)})
		buf := make([]shuffle.Worker, 0, c.k)
		if allocs := testing.AllocsPerRun(100, func() { buf = s.AppendHand(buf[:0], "a tenant of usual length") }); allocs != 0 {
			t.Errorf("%d of %d in %d zones: %v allocations", c.k, c.n, c.zones, allocs)
		}
	}
	hand := make([]int, 8)
	if allocs := testing.AllocsPerRun(100, func() { shuffle.Deal(hand, shuffle.Seed("salt", "tenant"), 128) }); allocs != 0 {
		t.Errorf("Deal: %v allocations", allocs)
	}
}

func TestDrainedWorkerGetsNobody(t *testing.T) {
	workers := named(20, 2)
	workers[3].Weight = 0
	s := mustSnapshot(t, shuffle.Config{Size: 5, Workers: workers})
	for _, tenant := range names("tenant-", 2000) {
		if slices.Contains(ids(s.AppendHand(nil, tenant)), "w-3") {
			t.Fatalf("%s has a drained worker", tenant)
		}
	}
}

func TestPreferDropsNobody(t *testing.T) {
	hand := shuffle.Even("a", "b", "c", "d", "e")
	bad := map[string]bool{"a": true, "d": true}
	n := shuffle.Prefer(hand, func(w shuffle.Worker) bool { return !bad[w.ID] })
	if got := ids(hand); n != 3 || !slices.Equal(got, []string{"b", "c", "e", "a", "d"}) {
		t.Errorf("Prefer gives %v, %d well", got, n)
	}
	if n := shuffle.Prefer(hand, func(shuffle.Worker) bool { return false }); n != 0 || len(hand) != 5 {
		t.Errorf("nobody is well: %d, %v", n, ids(hand))
	}
	if n := shuffle.Prefer(nil, func(shuffle.Worker) bool { return true }); n != 0 {
		t.Errorf("an empty hand has %d", n)
	}
}
