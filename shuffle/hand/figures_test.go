package hand

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestHistogramIsWithinAStep(t *testing.T) {
	for _, d := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond, 9 * time.Millisecond, 300 * time.Millisecond, 7 * time.Second, 10 * time.Minute} {
		var h histogram
		for range 100 {
			h.add(int64(d))
		}
		got := time.Duration(h.at(0.99))
		if got < d || float64(got) > math.Max(float64(d)*1.26, 135e3) {
			t.Errorf("all take %v, the histogram says %v", d, got)
		}
	}
	var h histogram
	for i := range 5000 {
		h.add(int64(i%100+1) * int64(time.Millisecond))
	}
	for q, want := range map[float64]time.Duration{0.5: 50 * time.Millisecond, 0.95: 95 * time.Millisecond, 0.99: 99 * time.Millisecond} {
		if got := time.Duration(h.at(q)); got < want*9/10 || got > want*13/10 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if h.total > 1024 {
		t.Errorf("%d counts are kept, want the old ones to fade", h.total)
	}
	if stepOf(math.MaxInt64) != 95 || stepOf(-1) != 0 {
		t.Error("steps leave the histogram")
	}
}

func TestBackoffIsSpreadOverAllItsWidth(t *testing.T) {
	b := Backoff{Base: 50 * time.Millisecond, Most: 2 * time.Second, Clamp: 5 * time.Second}
	for n, most := range map[int]time.Duration{0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 100: 2 * time.Second} {
		var all []time.Duration
		for range 2000 {
			all = append(all, b.Wait(n))
		}
		lo, hi := slices.Min(all), slices.Max(all)
		if hi > most || hi < most*9/10 || lo > most/10 {
			t.Errorf("retry %d: waits from %v to %v, want 0 to %v", n, lo, hi, most)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range []string{"", "0", "120", "-1", "1e3", "99999999999999999999", "Fri, 02 Jan 2026 03:05:05 GMT", "Fri, 02 Jan 1970 03:05:05 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := RetryAfter(s, now)
		if d < 0 || !ok && d != 0 {
			t.Errorf("%q: %v, %v", s, d, ok)
		}
		b := Backoff{Base: 50 * time.Millisecond, Most: 2 * time.Second, Clamp: 5 * time.Second}
		if wait, _ := b.Obey(0, d); wait < 0 || wait > 5050*time.Millisecond {
			t.Errorf("%q: a wait of %v", s, wait)
		}
	})
}

func TestRetryAfterAsDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if d, ok := RetryAfter("Fri, 02 Jan 2026 03:05:05 GMT", now); !ok || d != time.Minute {
		t.Errorf("%v, %v, want a minute", d, ok)
	}
}
