package shuffle

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// SizesFor returns hands for tenants that carry more than others, for
// [Config.Sizes]: as many workers as it takes for none of them to get more than
// perWorker of one tenant's load, and never more than most. Tenants for whom the usual
// size is enough are not in it. Loads are in any unit, such as requests a second.
//
// A heavy tenant in a hand of the usual size is a neighbour that nobody can
// bear: its workers have no room left for others. A larger hand overlaps with
// more tenants, and takes less of each worker. The reverse, a size of 1, confines a
// tenant that is not to be trusted.
//
// The error wraps [ErrInvalid] if a load is negative or no number, perWorker not
// above 0, or usual not from 1 to most.
func SizesFor(loads map[string]float64, perWorker float64, usual, most int) (map[string]int, error) {
	if !(perWorker > 0) || usual < 1 || usual > most {
		return nil, fmt.Errorf("sizes from %d to %d for %v a worker: %w: want 1 or more, rising, and a load above 0", usual, most, perWorker, ErrInvalid)
	}
	sizes := make(map[string]int)
	for _, tenant := range slices.Sorted(maps.Keys(loads)) {
		load := loads[tenant]
		if !(load >= 0) {
			return nil, fmt.Errorf("load of tenant %q is %v: %w: give a number from 0 on", tenant, load, ErrInvalid)
		}
		if size := min(math.Ceil(load/perWorker), float64(most)); size > float64(usual) {
			sizes[tenant] = int(size)
		}
	}
	return sizes, nil
}
