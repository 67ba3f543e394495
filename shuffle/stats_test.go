package shuffle_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// significance is the level of all statistical tests: a dealer without bias fails one
// of them once in ten thousand times, half of those for being too even. All
// inputs are fixed, so a test that passed once passes always.
const significance = 1e-4

// fair fails t if x, the chi-square of what, is too high or too low to come from
// chance.
func fair(t *testing.T, what string, x float64, df int) {
	t.Helper()
	p := chiSquareTail(x, float64(df))
	t.Logf("%s, %s: chi-square %.1f on %d degrees of freedom, p = %.4f", strings.TrimPrefix(t.Name(), "Test"), what, x, df, p)
	if !byChance(p) {
		t.Errorf("%s: chi-square %.1f on %d degrees of freedom has p = %.3g", what, x, df, p)
	}
}

// byChance reports whether p is that of a dealer without bias.
func byChance(p float64) bool { return p >= significance/2 && p <= 1-significance/2 }

// evenly fails t unless counts differ as chance has it. Usually scale is 1; it is the
// variance of a count in units of that of independent counts with the same sum.
func evenly(t *testing.T, what string, counts []float64, scale float64) {
	t.Helper()
	mean, x := mean(counts), 0.0
	for _, c := range counts {
		x += (c - mean) * (c - mean)
	}
	fair(t, what, x/(mean*scale), len(counts)-1)
}

func mean(counts []float64) float64 {
	sum := 0.0
	for _, c := range counts {
		sum += c
	}
	return sum / float64(len(counts))
}

// A tally counts the members of hands of k from n, and the pairs of members.
type tally struct {
	n, k, hands int
	singles     []float64
	pairs       []float64 // of x < y at x*n+y
}

func newTally(n, k int) *tally {
	return &tally{n: n, k: k, singles: make([]float64, n), pairs: make([]float64, n*n)}
}

func (c *tally) add(hand []int) {
	c.hands++
	for i, x := range hand {
		c.singles[x]++
		for _, y := range hand[i+1:] {
			c.pairs[min(x, y)*c.n+max(x, y)]++
		}
	}
}

// uniform fails t unless all members, then all pairs, are dealt equally often.
//
// Members of one hand are not independent: their counts have the covariance
// a*I + b*J with a = hands*k/n*(n-k)/(n-1) and are scaled by it. Pairs have the covariance of
// the Johnson scheme, with one eigenvalue for what the counts of single members say
// already and one, used here, for the rest.
func (c *tally) uniform(t *testing.T) {
	t.Helper()
	n, k, hands := float64(c.n), float64(c.k), float64(c.hands)
	if c.k < c.n {
		evenly(t, "members", c.singles, (n-k)/(n-1))
	}
	q2 := k * (k - 1) / n / (n - 1)
	q3 := q2 * (k - 2) / (n - 2)
	q4 := q3 * (k - 3) / (n - 3)
	if lambda := hands * (q2 - 2*q3 + q4); c.k > 1 && lambda > 1e-9 && hands*q2 >= 5 {
		fair(t, "pairs", c.ofPairs()/lambda, c.n*(c.n-3)/2)
	}
}

// ofPairs returns the sum of the squares of what is left of the counts of pairs
// without what those of single members explain.
func (c *tally) ofPairs() float64 {
	n, k := float64(c.n), float64(c.k)
	mean, x := float64(c.hands)*k*(k-1)/n/(n-1), 0.0
	row := make([]float64, c.n)
	for i, single := range c.singles {
		row[i] = (k-1)*single - (n-1)*mean
	}
	for i := range c.n {
		for j := i + 1; j < c.n; j++ {
			d := c.pairs[i*c.n+j] - mean - (row[i]+row[j])/(n-2)
			x += d * d
		}
	}
	return x
}

// chiSquareTail returns the probability that a chi-square with df degrees of
// freedom exceeds x: the upper regularized incomplete gamma function.
func chiSquareTail(x, df float64) float64 {
	if x <= 0 {
		return 1
	}
	a, z := df/2, x/2
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(z) - z - lg)
	if z < a+1 { // by its series
		sum, part := 1/a, 1/a
		for n := a + 1; part > sum*1e-15; n++ {
			part *= z / n
			sum += part
		}
		return 1 - front*sum
	}
	b := z + 1 - a // by its continued fraction, after Lentz
	c, d := 1e300, 1/b
	h := d
	for i := 1.0; i < 1e6; i++ {
		an := i * (a - i)
		b += 2
		d = 1 / (an*d + b)
		c = b + an/c
		h *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return front * h
}

// The statistics are worth nothing if they accept dealers that are known to be
// crooked.
func TestStatisticsSeeBias(t *testing.T) {
	const n, k, hands = 100, 5, 40_000
	r := rand.New(rand.NewPCG(4, 4))
	// One worker is dealt a third more often than the others.
	single := newTally(n, k)
	// Every worker is dealt as often as any other, but each with its neighbour
	// more often than chance has it: one hand in fifty is five neighbours.
	paired := newTally(n, k)
	for range hands {
		hand := r.Perm(n)[:k]
		if !slices.Contains(hand, 0) && r.IntN(60) == 0 {
			hand[0] = 0
		}
		single.add(hand)
		hand = r.Perm(n)[:k]
		if r.IntN(50) == 0 {
			for i := range hand {
				hand[i] = (hand[0] + i) % n
			}
		}
		paired.add(hand)
	}
	scale := float64(n-k) / (n - 1)
	for _, tt := range []struct {
		name   string
		counts []float64
		fair   bool
	}{{"one worker too often", single.singles, false}, {"neighbours too often", paired.singles, true}} {
		m, x := mean(tt.counts), 0.0
		for _, c := range tt.counts {
			x += (c - m) * (c - m) / (m * scale)
		}
		if p := chiSquareTail(x, n-1); byChance(p) != tt.fair {
			t.Errorf("%s: members have p = %.3g", tt.name, p)
		}
	}
	q2 := 5.0 * 4 / 100 / 99
	q3 := q2 * 3 / 98
	q4 := q3 * 2 / 97
	if p := chiSquareTail(paired.ofPairs()/(hands*(q2-2*q3+q4)), n*(n-3)/2); byChance(p) {
		t.Errorf("neighbours too often: pairs have p = %.3g", p)
	}
}

func TestChiSquareTail(t *testing.T) {
	for _, tt := range []struct{ x, df, want float64 }{
		{3.841458821, 1, 0.05}, {5.991464547, 2, 0.05}, {18.30703805, 10, 0.05}, {124.3421134, 100, 0.05},
		{2, 2, math.Exp(-1)}, {0.02, 2, math.Exp(-0.01)}, {77.92946517, 100, 0.95}, {1074.679449, 1000, 0.05},
	} {
		if got := chiSquareTail(tt.x, tt.df); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("chiSquareTail(%v, %v) = %v, want %v", tt.x, tt.df, got, tt.want)
		}
	}
}
