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
	bad := ""
	for dim, a := range v {
		if (!(a >= 0) || math.IsInf(a, 0)) && (bad == "" || dim < bad) {
			bad = dim
		}
	}
	if a := v[bad]; !(a >= 0) || math.IsInf(a, 0) {
		return fmt.Errorf("%q is %v; give a number from 0 up: %w", bad, a, cellway.ErrInvalid)
	}
	return nil
}

// dimensions returns the names in order, so that no answer depends on the
// order of a Go map.
func (v Vector) dimensions() []string { return slices.Sorted(maps.Keys(v)) }
