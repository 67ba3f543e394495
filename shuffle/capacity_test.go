package shuffle_test

import (
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestCapacityIsTheBoundOfJohnson(t *testing.T) {
	for _, c := range []struct {
		n, k, overlap int
		want          int64
	}{
		{8, 2, 1, 28}, {5, 4, 2, 1}, {8, 4, 2, 14}, {16, 4, 2, 140}, {20, 4, 2, 285}, {13, 4, 1, 13}, {25, 5, 1, 30}, {32, 4, 1, 80},
		{100, 5, 1, 480}, {100, 5, 2, 15840}, {64, 8, 2, 720}, {2048, 4, 2, 357389824}, {10, 3, 0, 3}, {7, 7, 6, 1},
	} {
		got, err := shuffle.Capacity(c.n, c.k, c.overlap)
		if err != nil || got.Int64() != c.want {
			t.Errorf("%d of %d, overlap %d: %v, %v; want %d", c.k, c.n, c.overlap, got, err, c.want)
		}
	}
	if got, err := shuffle.Capacity(10000, 64, 31); err != nil || got.BitLen() < 64 {
		t.Errorf("64 of 10,000, overlap 31: %v, %v; want more than 64 bits", got, err)
	}
}

func TestZoneCapacity(t *testing.T) {
	for _, c := range []struct {
		zones      []int
		k, overlap int
		want       int64
	}{
		{[]int{16, 16, 16}, 3, 1, 256},                   // q^2
		{[]int{5, 5, 5, 5, 5}, 5, 1, 25},                 // q^2, where 25 workers without zones could have 30
		{[]int{512, 512, 512, 512}, 4, 2, 134217728},     // q^3
		{[]int{10, 7, 9}, 3, 1, 63},                      // the two smallest zones
		{[]int{2048}, 4, 2, 357389824},                   // one zone is no zone
		{[]int{10, 10}, 4, 1, 25},                        // two of each: there are 100 pairs across, four in a hand
		{[]int{3, 50}, 5, 2, 75},                         // two of the small zone with one of the other: 150, two in a hand
		{[]int{4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, 3, 1, 253}, // fewer members than zones: that of 3 of 40
	} {
		bound, err := shuffle.ZoneCapacity(c.zones, c.k, c.overlap)
		if err != nil {
			t.Errorf("zones %v: %v", c.zones, err)
			continue
		}
		if bound.Int64() != c.want {
			t.Errorf("zones %v, %d, overlap %d: %v; want %d", c.zones, c.k, c.overlap, bound, c.want)
		}
	}
}
