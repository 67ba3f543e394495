package shuffle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway/shuffle"
)

// Five workers, four to a hand: with at most two shared there is room for one
// tenant, and the registry says so.
func ExampleRegistry() {
	ctx := context.Background()
	workers, err := shuffle.NewSnapshot(shuffle.Config{Size: 4, Workers: shuffle.Even("w-1", "w-2", "w-3", "w-4", "w-5")})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	acme, err := registry.Deal(ctx, workers, "acme")
	fmt.Println(acme.Members, err)
	_, err = registry.Deal(ctx, workers, "globex")
	fmt.Println(errors.Is(err, shuffle.ErrExhausted))
	err = registry.Release(ctx, "acme")
	fmt.Println(err)
	globex, err := registry.Deal(ctx, workers, "globex")
	fmt.Println(globex.Members, err)
	// Output:
	// [w-1 w-4 w-3 w-2] <nil>
	// true
	// <nil>
	// [w-3 w-4 w-2 w-1] <nil>
}

// 2,048 workers in four zones: 134 million tenants with one worker of each, no
// two of whom share more than two. One of them:
func ExampleReedSolomon() {
	design, err := shuffle.NewReedSolomon(4, 512, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(design.Hands(), "hands, at most", design.Overlap(), "shared")
	fmt.Println(design.AppendSeats(nil, 123_456_789))
	// Output:
	// 134217728 hands, at most 2 shared
	// [1939 277 805 1443]
}

// Four of sixteen workers. One is replaced, and one seat changes.
func ExampleSeating() {
	design, err := shuffle.NewQuadruples(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	var ids []string
	for i := range design.Seats() {
		ids = append(ids, fmt.Sprintf("w-%02d", i))
	}
	seating, err := shuffle.NewSeating(ids...)
	if err != nil {
		fmt.Println(err)
		return
	}
	later, err := seating.Replace("w-05", "w-16")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range []*shuffle.Seating{seating, later} {
		hand, err := s.AppendHand(nil, design, 77)
		fmt.Println(hand, err)
	}
	// Output:
	// [w-01 w-09 w-05 w-13] <nil>
	// [w-01 w-09 w-16 w-13] <nil>
}
