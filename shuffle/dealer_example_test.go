package shuffle_test

import (
	"context"
	"fmt"

	"github.com/cellway/cellway/shuffle"
)

// Whoever sends requests takes any way to deal.
func ExampleDealer() {
	workers := shuffle.Even("w-1", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7", "w-8")
	ctx := context.Background()
	stateless, err := shuffle.NewSnapshot(shuffle.Config{Size: 4, Workers: workers})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	design, err := shuffle.NewQuadruples(8)
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers := map[string]uint64{"acme": 0, "globex": 1} // from a column of a database
	seated, err := shuffle.NewSeated(design, workers, func(_ context.Context, tenant string) (uint64, error) {
		return numbers[tenant], nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range []shuffle.Dealer{stateless, registry.Dealer(stateless), seated} {
		for _, tenant := range []string{"acme", "globex"} {
			hand, err := d.DealHand(ctx, nil, tenant)
			fmt.Println(tenant, ids(hand), err)
		}
	}
	// Output:
	// acme [w-1 w-4 w-7 w-3] <nil>
	// globex [w-8 w-7 w-3 w-4] <nil>
	// acme [w-1 w-4 w-7 w-3] <nil>
	// globex [w-7 w-4 w-5 w-2] <nil>
	// acme [w-1 w-3 w-2 w-4] <nil>
	// globex [w-7 w-5 w-8 w-6] <nil>
}
