package shuffle_test

import (
	"errors"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// BenchmarkRegistryAccept deals hands of 4 of 2,048 workers, at most 2 shared,
// with 100,000 tenants registered and more at every turn: the look for an
// earlier hand, the candidate, the check of its overlap with everybody, and the
// reservation.
func BenchmarkRegistryAccept(b *testing.B) {
	const before = 100_000
	s := mustSnapshot(b, shuffle.Config{Salt: "bench", Size: 4, Workers: named(2048, 1)})
	r, err := shuffle.NewRegistry(b.Context(), shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 2})
	if err != nil {
		b.Fatal(err)
	}
	tenants := names("tenant-", before)
	for _, tenant := range tenants {
		if _, err := r.Deal(b.Context(), s, tenant); err != nil {
			b.Fatal(err)
		}
	}
	more := names("more-", 1<<18)
	ctx := b.Context()
	b.ReportAllocs()
	i := 0
	for ; b.Loop(); i++ {
		if i < len(more) {
			_, err = r.Deal(ctx, s, more[i])
		} else { // one leaves, one comes
			if err = r.Release(ctx, more[i%len(more)]); err == nil {
				_, err = r.Deal(ctx, s, more[i%len(more)])
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(before+min(i, len(more))), "tenants")
}

// BenchmarkRegistryAgain deals to tenants who hold a hand.
func BenchmarkRegistryAgain(b *testing.B) {
	s := mustSnapshot(b, shuffle.Config{Salt: "bench", Size: 5, Workers: named(100, 1)})
	r, err := shuffle.NewRegistry(b.Context(), shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 2})
	if err != nil {
		b.Fatal(err)
	}
	tenants := names("tenant-", 1024)
	ctx := b.Context()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := r.Deal(ctx, s, tenants[i%len(tenants)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRegistrySearch proves that no hand is left, among those of 5 of 100
// workers with one shared, of which nearly 400 are held.
func BenchmarkRegistrySearch(b *testing.B) {
	s := mustSnapshot(b, shuffle.Config{Salt: "x", Size: 5, Workers: named(100, 1)})
	r, err := shuffle.NewRegistry(b.Context(), shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 1, Attempts: 1})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; err == nil; i++ {
		_, err = r.Deal(b.Context(), s, names("tenant-", i+1)[i])
	}
	nodes := 0
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Deal(b.Context(), s, "one more")
		if full, ok := errors.AsType[*shuffle.NoRoomError](err); ok {
			nodes += full.Nodes
		} else {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(nodes)/float64(b.N), "nodes/op")
}
