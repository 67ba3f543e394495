package placement

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cellway/cellway"
)

// A Vector is an amount in each of some dimensions: "tenants", "rps",
// "storage" or any other name, each in a unit of the fleet's choice. What is
// not named is 0.
type Vector map[string]float64

// Validate reports an amount that is negative or no number, as an
// [cellway.ErrInvalid].
func (v Vector) Validate() error {
	for _, dim := range v.dimensions() {
		if a := v[dim]; !(a >= 0) || math.IsInf(a, 0) {
			return fmt.Errorf("%q is %v; give a number from 0 up: %w", dim, a, cellway.ErrInvalid)
		}
	}
	return nil
}

// dimensions returns the names in order, so that no answer depends on the
// order of a Go map.
func (v Vector) dimensions() []string { return slices.Sorted(maps.Keys(v)) }
