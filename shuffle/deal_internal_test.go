package shuffle

import (
	"math"
	"math/bits"
	"slices"
	"testing"
)

// Nothing is drawn more often than anything else: of the 2^64 words, take gives
// every number below n exactly floor(2^64/n).
func TestTakeHasNoBias(t *testing.T) {
	ns := []uint64{math.MaxUint32, 1 << 32, 1 << 40, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64}
	for n := range uint64(3000) {
		ns = append(ns, n+1)
	}
	for _, n := range ns {
		each := math.MaxUint64 / n // floor(2^64/n), unless n divides 2^64
		if n&(n-1) == 0 {
			each = 1 << (64 - bits.TrailingZeros64(n)) // 0 stands for 2^64
		}
		for _, draw := range []uint64{0, 1, n / 3, n / 2, n - 2, n - 1} {
			if draw >= n {
				continue
			}
			// The words whose product begins with draw are those from
			// ceil(draw*2^64/n) on; the first accepted is among the first two.
			first, rest := uint64(0), uint64(0)
			if draw > 0 {
				if first, rest = bits.Div64(draw, 0, n); rest > 0 {
					first++
				}
			}
			if _, ok := take(first, n); !ok {
				first++
			}
			last := first + each - 1
			for word, want := range map[uint64]bool{first: true, last: true} {
				if got, ok := take(word, n); got != draw || ok != want {
					t.Fatalf("take(%#x, %d) = %d, %v, want %d, %v", word, n, got, ok, draw, want)
				}
			}
			for _, word := range []uint64{first - 1, last + 1} {
				if got, ok := take(word, n); ok && got == draw && each != 0 && n > 1 {
					t.Fatalf("take(%#x, %d) = %d too: more words than %d", word, n, got, each)
				}
			}
		}
	}
}

// Every tuple of draws is another hand in another order, and all of them occur:
// with draws that have no bias, hands have none, at any n and k.
func TestEveryHandIsDealtOnce(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for k := 0; k <= min(n, 5); k++ {
			seen := map[[5]int]bool{}
			want := 1
			for i := range k {
				want *= n - i
			}
			for tuple := range want {
				hand := make([]int, k)
				for i, rest := 0, tuple; i < k; i++ {
					hand[i], rest = rest%(n-i), rest/(n-i)
				}
				unrank(hand)
				var all [5]int
				copy(all[:], hand)
				slices.Sort(hand)
				if seen[all] || len(slices.Compact(hand)) != k || k > 0 && (hand[0] < 0 || hand[k-1] >= n) {
					t.Fatalf("%d of %d: draws %d give %v, again or out of range", k, n, tuple, all)
				}
				seen[all] = true
			}
		}
	}
}
