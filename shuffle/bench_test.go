package shuffle_test

import (
	"fmt"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func BenchmarkHand(b *testing.B) {
	for _, c := range []struct{ n, zones, k int }{{30, 3, 3}, {100, 1, 5}, {100, 3, 5}, {1000, 1, 5}, {1000, 3, 5}, {2048, 1, 4}} {
		b.Run(fmt.Sprintf("n=%d/zones=%d/k=%d", c.n, c.zones, c.k), func(b *testing.B) {
			s := mustSnapshot(b, shuffle.Config{Salt: "bench", Size: c.k, Workers: named(c.n, c.zones)})
			buf := make([]shuffle.Worker, 0, c.k)
			tenants := names("tenant-", 1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				buf = s.AppendHand(buf[:0], tenants[i%len(tenants)])
			}
		})
	}
}

// names returns prefix0, prefix1 and so on.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return all
}

func BenchmarkDeal(b *testing.B) {
	for _, c := range []struct{ n, k int }{{64, 8}, {128, 6}, {100, 5}, {2048, 4}} {
		b.Run(fmt.Sprintf("n=%d/k=%d", c.n, c.k), func(b *testing.B) {
			hand := make([]int, c.k)
			b.ReportAllocs()
			for seed := uint64(0); b.Loop(); seed++ {
				shuffle.Deal(hand, seed, c.n)
			}
		})
	}
}
