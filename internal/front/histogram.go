package front

import (
	"sync/atomic"
	"time"
)

// bounds are what durations in a server are counted by.
var bounds = [...]time.Duration{
	20 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond,
	50 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// A Histogram counts durations that a server adds to requests. The zero Histogram
// is empty and ready to use.
type Histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Durations are what a [Histogram] has counted. Counts[i] is for those of at most
// Bounds[i], and above Bounds[i-1]; its last element for those above all bounds.
type Durations struct {
	Bounds []time.Duration
	Counts []uint64
	Sum    time.Duration
}

// Look returns what was counted.
func (h *Histogram) Look() Durations {
	d := Durations{Bounds: bounds[:len(bounds):len(bounds)], Counts: make([]uint64, len(h.counts)), Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		d.Counts[i] = h.counts[i].Load()
	}
	return d
}
