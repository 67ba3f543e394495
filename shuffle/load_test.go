package shuffle_test

import (
	"math"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// 300 clients with 30 % of 300 backends each: the example of the SRE book, in
// one run of which the busiest had 121 % of the mean and the idlest 63 %.
func TestRandomHandsLoadUnevenly(t *testing.T) {
	const n, k, tenants = 300, 90, 300
	want, err := shuffle.Unevenness(n, k, tenants)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "predicted", want, 0.0882, 1e-3)
	s := mustSnapshot(t, shuffle.Config{Size: k, Workers: named(n, 1)})
	load := map[string]float64{}
	for _, tenant := range names("client-", tenants) {
		for _, w := range s.AppendHand(nil, tenant) {
			load[w.ID]++
		}
	}
	const mean = tenants * k / n
	low, high, squares := math.Inf(1), 0.0, 0.0
	for _, l := range load {
		low, high = math.Min(low, l/mean), math.Max(high, l/mean)
		squares += (l/mean - 1) * (l/mean - 1)
	}
	// The spread of 300 loads strays by 1/sqrt(600) of itself, 4 %; four times
	// that is p = 6e-5.
	near(t, "measured", math.Sqrt(squares/n), want, 0.16)
	if low < 0.6 || low > 0.85 || high < 1.15 || high > 1.43 {
		t.Errorf("the idlest has %v of the mean, the busiest %v", low, high)
	}
	if u, err := shuffle.Unevenness(5, 5, 10); err != nil || u != 0 {
		t.Errorf("everybody on every worker: %v, %v", u, err)
	}
}
