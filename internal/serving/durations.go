package serving

import (
	"slices"
	"time"
)

// Coarse counts durations, of which each tells how many were about as long, in
// as many buckets as a metric should have: from a millisecond to 30 s.
func Coarse(each func(func(top time.Duration, n uint64))) (bounds []time.Duration, counted []uint64, sum time.Duration) {
	for _, ms := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000} {
		bounds = append(bounds, time.Duration(ms)*time.Millisecond)
	}
	counted = make([]uint64, len(bounds)+1)
	each(func(top time.Duration, n uint64) {
		i, _ := slices.BinarySearch(bounds, top)
		counted[i] += n
		sum += top * time.Duration(n)
	})
	return bounds, counted, sum
}
