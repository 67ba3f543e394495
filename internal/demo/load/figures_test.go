package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheSkewIsHeavyAndRepeatable(t *testing.T) {
	draw := func() []int {
		d := newDrawer(1000, rand.New(rand.NewPCG(1, 2)))
		n := make([]int, 1000)
		for range 100_000 {
			n[d.draw()]++
		}
		return n
	}
	first := draw()
	if !slices.Equal(first, draw()) {
		t.Error("the same seed draws otherwise")
	}
	sorted := slices.Sorted(slices.Values(first))
	if top := sorted[len(sorted)-1]; top < 12_000 || top > 15_000 { // 1/H(1000) = 13.4 %
		t.Errorf("the heaviest tenant has %d of 100000", top)
	}
	if ten := sorted[:500]; slices.Max(ten) > 60 {
		t.Errorf("the lighter half goes up to %d of 100000", slices.Max(ten))
	}
}

func TestHistogramIsExactToOneInThirtyTwo(t *testing.T) {
	for _, us := range []uint64{0, 1, 31, 32, 63, 64, 65, 127, 128, 1000, 4095, 4096, 999_999, 2_000_000_000} {
		s := slot(us)
		if c := ceiling(s); c < us || float64(c) > float64(us)*33/32+1 {
			t.Errorf("%d us counts up to %d us", us, c)
		}
		if s > 0 && ceiling(s-1) >= us {
			t.Errorf("%d us fits in the slot below", us)
		}
	}
	var h, other histogram
	if h.quantile(0.99) != 0 {
		t.Error("an empty histogram has a p99")
	}
	for i := range 100 {
		if i < 98 {
			h.add(time.Millisecond)
		} else {
			other.add(time.Second)
		}
	}
	h.merge(&other)
	if p50, p99 := h.quantile(0.5), h.quantile(0.99); p50 < time.Millisecond || p50 > 1032*time.Microsecond || p99 < time.Second || p99 > 1032*time.Millisecond {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
}

func TestLiveForgetsWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m meter
		for range 3 {
			for range 10 {
				m.count("cell-001", time.Now(), 2*time.Millisecond, false)
			}
			m.count("cell-001", time.Now(), 4*time.Millisecond, false)
			m.count("cell-001", time.Now(), time.Microsecond, true)
			time.Sleep(time.Second)
		}
		got := m.read(time.Now())
		if len(got) != 1 || got[0].Requests != 12 || got[0].Errors != 1 || got[0].P50 < 2*time.Millisecond || got[0].P99 < 4*time.Millisecond {
			t.Errorf("at once: %+v", got)
		}
		for range 2000 {
			m.count("cell-002", time.Now(), time.Microsecond, true)
		}
		time.Sleep(time.Second)
		if got := m.read(time.Now()); got[1].Errors == 0 || got[1].P99 != 0 {
			t.Errorf("a cell that refuses everybody at once has a p99: %+v", got[1])
		}
		time.Sleep(10 * time.Second)
		if got := m.read(time.Now()); got[0].Requests != 0 || got[0].P99 != 0 {
			t.Errorf("later: %+v", got)
		}
	})
}
