package shuffle_test

import (
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// One cache serves two versions at once, as it does when requests run while
// workers change: neither sees the other's hands.
func TestCacheKeepsVersionsApart(t *testing.T) {
	before := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(20, 1)})
	after := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(9, 1)})
	c := shuffle.NewCache(0)
	for range 2 {
		for _, tenant := range names("tenant-", 100) {
			for _, s := range []*shuffle.Snapshot{before, after, before} {
				if got, want := c.Hand(s, tenant), s.AppendHand(nil, tenant); !slices.Equal(got, want) {
					t.Fatalf("%s: %v, want %v", tenant, ids(got), ids(want))
				}
			}
		}
	}
}

func TestCacheIsQuiet(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(100, 1)})
	c := shuffle.NewCache(100)
	c.Hand(s, "tenant")
	if allocs := testing.AllocsPerRun(100, func() { c.Hand(s, "tenant") }); allocs != 0 {
		t.Errorf("%v allocations for a hand that is there", allocs)
	}
	hand := c.Hand(s, "tenant")
	_ = append(hand, shuffle.Worker{ID: "mine"})
	if got := c.Hand(s, "tenant"); len(got) != 5 || cap(got) != 5 {
		t.Errorf("a caller's append reaches what others hold: %d of %d", len(got), cap(got))
	}
}

// Tenants that fit stay, though their places are chosen by a hash.
func TestCacheKeepsWhatFits(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(100, 1)})
	c := shuffle.NewCache(4096)
	tenants := names("tenant-", 512)
	all := func() {
		for _, tenant := range tenants {
			c.Hand(s, tenant)
		}
	}
	all()
	// Where five or more meet in four places, each is displaced, at two allocations.
	// That is so once in six seeds, and six times in ten million; a cache with one
	// place for each hash would make about 120.
	if allocs := testing.AllocsPerRun(10, all); allocs > 60 {
		t.Errorf("512 hands in 4,096 places displace each other: %v allocations", allocs)
	}
}

func BenchmarkCachedHand(b *testing.B) {
	s := mustSnapshot(b, shuffle.Config{Size: 5, Workers: named(100, 1)})
	c := shuffle.NewCache(4096)
	tenants := names("tenant-", 512)
	for _, tenant := range tenants {
		c.Hand(s, tenant)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Hand(s, tenants[i%len(tenants)])
	}
}
