package shuffle_test

import (
	"math"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// Whatever the zones, the overlap is a distribution whose mean is not below that
// without zones, k²/n, and not above k.
func FuzzZoneOverlap(f *testing.F) {
	f.Add([]byte{30, 30, 30}, 3)
	f.Add([]byte{1, 200, 3}, 64)
	f.Add([]byte{0, 5}, 5)
	f.Fuzz(func(t *testing.T, sizes []byte, k int) {
		if len(sizes) > 12 || k > 200 {
			return
		}
		var zones []int
		n := 0
		for _, b := range sizes {
			zones = append(zones, int(b))
			n += int(b)
		}
		p, err := shuffle.ZoneOverlap(zones, k)
		if (err == nil) != (k >= 0 && k <= n) {
			t.Fatalf("zones %v, k %d: %v", zones, k, err)
		}
		if err != nil {
			return
		}
		total, mean := 0.0, 0.0
		for i, q := range p {
			if q < 0 || math.IsNaN(q) {
				t.Fatalf("zones %v, k %d: %v", zones, k, p)
			}
			total += q
			mean += q * float64(i)
		}
		if math.Abs(total-1) > 1e-9 || len(p) != k+1 {
			t.Errorf("zones %v, k %d: %d shares, sum %v", zones, k, len(p), total)
		}
		if most := float64(k); mean > most+1e-9 || n > 0 && mean < most*most/float64(n)-1e-9 {
			t.Errorf("zones %v, k %d: mean overlap %v, below that without zones or above k", zones, k, mean)
		}
		hands, err := shuffle.ZoneHands(zones, k)
		if err != nil || hands.Sign() <= 0 {
			t.Errorf("zones %v, k %d: %v hands, %v", zones, k, hands, err)
		}
	})
}

// Whatever two numbers, their hands are whole and keep the overlap.
func FuzzDesigns(f *testing.F) {
	designs := []shuffle.Design{
		mustDesign(shuffle.NewReedSolomon(4, 512, 2)), mustDesign(shuffle.NewReedSolomon(5, 101, 3)),
		mustDesign(shuffle.NewReedSolomon(6, 729, 4)), mustDesign(shuffle.NewQuadruples(2048)), mustDesign(shuffle.NewQuadruples(1 << 20)),
	}
	f.Add(uint64(0), uint64(1))
	f.Add(uint64(1)<<63, ^uint64(0))
	f.Fuzz(func(t *testing.T, i, j uint64) {
		for _, d := range designs {
			i, j := i%d.Hands(), j%d.Hands()
			a, b := d.AppendSeats(nil, i), d.AppendSeats(nil, j)
			slices.Sort(a)
			slices.Sort(b)
			if len(slices.Compact(slices.Clone(a))) != d.Size() || a[0] < 0 || a[len(a)-1] >= d.Seats() {
				t.Fatalf("%T of %d seats, hand %d is %v", d, d.Seats(), i, a)
			}
			shared := 0
			for _, seat := range a {
				if slices.Contains(b, seat) {
					shared++
				}
			}
			if i != j && shared > d.Overlap() || i == j && shared != d.Size() {
				t.Errorf("%T of %d seats: hands %d and %d are %v and %v", d, d.Seats(), i, j, a, b)
			}
		}
	})
}

func mustDesign[D shuffle.Design](d D, err error) shuffle.Design {
	if err != nil {
		panic(err)
	}
	return d
}
