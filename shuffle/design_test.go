package shuffle_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func reedSolomon(t testing.TB, zones, seats, overlap int) *shuffle.ReedSolomon {
	t.Helper()
	d, err := shuffle.NewReedSolomon(zones, seats, overlap)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func quadruples(t testing.TB, seats int) shuffle.Quadruples {
	t.Helper()
	d, err := shuffle.NewQuadruples(seats)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// allHands returns every hand of a small design after looking at each.
func allHands(t *testing.T, d shuffle.Design) [][]int {
	t.Helper()
	hands := make([][]int, 0, d.Hands())
	for i := range d.Hands() {
		hand := d.AppendSeats(nil, i)
		sorted := slices.Sorted(slices.Values(hand))
		if len(hand) != d.Size() || len(slices.Compact(slices.Clone(sorted))) != d.Size() || sorted[0] < 0 || sorted[len(sorted)-1] >= d.Seats() {
			t.Fatalf("hand %d is %v, want %d different seats of %d", i, hand, d.Size(), d.Seats())
		}
		hands = append(hands, sorted)
	}
	return hands
}

// wantDesign enumerates: no two hands share more than the design says, some
// share as much, every seat is in equally many.
func wantDesign(t *testing.T, d shuffle.Design, count uint64) {
	t.Helper()
	if d.Hands() != count {
		t.Errorf("%T of %d seats has %d hands, want %d", d, d.Seats(), d.Hands(), count)
	}
	hands := allHands(t, d)
	most := 0
	use := make([]int, d.Seats())
	sets := make([][]uint64, len(hands))
	for i, hand := range hands {
		sets[i] = make([]uint64, (d.Seats()+63)/64)
		for _, seat := range hand {
			use[seat]++
			sets[i][seat/64] |= 1 << (seat % 64)
		}
		for j := range i {
			shared := 0
			for w := range sets[i] {
				for x := sets[i][w] & sets[j][w]; x > 0; x &= x - 1 {
					shared++
				}
			}
			most = max(most, shared)
		}
	}
	if most > d.Overlap() || most < d.Overlap() && count > 1 {
		t.Errorf("%T of %d seats: hands share up to %d, want %d", d, d.Seats(), most, d.Overlap())
	}
	for seat, n := range use {
		if uint64(n)*uint64(d.Seats()) != count*uint64(d.Size()) {
			t.Errorf("%T: seat %d is in %d hands, which is not its share", d, seat, n)
		}
	}
}

func TestDesignsBounded(t *testing.T) {
	for _, c := range []struct {
		zones, seats, overlap int
		hands                 uint64
	}{{3, 16, 1, 256}, {5, 5, 1, 25}, {5, 7, 2, 343}, {3, 9, 1, 81}, {4, 8, 2, 512}, {4, 27, 1, 729}, {2, 2, 1, 4}, {3, 13, 0, 13}, {1, 5, 0, 5}, {5, 5, 3, 625}} {
		d := reedSolomon(t, c.zones, c.seats, c.overlap)
		wantDesign(t, d, c.hands)
		for i, hand := range allHands(t, d) {
			for z, seat := range hand {
				if seat/c.seats != z {
					t.Errorf("hand %d is %v, want a seat of each zone of %d", i, hand, c.seats)
				}
			}
		}
		// As many as any hands with one worker of each zone can be.
		zones := slices.Repeat([]int{c.seats}, c.zones)
		if bound, err := shuffle.ZoneCapacity(zones, c.zones, c.overlap); err != nil || bound.Uint64() != c.hands {
			t.Errorf("the bound is %v, %v; the design has %d", bound, err, c.hands)
		}
	}
	if n := reedSolomon(t, 4, 512, 2).Hands(); n != 134217728 {
		t.Errorf("4 zones of 512: %d hands, want 134,217,728", n)
	}
}

// With a prime number of seats a hand is what anyone computes from the comment.
func TestReedSolomonIsAPolynomial(t *testing.T) {
	d := reedSolomon(t, 5, 101, 2)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		i := rng.Uint64N(d.Hands())
		c0, c1, c2 := int(i%101), int(i/101%101), int(i/101/101)
		var want []int
		for z := range 5 {
			want = append(want, z*101+(c0+c1*z+c2*z*z)%101)
		}
		if got := d.AppendSeats(nil, i); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Fatalf("hand %d is %v, want %v", i, got, want)
		}
	}
}

