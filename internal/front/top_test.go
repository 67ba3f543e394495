package front

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTopFindsTheHeavyOnesInBoundedMemory(t *testing.T) {
	top := NewTop(200)
	r := rand.New(rand.NewPCG(1, 2))
	truth := map[string]uint64{}
	zipf := rand.NewZipf(r, 1.3, 1, 100_000)
	for range 200_000 {
		name := fmt.Sprintf("tenant-%d", zipf.Uint64())
		truth[name]++
		top.Add(name)
	}
	if len(top.heap) != 200 || len(top.index) != 200 {
		t.Fatalf("%d places, %d in the index", len(top.heap), len(top.index))
	}
	got := top.Take(20)
	names := slices.SortedFunc(maps.Keys(truth), func(a, b string) int { return int(truth[b]) - int(truth[a]) })
	for i, l := range got {
		if i < 10 && l.Name != names[i] {
			t.Errorf("place %d: %s with %d, want %s with %d", i, l.Name, l.Requests, names[i], truth[names[i]])
		}
		if l.Requests > truth[l.Name] {
			t.Errorf("%s: counted %d, were %d", l.Name, l.Requests, truth[l.Name])
		}
	}
	if again := top.Take(20); len(again) != 0 {
		t.Errorf("take forgot nothing: %v", again)
	}
}

// A name that is new takes the place of one that has the least count of all.
func TestTopGivesAwayThePlaceOfTheRarest(t *testing.T) {
	top := NewTop(16)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20_000 {
		name := fmt.Sprint("n", int(r.ExpFloat64()*20))
		if _, ok := top.index[name]; !ok && len(top.heap) == 16 {
			least := slices.MinFunc(top.heap, func(a, b *counted) int { return int(a.count) - int(b.count) }).count
			if got := top.rarest().count; got != least {
				t.Fatalf("after %d: the place of one with %d would go, and another has %d", i, got, least)
			}
		}
		top.Add(name)
		if len(top.heap) != len(top.index) {
			t.Fatalf("%d places, %d in the index", len(top.heap), len(top.index))
		}
	}
}
