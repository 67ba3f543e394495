package shuffle_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// exactOverlap is the distribution in whole numbers: C(k,i)·C(n-k,k-i)/C(n,k).
func exactOverlap(n, k int) []float64 {
	p := make([]float64, k+1)
	all := new(big.Float).SetPrec(200).SetInt(shuffle.Hands(n, k))
	for i := range p {
		ways := new(big.Int).Mul(shuffle.Hands(k, i), shuffle.Hands(n-k, k-i))
		q := new(big.Float).SetPrec(200).SetInt(ways)
		p[i], _ = q.Quo(q, all).Float64()
	}
	return p
}

// near fails unless got is want within a relative error.
func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if diff := math.Abs(got - want); !(diff <= relative*math.Abs(want)) {
		t.Errorf("%s = %.17g, want %.17g within %g of it", what, got, want, relative)
	}
}

func overlap(t *testing.T, n, k int) []float64 {
	t.Helper()
	p, err := shuffle.Overlap(n, k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOverlapIsExact(t *testing.T) {
	for _, c := range []struct{ n, k int }{{8, 2}, {100, 5}, {2048, 4}, {10000, 64}, {10000, 1000}, {64, 40}, {64, 64}, {1, 1}, {7, 0}, {1 << 20, 8}} {
		want := exactOverlap(c.n, c.k)
		for i, p := range overlap(t, c.n, c.k) {
			if want[i] < 1e-300 { // near the smallest float64, whose digits are fewer
				if p > 1e-299 {
					t.Errorf("%d of %d share %d: %g, want less than 1e-300", c.k, c.n, i, p)
				}
				continue
			}
			near(t, "share", p, want[i], 1e-12)
		}
	}
}

func TestOverlapAddsUp(t *testing.T) {
	for n := range 40 {
		for k := range n + 1 {
			p := overlap(t, n, k)
			if total := shuffle.AtLeast(p, 0); math.Abs(total-1) > 1e-12 || len(p) != k+1 {
				t.Errorf("%d of %d: %d shares that add up to %v", k, n, len(p), total)
			}
		}
	}
}

// The tables that other people publish, in percent.
func TestPublishedOverlaps(t *testing.T) {
	for _, c := range []struct {
		n, k  int
		hands string
		want  []float64
		close float64
	}{
		{8, 2, "28", []float64{53.571, 42.857, 3.571}, 2e-4},
		{54, 4, "316251", []float64{-1, 24.790, 2.324, 0.0632}, 1e-3},
		{100, 2, "4950", []float64{-1, -1, 100. / 4950}, 1e-9},
		{100, 3, "161700", []float64{-1, -1, -1, 100. / 161700}, 1e-9},
		{100, 5, "75287520", []float64{76.9590, 21.1426, 1.83849, 0.059306, 0.000630915, 1.32824e-6}, 1e-5},
		{2048, 4, "730862190080", []float64{99.2205, 0.777818, 0.0017141, 1.11868e-6, 1.368e-10}, 2e-4},
	} {
		if got := shuffle.Hands(c.n, c.k).String(); got != c.hands {
			t.Errorf("%d choose %d = %s, want %s", c.n, c.k, got, c.hands)
		}
		p := overlap(t, c.n, c.k)
		for i, want := range c.want {
			if want >= 0 {
				near(t, "percentage", p[i]*100, want, c.close)
			}
		}
	}
	// Of 54 workers, at least one of four is shared with more than a quarter; it
	// is exactly one that is shared with less.
	near(t, "at least one of four in 54", shuffle.AtLeast(overlap(t, 54, 4), 1), 0.2718, 2e-4)
}

func TestBlast(t *testing.T) {
	b := shuffle.BlastOf(overlap(t, 100, 5))
	near(t, "total", b.Total, 1/75287520., 1e-12)
	near(t, "degraded", b.Degraded, 0.2304, 2e-4)
	near(t, "sum", b.Total+b.Degraded+b.Untouched, 1, 1e-12)
	fixed, err := shuffle.FixedOverlap(100, 5)
	if err != nil {
		t.Fatal(err)
	}
	if b := shuffle.BlastOf(fixed); b != (shuffle.Blast{Total: 0.05, Untouched: 0.95}) {
		t.Errorf("fixed groups: %+v", b)
	}
	if b := shuffle.BlastOf(nil); b != (shuffle.Blast{}) {
		t.Errorf("nothing: %+v", b)
	}
	if b := shuffle.BlastOf([]float64{1}); b != (shuffle.Blast{Untouched: 1}) {
		t.Errorf("empty hands: %+v", b)
	}
}

func zoneOverlap(t *testing.T, zones []int, k int) []float64 {
	t.Helper()
	p, err := shuffle.ZoneOverlap(zones, k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestZonesShrinkTheChoice(t *testing.T) {
	p := zoneOverlap(t, []int{30, 30, 30}, 3)
	for i, want := range []float64{90.3296, 9.3444, 0.3222, 0.0037} {
		near(t, "percentage", p[i]*100, want, 2e-3)
	}
	near(t, "all", p[3], 1/27000., 1e-12)
	// Without zones it would be less, and that is no model of it.
	pooled := overlap(t, 90, 3)
	for i, want := range []float64{90.2239, 9.55312, 0.22217, 0.00085} {
		near(t, "pooled percentage", pooled[i]*100, want, 2e-3)
	}
	near(t, "ratio", p[3]/pooled[3], 4.351, 1e-3)
	hands, err := shuffle.ZoneHands([]int{30, 30, 30}, 3)
	if err != nil || hands.Int64() != 27000 {
		t.Errorf("hands = %v, %v; want 27000", hands, err)
	}
}

func TestOneZoneIsNoZone(t *testing.T) {
	for k := range 9 {
		if got, want := zoneOverlap(t, []int{8}, k), overlap(t, 8, k); !slices.EqualFunc(got, want, closeTo) {
			t.Errorf("k %d: %v, want %v", k, got, want)
		}
		// Zones without workers don't count.
		if got, want := zoneOverlap(t, []int{0, 8, 0}, k), overlap(t, 8, k); !slices.EqualFunc(got, want, closeTo) {
			t.Errorf("k %d, empty zones: %v, want %v", k, got, want)
		}
	}
}

func closeTo(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

// Every hand that can be dealt, with its probability, tells the distribution.
func TestZoneOverlapAgreesWithEnumeration(t *testing.T) {
	for _, zones := range [][]int{{2, 2}, {3, 2}, {1, 3, 2}, {4, 1, 1}, {2, 2, 2, 1}, {5, 0, 1}} {
		n := 0
		for _, workers := range zones {
			n += workers
		}
		for k := range n + 1 {
			hands := enumerate(zones, k)
			count, err := shuffle.ZoneHands(zones, k)
			if err != nil || count.Int64() != int64(len(hands)) {
				t.Errorf("zones %v, k %d: %v hands, %v; enumerated %d", zones, k, count, err, len(hands))
			}
			want := make([]float64, k+1)
			for a, p := range hands {
				for b, q := range hands {
					want[popcount(a&b)] += p * q
				}
			}
			if got := zoneOverlap(t, zones, k); !slices.EqualFunc(got, want, closeTo) {
				t.Errorf("zones %v, k %d: %v, want %v", zones, k, got, want)
			}
		}
	}
}

// enumerate returns every hand as a set of bits with its probability, by dealing
// for every order of zones.
func enumerate(zones []int, k int) map[int]float64 {
	hands := map[int]float64{}
	orders := permutations(len(zones))
	for _, order := range orders {
		counts := make([]int, len(zones))
		for left := k; left > 0; {
			for _, z := range order {
				if left > 0 && counts[z] < zones[z] {
					counts[z]++
					left--
				}
			}
		}
		ways := map[int]float64{0: 1 / float64(len(orders))}
		first := 0
		for z, workers := range zones {
			next := map[int]float64{}
			total := float64(shuffle.Hands(workers, counts[z]).Int64())
			for set := range 1 << workers {
				if popcount(set) == counts[z] {
					for hand, p := range ways {
						next[hand|set<<first] += p / total
					}
				}
			}
			ways = next
			first += workers
		}
		for hand, p := range ways {
			hands[hand] += p
		}
	}
	return hands
}

func popcount(x int) (n int) {
	for ; x > 0; x &= x - 1 {
		n++
	}
	return n
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

func TestImpossibleHandsAreRefused(t *testing.T) {
	for what, err := range map[string]error{
		"overlap, k above n":     second(shuffle.Overlap(3, 4)),
		"overlap, k below 0":     second(shuffle.Overlap(3, -1)),
		"fixed, no multiple":     second(shuffle.FixedOverlap(10, 3)),
		"fixed, k 0":             second(shuffle.FixedOverlap(10, 0)),
		"zones, k above n":       second(shuffle.ZoneOverlap([]int{1, 2}, 4)),
		"zones, below 0":         second(shuffle.ZoneOverlap([]int{5, -1}, 2)),
		"zone hands, k above n":  second(shuffle.ZoneHands([]int{1, 2}, 4)),
		"capacity, no limit":     second(shuffle.Capacity(10, 3, 3)),
		"capacity, below 0":      second(shuffle.Capacity(10, 3, -1)),
		"zone capacity":          second(shuffle.ZoneCapacity([]int{4, 4}, 2, 2)),
		"squeezed":               second(shuffle.Squeezed(4, 5, 1)),
		"squeezed, tenants":      second(shuffle.Squeezed(4, 2, -1)),
		"outage, dead":           second(shuffle.OutageOf(4, 2, 5, 1)),
		"outage, hands":          second(shuffle.OutageOf(4, 2, 1, -1)),
		"unevenness":             second(shuffle.Unevenness(4, 5, 1)),
		"pairs, tenants":         second(shuffle.PairsOf(-1, 0.5)),
		"pairs, probability":     second(shuffle.PairsOf(1, 1.5)),
		"pairs, no number":       second(shuffle.PairsOf(1, math.NaN())),
		"same hand, tenants":     second(shuffle.SameHand(-1, big.NewInt(1))),
		"same hand, without one": second(shuffle.SameHand(1, new(big.Int))),
	} {
		if !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%s: error is %v, want invalid", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