func TestDesignsFull(t *testing.T) {
	for _, seats := range []int{4, 8, 16, 32, 64} {
		d := quadruples(t, seats)
		bound, err := shuffle.Capacity(seats, 4, 2)
		if err != nil {
			t.Fatal(err)
		}
		wantDesign(t, d, bound.Uint64())
	}
	for seats, want := range map[int]uint64{8: 14, 16: 140, 32: 1240, 2048: 357389824} {
		bound, err := shuffle.Capacity(seats, 4, 2)
		if n := quadruples(t, seats).Hands(); n != want || err != nil || bound.Uint64() != want {
			t.Errorf("%d seats: %d hands, bound %v, %v; want %d", seats, n, bound, err, want)
		}
	}
}

// Every hand of 2,048 seats is a quadruple whose members' exclusive or is 0,
// which is why no two share three. That different numbers have different hands
// is looked at in a million random ones and in the first and last.
func TestLargeQuadruples(t *testing.T) {
	d := quadruples(t, 2048)
	rng := rand.New(rand.NewPCG(3, 4))
	number := map[[4]int]uint64{}
	look := func(i uint64) {
		hand := d.AppendSeats(nil, i)
		slices.Sort(hand)
		if hand[0]^hand[1]^hand[2]^hand[3] != 0 || hand[0] == hand[1] || hand[1] == hand[2] || hand[2] == hand[3] || hand[0] < 0 || hand[3] > 2047 {
			t.Fatalf("hand %d is %v", i, hand)
		}
		if was, there := number[[4]int(hand)]; there && was != i {
			t.Fatalf("hands %d and %d are both %v", was, i, hand)
		}
		number[[4]int(hand)] = i
	}
	for i := range uint64(200_000) {
		look(i)
		look(d.Hands() - 1 - i)
		look(rng.Uint64N(d.Hands()))
	}
}

// Few tenants, numbered in order, load the seats as evenly as many, and not the
// same seats are tried first.
func TestDesignsEven(t *testing.T) {
	for _, d := range []shuffle.Design{reedSolomon(t, 4, 32, 2), reedSolomon(t, 3, 27, 1), quadruples(t, 128)} {
		use, first := make([]int, d.Seats()), make([]int, d.Seats())
		for i := range d.Hands() {
			hand := d.AppendSeats(nil, i)
			first[hand[0]]++
			for _, seat := range hand {
				use[seat]++
			}
			if low, high := slices.Min(use), slices.Max(use); high-low > 1 {
				t.Fatalf("%T of %d seats: after %d hands one seat is in %d, another in %d", d, d.Seats(), i+1, low, high)
			}
		}
		mean := float64(d.Hands()) / float64(d.Seats())
		for seat, n := range first {
			// As for random ones: five standard deviations, p = 6e-7 for each seat.
			if math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
				t.Errorf("%T of %d seats: seat %d is first in %d hands, the mean is %.0f", d, d.Seats(), seat, n, mean)
			}
		}
	}
}

func TestImpossibleDesignsAreRefused(t *testing.T) {
	for what, err := range map[string]error{
		"no prime power":        second(shuffle.NewReedSolomon(3, 12, 1)),
		"more zones than seats": second(shuffle.NewReedSolomon(6, 5, 1)),
		"no zones":              second(shuffle.NewReedSolomon(0, 5, 0)),
		"overlap is no limit":   second(shuffle.NewReedSolomon(3, 5, 3)),
		"overlap below 0":       second(shuffle.NewReedSolomon(3, 5, -1)),
		"too many hands":        second(shuffle.NewReedSolomon(6, 65536, 4)),
		"too large a field":     second(shuffle.NewReedSolomon(3, 65537, 1)),
		"no power of two":       second(shuffle.NewQuadruples(100)),
		"too few":               second(shuffle.NewQuadruples(2)),
		"too many":              second(shuffle.NewQuadruples(1 << 21)),
		"negative":              second(shuffle.NewQuadruples(-4)),
	} {
		if !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%s: error is %v, want invalid", what, err)
		}
	}
	if n := (shuffle.Quadruples{}).Hands(); n != 0 {
		t.Errorf("the zero Quadruples has %d hands", n)
	}
}

