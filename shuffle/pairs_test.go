package shuffle_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func sameHand(t *testing.T, tenants int, hands *big.Int) float64 {
	t.Helper()
	p, err := shuffle.SameHand(tenants, hands)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pairs(t *testing.T, tenants int, p float64) shuffle.Pairs {
	t.Helper()
	f, err := shuffle.PairsOf(tenants, p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// One in 75 million is for two tenants; what it is for a fleet stands here.
func TestFleetOddsOfOneHandTwice(t *testing.T) {
	small, large := shuffle.Hands(100, 5), shuffle.Hands(2048, 4)
	near(t, "2,000 tenants, 5 of 100", sameHand(t, 2000, small), 0.026, 0.03)
	near(t, "10,000 tenants, 5 of 100", sameHand(t, 10000, small), 0.485, 2e-3)
	near(t, "1,000,000 tenants, 4 of 2,048", sameHand(t, 1000000, large), 0.495, 2e-3)
	near(t, "pairs of 100,000 with one hand", pairs(t, 100000, overlap(t, 100, 5)[5]).Mean, 66.4, 1e-3)
}

func TestRandomHandsKeepNoLimit(t *testing.T) {
	atLeastThree := shuffle.AtLeast(overlap(t, 2048, 4), 3)
	near(t, "pairs of 1,000,000", pairs(t, 1000000, atLeastThree).Mean, 5594, 1e-3)
	near(t, "pairs of 100,000", pairs(t, 100000, atLeastThree).Mean, 56, 2e-3)
}

func TestBirthdays(t *testing.T) {
	near(t, "23 people", sameHand(t, 23, big.NewInt(365)), 0.5072972343239854, 1e-12)
	near(t, "22 people", sameHand(t, 22, big.NewInt(365)), 0.4756953076625502, 1e-12)
	for _, c := range []struct {
		tenants int
		hands   int64
		want    float64
	}{{0, 0, 0}, {0, 5, 0}, {1, 5, 0}, {5, 5, 1 - 120./3125}, {6, 5, 1}, {2, 1, 1}, {1 << 40, 1 << 30, 1}} {
		if got := sameHand(t, c.tenants, big.NewInt(c.hands)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d tenants, %d hands: %v, want %v", c.tenants, c.hands, got, c.want)
		}
	}
	// Just above and below where the series takes over, it meets the product.
	hands := big.NewInt(1_000_000)
	for _, tenants := range []int{99, 101} {
		none := 1.0
		for i := range tenants {
			none *= 1 - float64(i)/1e6
		}
		near(t, "at the seam", sameHand(t, tenants, hands), 1-none, 1e-11)
	}
	if p := sameHand(t, 1_000_000_000, new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil)); p != 0 {
		t.Errorf("more hands than float64 can count: %v, want 0", p)
	}
}

// The bound on the error of Any holds where the exact probability is known.
func TestAnyIsWithinItsError(t *testing.T) {
	for _, c := range []struct {
		tenants int
		hands   int64
	}{{2, 1}, {2, 7}, {3, 2}, {10, 30}, {23, 365}, {100, 5000}, {2000, 75287520}, {10000, 75287520}, {100000, 75287520}} {
		f := pairs(t, c.tenants, 1/float64(c.hands))
		exact := sameHand(t, c.tenants, big.NewInt(c.hands))
		if math.Abs(f.Any-exact) > f.AnyError+1e-15 {
			t.Errorf("%d tenants, %d hands: any is %v, exactly %v, which is more than %v off", c.tenants, c.hands, f.Any, exact, f.AnyError)
		}
	}
	if f := pairs(t, 10000, 1/75287520.); f.AnyError > 6e-4 {
		t.Errorf("10,000 tenants: the error may be %v, which tells nothing", f.AnyError)
	}
	if f := pairs(t, 0, 0.5); f != (shuffle.Pairs{}) {
		t.Errorf("no tenants: %+v", f)
	}
	if f := pairs(t, 2, 0.3); math.Abs(f.Any-0.3) > 1e-15 || f.AnyError != 0 {
		t.Errorf("the only pair: %+v, want exactly its probability", f)
	}
	for _, tenants := range []int{2, 3, 1_000_000} {
		if f := pairs(t, tenants, 1); f.Any != 1 || f.AnyError != 0 {
			t.Errorf("what all %d tenants do has the probability %v ± %v that some do", tenants, f.Any, f.AnyError)
		}
	}
}

// Mean and spread of the number of pairs, over many fleets dealt by hrw-1.
func TestPairsAgreeWithDealing(t *testing.T) {
	const fleets, tenants = 400, 60
	s := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(20, 1)})
	want := pairs(t, tenants, shuffle.AtLeast(overlap(t, 20, 3), 2))
	var total, squares float64
	for fleet := range fleets {
		var hands [][]string
		for i := range tenants {
			hands = append(hands, ids(s.AppendHand(nil, fmt.Sprintf("fleet-%d/t%d", fleet, i))))
		}
		n := 0.0
		for i := range hands {
			for j := range i {
				if shared(hands[i], hands[j]) >= 2 {
					n++
				}
			}
		}
		total += n
		squares += n * n
	}
	mean := total / fleets
	sd := math.Sqrt(squares/fleets - mean*mean)
	// The mean of 400 fleets strays by StdDev/20; four times that is p = 6e-5. The
	// spread strays by about 1/sqrt(800) of itself, 3.5 %.
	if math.Abs(mean-want.Mean) > 4*want.StdDev/math.Sqrt(fleets) {
		t.Errorf("%v pairs on average, want %v", mean, want.Mean)
	}
	near(t, "standard deviation", sd, want.StdDev, 0.16)
}

// shared counts the members of a that b has too.
func shared(a, b []string) (n int) {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				n++
			}
		}
	}
	return n
}
