package shuffle_test

import (
	"fmt"

	"github.com/cellway/cellway/shuffle"
)

// What a poison tenant does to the others, with hands of 5 of 100 workers and
// with fixed groups of 5.
func ExampleBlastOf() {
	dealt, err := shuffle.Overlap(100, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fixed, err := shuffle.FixedOverlap(100, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range [][]float64{dealt, fixed} {
		b := shuffle.BlastOf(p)
		fmt.Printf("%.6f %% down, %.2f %% degraded, %.2f %% untouched\n", 100*b.Total, 100*b.Degraded, 100*b.Untouched)
	}
	// Output:
	// 0.000001 % down, 23.04 % degraded, 76.96 % untouched
	// 5.000000 % down, 0.00 % degraded, 95.00 % untouched
}

// One from each of three zones: the overlap is not that of 3 of 90.
func ExampleZoneOverlap() {
	p, err := shuffle.ZoneOverlap([]int{30, 30, 30}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for shared, q := range p {
		fmt.Printf("%d shared: %7.4f %%\n", shared, 100*q)
	}
	// Output:
	// 0 shared: 90.3296 %
	// 1 shared:  9.3444 %
	// 2 shared:  0.3222 %
	// 3 shared:  0.0037 %
}

// One in 75 million, for each of 50 million pairs.
func ExamplePairsOf() {
	overlap, err := shuffle.Overlap(100, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	pairs, err := shuffle.PairsOf(10_000, overlap[5])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f pairs, of which %.2f share a whole hand; that any does: %.0f %%\n", pairs.Count, pairs.Mean, 100*pairs.Any)
	// Output:
	// 49995000 pairs, of which 0.66 share a whole hand; that any does: 49 %
}

// How many tenants can have 4 of 2,048 workers and share at most 2.
func ExampleCapacity() {
	bound, err := shuffle.Capacity(2048, 4, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bound)
	// Output:
	// 357389824
}

// A light tenant among heavy ones, with hands of 8 of 128 queues.
func ExampleSqueezed() {
	for _, elephants := range []int{1, 4, 16} {
		p, err := shuffle.Squeezed(128, 8, elephants)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%2d elephants: %.4g\n", elephants, p)
	}
	// Output:
	//  1 elephants: 6.994e-13
	//  4 elephants: 3.406e-06
	// 16 elephants: 0.02746
}

// Twenty of 100 machines break. One tenant is as likely to lose all of its 5 with
// few hands in use as with many; that somebody does is another matter.
func ExampleOutageOf() {
	for _, hands := range []int{20, 2_000} {
		o, err := shuffle.OutageOf(100, 5, 20, hands)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d hands: one tenant %.2g, anyone %.2g\n", hands, o.Total, o.Anyone)
	}
	// Output:
	// 20 hands: one tenant 0.00021, anyone 0.0041
	// 2000 hands: one tenant 0.00021, anyone 0.34
}