func TestDesignsSeated(t *testing.T) {
	d := reedSolomon(t, 3, 8, 1)
	var workers []string
	for z := range 3 {
		for i := range 8 {
			workers = append(workers, fmt.Sprintf("z%d-w%d", z, i))
		}
	}
	before, err := shuffle.NewSeating(workers...)
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.Replace("z1-w3", "z1-w8")
	if err != nil {
		t.Fatal(err)
	}
	if before.Version() == after.Version() {
		t.Error("two seatings have one version")
	}
	if back, err := after.Replace("z1-w8", "z1-w3"); err != nil || back.Version() != before.Version() || !slices.Equal(back.Workers(), workers) {
		t.Errorf("there and back is not where it was: %v", err)
	}
	for i := range d.Hands() {
		a, err := before.AppendHand(nil, d, i)
		if err != nil {
			t.Fatal(err)
		}
		b, err := after.AppendHand(nil, d, i)
		if err != nil {
			t.Fatal(err)
		}
		if j := slices.Index(a, "z1-w3"); j >= 0 {
			a[j] = "z1-w8"
		}
		if !slices.Equal(a, b) {
			t.Errorf("hand %d is %v after one worker was replaced, want %v", i, b, a)
		}
	}
}

func TestSeatingRefusals(t *testing.T) {
	s, err := shuffle.NewSeating("a", "b", "c", "d")
	if err != nil {
		t.Fatal(err)
	}
	d := quadruples(t, 4)
	for what, err := range map[string]error{
		"empty id":         second(shuffle.NewSeating("a", "")),
		"twice":            second(shuffle.NewSeating("a", "b", "a")),
		"replace unknown":  second(s.Replace("x", "y")),
		"replace by other": second(s.Replace("a", "b")),
		"replace by none":  second(s.Replace("a", "")),
		"no such hand":     second(s.AppendHand(nil, d, d.Hands())),
		"other seats":      second(s.AppendHand(nil, quadruples(t, 8), 0)),
	} {
		if !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%s: error is %v, want invalid", what, err)
		}
	}
	if hand, err := s.AppendHand(nil, d, 0); err != nil || len(hand) != 4 {
		t.Errorf("the only hand: %v, %v", hand, err)
	}
	// Ids that run together are not the same ids.
	x, _ := shuffle.NewSeating("ab", "c")
	y, _ := shuffle.NewSeating("a", "bc")
	if x.Version() == y.Version() {
		t.Error("two lists of ids have one version")
	}
}

// Hands of a design are as frozen as those of hrw-1: tenants have their numbers
// for good. A change is a change of major version.
func TestDesignsFrozen(t *testing.T) {
	for _, c := range []struct {
		d    shuffle.Design
		i    uint64
		want []int
	}{
		{reedSolomon(t, 3, 16, 1), 0, []int{0, 16, 32}},
		{reedSolomon(t, 3, 16, 1), 200, []int{35, 8, 20}},
		{reedSolomon(t, 4, 512, 2), 123456789, []int{1939, 277, 805, 1443}},
		{reedSolomon(t, 4, 27, 2), 12345, []int{92, 6, 29, 78}},
		{reedSolomon(t, 5, 7, 2), 342, []int{14, 22, 28, 6, 11}},
		{quadruples(t, 16), 77, []int{1, 9, 5, 13}},
		{quadruples(t, 2048), 0, []int{0, 2, 1, 3}},
		{quadruples(t, 2048), 357389823, []int{1024, 511, 2047, 512}},
		{quadruples(t, 2048), 123456789, []int{533, 1070, 662, 1197}},
	} {
		if got := c.d.AppendSeats(nil, c.i); !slices.Equal(got, c.want) {
			t.Errorf("%T of %d seats, hand %d: %#v, want %v", c.d, c.d.Seats(), c.i, got, c.want)
		}
	}
}

// BenchmarkAlgebraicHand is the time to compute a hand's seats.
func BenchmarkAlgebraicHand(b *testing.B) {
	for name, d := range map[string]shuffle.Design{
		"reed-solomon/4x512/overlap=2": reedSolomon(b, 4, 512, 2),
		"reed-solomon/5x101/overlap=2": reedSolomon(b, 5, 101, 2),
		"reed-solomon/3x16/overlap=1":  reedSolomon(b, 3, 16, 1),
		"quadruples/2048":              quadruples(b, 2048),
	} {
		b.Run(name, func(b *testing.B) {
			seats := make([]int, 0, 8)
			b.ReportAllocs()
			for i := uint64(1); b.Loop(); i++ {
				seats = d.AppendSeats(seats[:0], i*0x9e3779b97f4a7c15%d.Hands())
			}
		})
	}
}
