package front

import (
	"fmt"
	"hash/maphash"
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
	if len(top.counts) != 200 {
		t.Fatalf("%d places", len(top.counts))
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

// A name that is new takes the place of one that has the least count of all, and
// each name that has a place is found there.
func TestTopGivesAwayThePlaceOfTheRarest(t *testing.T) {
	for _, places := range []int{1, 2, 16, 60} {
		top := NewTop(places)
		r := rand.New(rand.NewPCG(3, uint64(places)))
		for i := range 20_000 {
			name := fmt.Sprint("n", int(r.ExpFloat64()*20))
			had, full := has(top, name), len(top.counts) == places
			before := slices.Clone(top.counts)
			top.Add(name)
			switch at, ok := top.find(uint32(maphash.String(top.seed, name)), name); {
			case !ok:
				t.Fatalf("%d places, after %d: %s has none", places, i, name)
			case !had && full && before[at] != slices.Min(before):
				t.Fatalf("%d places, after %d: the place of one with %d went, and another has %d", places, i, before[at], slices.Min(before))
			case len(before) == len(top.counts) && top.counts[at] != before[at]+1:
				t.Fatalf("%d places, after %d: %d counted, had %d", places, i, top.counts[at], before[at])
			}
			used := 0
			for _, e := range top.index {
				if e != 0 {
					used++
				}
			}
			if used != len(top.counts) {
				t.Fatalf("%d places, after %d: %d are in use, %d in the index", places, i, len(top.counts), used)
			}
			for _, n := range top.names {
				if !has(top, string(n.name)) {
					t.Fatalf("%d places, after %d: %s is not found", places, i, n.name)
				}
			}
		}
	}
}

func has(t *Top, name string) bool {
	_, ok := t.find(uint32(maphash.String(t.seed, name)), name)
	return ok
}

// A name that occurs more often than one in places is there at the end, whatever
// else came in between.
func TestTopNeverMissesWhatIsFrequent(t *testing.T) {
	const places = 64
	top := NewTop(places)
	r := rand.New(rand.NewPCG(5, 6))
	const rounds = 40 * places
	for i := range rounds {
		for j := range places - 1 {
			top.Add(fmt.Sprint("once-", i, "-", j, "-", r.Uint64()))
		}
		top.Add("often")
		top.Add("often")
	}
	if !has(top, "often") {
		t.Error("two of each 65 were for one name, and it has no place")
	}
}

func TestTopAllocatesNothingForNamesThatComeAndGo(t *testing.T) {
	top := NewTop(128)
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprint("tenant-", 10_000+i)
	}
	add := func() {
		for _, name := range names {
			top.Add(name)
		}
	}
	add()
	if n := testing.AllocsPerRun(10, add); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTop(b *testing.B) {
	for _, kinds := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint("names=", kinds), func(b *testing.B) {
			top := NewTop(1024)
			r := rand.New(rand.NewPCG(1, 2))
			names := make([]string, 1<<16)
			for i := range names {
				names[i] = fmt.Sprint("tenant-", r.IntN(kinds))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				top.Add(names[i&(1<<16-1)])
			}
		})
	}
}
