package openload

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Quantiles are of the times of requests, in milliseconds; zero for none.
type Quantiles struct {
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
}

// QuantilesOf returns those of took, which it sorts.
func QuantilesOf(took []time.Duration) Quantiles {
	slices.Sort(took)
	at := func(q float64) float64 {
		if len(took) == 0 {
			return 0
		}
		i := max(int(math.Ceil(q*float64(len(took))))-1, 0)
		return float64(took[i].Microseconds()) / 1000
	}
	return Quantiles{at(0.5), at(0.99)}
}

// Median returns the median of all, which it sorts; 0 of none.
func Median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return all[n/2]
	}
	return (all[n/2-1] + all[n/2]) / 2
}

// A Tally counts outcomes by what was said.
type Tally map[string]int

// Add counts outcomes.
func (t Tally) Add(all []Outcome) {
	for _, o := range all {
		t[o.Said]++
	}
}

// String lists what was counted, in alphabetical order.
func (t Tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, t[k]))
	}
	return strings.Join(parts, ", ")
}
