package load

import (
	"math/bits"
	"time"
)

// A histogram counts latencies in microseconds, up to half an hour, with an
// error of at most 1/32. The zero histogram is empty.
type histogram struct {
	n     int
	count [27 * sub]uint32
}

// sub is how many steps each power of two is cut into.
const sub = 32

// slot returns where a latency counts: below 2*sub each microsecond by itself,
// above that each power of two in sub steps.
func slot(us uint64) int {
	e := max(0, bits.Len64(us)-6)
	return min(e*sub+int(us>>e), 27*sub-1)
}

// ceiling returns the largest latency that counts in a slot.
func ceiling(slot int) uint64 {
	if slot < 2*sub {
		return uint64(slot)
	}
	e := slot/sub - 1
	return uint64(slot-e*sub+1)<<e - 1
}

func (h *histogram) add(d time.Duration) {
	h.n++
	h.count[slot(uint64(max(0, d.Microseconds())))]++
}

func (h *histogram) merge(o *histogram) {
	h.n += o.n
	for i, c := range o.count {
		h.count[i] += c
	}
}

// quantile returns the latency that a share q of all does not exceed, or 0 if
// there is none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := max(1, int(q*float64(h.n)+0.999999))
	seen := 0
	for i, c := range h.count {
		if seen += int(c); seen >= rank {
			return time.Duration(ceiling(i)) * time.Microsecond
		}
	}
	return 0
}
