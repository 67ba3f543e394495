package hand

import "math/bits"

// A histogram counts durations in steps of a quarter of an octave at most,
// from 65 microseconds to 18 minutes. What is old fades.
type histogram struct {
	count [96]uint32
	total uint32
}

// unit is the shift that turns nanoseconds into the finest step.
const unit = 16

func stepOf(d int64) int {
	v := uint64(max(d, 0)) >> unit
	if v < 4 {
		return int(v)
	}
	e := bits.Len64(v) - 3
	return min(e*4+int(v>>e), 95)
}

// upper returns the end of step i, in nanoseconds.
func upper(i int) int64 {
	if i < 4 {
		return int64(i+1) << unit
	}
	e := i/4 - 1
	return int64(i%4+5) << e << unit
}

func (h *histogram) add(d int64) {
	h.count[stepOf(d)]++
	if h.total++; h.total >= 1024 {
		h.total = 0
		for i := range h.count {
			h.count[i] /= 2
			h.total += h.count[i]
		}
	}
}

// at returns a duration that the share q of those added did not exceed.
func (h *histogram) at(q float64) int64 {
	need := uint32(q*float64(h.total) + 0.5)
	var sum uint32
	for i, n := range h.count {
		if sum += n; n > 0 && sum >= need {
			return upper(i)
		}
	}
	return 0
}
