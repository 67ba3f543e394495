package shuffle_test

import (
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// BenchmarkOverlap is the time for a distribution without zones and with them.
func BenchmarkOverlap(b *testing.B) {
	b.Run("64 of 10000", func(b *testing.B) {
		for b.Loop() {
			if _, err := shuffle.Overlap(10000, 64); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("8 of 5x20", func(b *testing.B) {
		zones := []int{20, 20, 20, 20, 20}
		for b.Loop() {
			if _, err := shuffle.ZoneOverlap(zones, 8); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSqueezed is the time for the odds of a light tenant among 16 heavy
// ones, with hands of 6 of 1,024 queues.
func BenchmarkSqueezed(b *testing.B) {
	for b.Loop() {
		if _, err := shuffle.Squeezed(1024, 6, 16); err != nil {
			b.Fatal(err)
		}
	}
}
