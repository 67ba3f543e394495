package shuffle_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// changes returns how many members of before are not in after.
func changes(before, after []shuffle.Worker) int {
	gone := 0
	for _, b := range before {
		if !slices.ContainsFunc(after, func(a shuffle.Worker) bool { return a.ID == b.ID }) {
			gone++
		}
	}
	return gone
}

// movement compares the hands of many tenants, and fails if one changes by more than
// most. It returns the mean.
func movement(t *testing.T, what string, before, after *shuffle.Snapshot, tenants, most int) float64 {
	t.Helper()
	var a, b []shuffle.Worker
	sum := 0
	for i := range tenants {
		name := fmt.Sprint("tenant-", i)
		a, b = before.AppendHand(a[:0], name), after.AppendHand(b[:0], name)
		n := changes(a, b)
		if n > most || len(a) != len(b) {
			t.Fatalf("%s: %s had %v, has %v", what, name, ids(a), ids(b))
		}
		sum += n
	}
	return float64(sum) / float64(tenants)
}

// each runs f for every worker of cells of several shapes, one of them lopsided
// so that zones run out.
func each(t *testing.T, f func(t *testing.T, cfg shuffle.Config, i int)) {
	lopsided := named(12, 1)
	for i := range lopsided {
		lopsided[i].Zone = []string{"a", "a", "b", "c", "c", "c", "c", "c", "c", "c", "c", "c"}[i]
	}
	weighted := named(20, 3)
	for i := range weighted {
		weighted[i].Weight = i % 4
	}
	for name, cfg := range map[string]shuffle.Config{
		"100":           {Size: 5, Workers: named(100, 1)},
		"30_in_3_zones": {Size: 5, Workers: named(30, 3)},
		"11_in_3_zones": {Size: 9, Workers: named(11, 3)},
		"lopsided":      {Size: 7, Workers: lopsided},
		"weighted":      {Size: 5, Workers: weighted},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range cfg.Workers {
				f(t, cfg, i)
			}
		})
	}
}

func TestStableWhenAWorkerGoesOrComes(t *testing.T) {
	each(t, func(t *testing.T, cfg shuffle.Config, i int) {
		less := cfg
		less.Workers = slices.Delete(slices.Clone(cfg.Workers), i, i+1)
		with, without := mustSnapshot(t, cfg), mustSnapshot(t, less)
		movement(t, "without "+cfg.Workers[i].ID, with, without, 300, 1)
	})
}

// Ten thousand tenants, whose hands change only as often as they must; 127 to
// 128 is where a dealer by bits of an index starts over.
func TestStableAsWorkersAreAdded(t *testing.T) {
	for _, n := range []int{31, 99, 100, 127, 128, 255} {
		before := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(n, 1)})
		after := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(n+1, 1)})
		got, want := movement(t, fmt.Sprint(n, " and one more"), before, after, 10_000, 1), 5/float64(n+1)
		t.Logf("%d to %d workers: %.4f members change, the least possible is %.4f", n, n+1, got, want)
		if sigma := math.Sqrt(want * (1 - want) / 10_000); math.Abs(got-want) > 4*sigma {
			t.Errorf("%d to %d workers: %.4f members change, want %.4f", n, n+1, got, want)
		}
	}
}

func TestStableWhenAWeightChanges(t *testing.T) {
	each(t, func(t *testing.T, cfg shuffle.Config, i int) {
		for _, weight := range []int{0, 1, 2, 7} {
			other := cfg
			other.Workers = slices.Clone(cfg.Workers)
			other.Workers[i].Weight = weight
			movement(t, fmt.Sprint(cfg.Workers[i].ID, " has weight ", weight), mustSnapshot(t, cfg), mustSnapshot(t, other), 200, 1)
		}
	})
}

func TestStableWhenAZoneComes(t *testing.T) {
	for zones := 1; zones <= 4; zones++ {
		for k := 1; k <= 9; k++ {
			workers := named(12*(zones+1), zones+1)
			old := slices.DeleteFunc(slices.Clone(workers), func(w shuffle.Worker) bool { return w.Zone == fmt.Sprint("z", zones) })
			before := mustSnapshot(t, shuffle.Config{Size: k, Workers: old})
			after := mustSnapshot(t, shuffle.Config{Size: k, Workers: workers})
			share := (k + zones) / (zones + 1) // of the new zone, rounded up
			movement(t, fmt.Sprintf("k %d, %d zones and one more", k, zones), before, after, 500, share)
		}
	}
}

func TestNested(t *testing.T) {
	workers := named(23, 3)
	for i := range workers {
		workers[i].Weight = 1 + i%3
	}
	s := mustSnapshot(t, shuffle.Config{Size: 1, Workers: workers})
	for _, tenant := range names("tenant-", 200) {
		all, err := s.AppendFirst(nil, tenant, len(workers))
		if err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= len(workers); k++ {
			if got, err := s.AppendFirst(nil, tenant, k); err != nil || !slices.Equal(got, all[:k]) {
				t.Fatalf("%s: hand of %d is %v (%v), not the beginning of %v", tenant, k, ids(got), err, ids(all))
			}
		}
	}
}

// Nesting holds where the way to deal changes with the size of the hand or of the cell.
func TestNestedInLargeCells(t *testing.T) {
	for _, zones := range []int{1, 3, 40} {
		s := mustSnapshot(t, shuffle.Config{Size: 1, Workers: named(900, zones)})
		all, err := s.AppendFirst(nil, "tenant", 900)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{1, 31, 32, 33, 39, 41, 255, 256, 257, 768, 769, 899} {
			if got, err := s.AppendFirst(nil, "tenant", k); err != nil || !slices.Equal(got, all[:k]) {
				t.Errorf("%d zones: hand of %d is not the beginning of the largest one (%v)", zones, k, err)
			}
		}
	}
}
