package front

import (
	"testing"
	"time"
)

func TestDurationsFallInTheirBuckets(t *testing.T) {
	var h Histogram
	if d := h.Look(); d.Sum != 0 || len(d.Counts) != len(d.Bounds)+1 {
		t.Errorf("an empty one: %+v", d)
	}
	for _, d := range []time.Duration{-1, 0, 20 * time.Microsecond, 21 * time.Microsecond, time.Second, time.Hour} {
		h.Observe(d)
	}
	d := h.Look()
	if d.Counts[0] != 3 || d.Counts[1] != 1 || d.Counts[len(d.Bounds)-1] != 1 || d.Counts[len(d.Bounds)] != 1 || len(d.Counts) != len(d.Bounds)+1 {
		t.Errorf("counts %v for bounds %v", d.Counts, d.Bounds)
	}
	if want := 41*time.Microsecond + time.Second + time.Hour; d.Sum != want {
		t.Errorf("sum %v, want %v", d.Sum, want)
	}
}
