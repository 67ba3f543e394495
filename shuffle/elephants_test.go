package shuffle_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// The table that Kubernetes prints to choose the size of a hand of queues.
func TestSqueezedMiceOfKubernetes(t *testing.T) {
	for _, c := range []struct {
		hand, queues int
		want         [3]string // with 1, 4, 16 elephants, as printed
	}{
		{12, 32, [3]string{"4.428838398950118e-09", "0.11431348830099144", "0.9935089607656024"}},
		{10, 32, [3]string{"1.550093439632541e-08", "0.0626479840223545", "0.9753101519027554"}},
		{10, 64, [3]string{"6.601827268370426e-12", "0.00045571320990370776", "0.49999929150089345"}},
		{9, 64, [3]string{"3.6310049976037345e-11", "0.00045501212304112273", "0.4282314876454858"}},
		{8, 64, [3]string{"2.25929199850899e-10", "0.0004886697053040446", "0.35935114681123076"}},
		{8, 128, [3]string{"6.994461389026097e-13", "3.4055790161620863e-06", "0.02746173137155063"}},
		{7, 128, [3]string{"1.0579122850901972e-11", "6.960839379258192e-06", "0.02406157386340147"}},
		{7, 256, [3]string{"7.597695465552631e-14", "6.728547142019406e-08", "0.0006709661542533682"}},
		{6, 256, [3]string{"2.7134626662687968e-12", "2.9516464018476436e-07", "0.0008895654642000348"}},
		{6, 512, [3]string{"4.116062922897309e-14", "4.982983350480894e-09", "2.26025764343413e-05"}},
		{6, 1024, [3]string{"6.337324016514285e-16", "8.09060164312957e-11", "4.517408062903668e-07"}},
	} {
		for i, elephants := range []int{1, 4, 16} {
			p, err := shuffle.Squeezed(c.queues, c.hand, elephants)
			if err != nil {
				t.Fatal(err)
			}
			agree(t, fmt.Sprintf("hand %d of %d queues, %d elephants", c.hand, c.queues, elephants), p, c.want[i])
		}
	}
}

// agree fails unless p is the printed number to all digits that are printed,
// give or take one of the last.
func agree(t *testing.T, what string, p float64, printed string) {
	t.Helper()
	want, digits := 0.0, 0
	if _, err := fmt.Sscan(printed, &want); err != nil {
		t.Fatal(err)
	}
	started := false
	for _, r := range printed {
		if r == 'e' {
			break
		}
		if r >= '1' && r <= '9' || r == '0' && started {
			started = true
			digits++
		}
	}
	near(t, what, p, want, math.Max(1.5*math.Pow(10, float64(1-digits)), 2e-14))
}

// Reach, in whole numbers, by inclusion and exclusion.
func TestReachIsExact(t *testing.T) {
	const n, k, tenants = 40, 6, 5
	reach, err := shuffle.Reach(n, k, tenants)
	if err != nil {
		t.Fatal(err)
	}
	all := new(big.Int).Exp(shuffle.Hands(n, k), big.NewInt(tenants), nil)
	total := 0.0
	for u, p := range reach {
		// Of the u members, each subset of j holds all hands in C(j,k)^tenants ways.
		ways := new(big.Int)
		for j := range u + 1 {
			w := new(big.Int).Exp(shuffle.Hands(j, k), big.NewInt(tenants), nil)
			w.Mul(w, shuffle.Hands(u, j))
			if (u-j)%2 == 1 {
				w.Neg(w)
			}
			ways.Add(ways, w)
		}
		ways.Mul(ways, shuffle.Hands(n, u))
		want, _ := new(big.Rat).SetFrac(ways, all).Float64()
		if p == 0 && want == 0 {
			continue
		}
		near(t, fmt.Sprintf("reach %d", u), p, want, 1e-11)
		total += p
	}
	near(t, "all", total, 1, 1e-12)
}

func TestReachAtItsEnds(t *testing.T) {
	for _, c := range []struct {
		n, k, tenants, want int
	}{{5, 2, 0, 0}, {5, 2, 1, 2}, {5, 5, 3, 5}, {5, 0, 3, 0}, {0, 0, 2, 0}} {
		reach, err := shuffle.Reach(c.n, c.k, c.tenants)
		if err != nil || math.Abs(reach[c.want]-1) > 1e-15 {
			t.Errorf("%d tenants with %d of %d: %v, %v; want %d for sure", c.tenants, c.k, c.n, reach, err, c.want)
		}
	}
}

// The same arithmetic with 10,000 workers and hands of 64 stays within bounds.
func TestLargeFleetsDoNotOverflow(t *testing.T) {
	o, err := shuffle.OutageOf(10000, 64, 5000, 1000000)
	if err != nil {
		t.Fatal(err)
	}
	ways := new(big.Rat).SetFrac(shuffle.Hands(5000, 64), shuffle.Hands(10000, 64))
	want, _ := ways.Float64()
	near(t, "total", o.Total, want, 1e-12)
	near(t, "anyone", o.Anyone, want*1e6, 1e-9)
	p, err := shuffle.Squeezed(2000, 64, 100)
	if err != nil || !(p > 0 && p < 1) {
		t.Errorf("squeezed by 100 elephants: %v, %v", p, err)
	}
}
