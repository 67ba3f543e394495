package engine

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// A BreakerState says whether a cell, or an endpoint, is spoken to.
type BreakerState uint8

// The states of a breaker.
const (
	Closed  BreakerState = iota // all requests go through
	Open                        // none does until the back-off ends
	Probing                     // a few requests try, each for its tenant
)

func (s BreakerState) String() string { return [...]string{"closed", "open", "probing"}[s%3] }

// Stats are the figures of a cell in this router since the pool was made.
type Stats struct {
	Cell             cellway.CellID
	Requests         uint64 // that reached the pool, refused ones included
	Answers          uint64 // answer heads received, 5xx included
	ServerErrors     uint64 // answers with a 5xx
	ConnectFailures  uint64 // requests for which nothing connected
	Timeouts         uint64 // requests without an answer head in time
	ProtocolErrors   uint64 // requests whose answer was malformed or broke off
	RefusedSaturated uint64 // requests refused at a limit
	RefusedOpen      uint64 // requests refused by the breaker
	ClientGone       uint64 // requests whose client went away or was at fault
	Stopped          uint64 // requests that the router itself ended
	InFlight         int    // requests forwarded now, tunnels excepted
	Pending          int    // requests waiting for a place now
	Tunnels          int    // upgraded connections now
	Breaker          BreakerState
	Endpoints        []EndpointStats
	FirstByte        Histogram // time from the choice of an endpoint to the answer's head
}

// TransportFailures returns the requests that failed between the router and
// the cell: nothing connected, no answer in time, or a malformed one.
func (s Stats) TransportFailures() uint64 {
	return s.ConnectFailures + s.Timeouts + s.ProtocolErrors
}

// EndpointStats are the figures of one endpoint of a cell.
type EndpointStats struct {
	Endpoint string // scheme://host:port
	InFlight int
	State    BreakerState
	Failures int // connects failed since the last that worked
}

// counters are what a Pool counts.
type counters struct {
	requests, answers, serverErrors      atomic.Uint64
	connects, timeouts, protocol         atomic.Uint64
	saturated, open, clientGone, stopped atomic.Uint64
	buckets                              [histogramBuckets]atomic.Uint64
}

// observe counts a time to the answer's head.
func (c *counters) observe(d time.Duration) { c.buckets[bucketOf(d)].Add(1) }

func (c *counters) histogram() Histogram {
	h := Histogram{counts: make([]uint64, histogramBuckets)}
	for i := range c.buckets {
		h.counts[i] = c.buckets[i].Load()
	}
	return h
}

// A Histogram counts durations in buckets that grow by an eighth, so that a
// quantile is at most an eighth too high. The zero Histogram is empty.
type Histogram struct{ counts []uint64 }

// Durations are counted in microseconds: one bucket for each up to 16, then
// eight for each doubling, up to more than a day.
const histogramBuckets = 8*33 + 16

func bucketOf(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	shift := max(0, bits.Len64(us)-4)
	return min(shift*8+int(us>>shift), histogramBuckets-1)
}

// bucketTop returns the longest duration in bucket i.
func bucketTop(i int) time.Duration {
	if i < 16 {
		return time.Duration(i) * time.Microsecond
	}
	shift := i/8 - 1
	return time.Duration((uint64(i-shift*8)+1)<<shift-1) * time.Microsecond
}

// Count returns how many durations were counted.
func (h Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Quantile returns a duration that the share q (0 to 1) of the counted ones
// does not exceed, or 0 if none was counted.
func (h Histogram) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	rank := max(1, uint64(q*float64(total)+0.9999))
	for i, c := range h.counts {
		if c >= rank {
			return bucketTop(i)
		}
		rank -= c
	}
	return bucketTop(histogramBuckets - 1)
}

// Since returns what was counted after earlier, a histogram of the same pool.
func (h Histogram) Since(earlier Histogram) Histogram {
	d := Histogram{counts: append([]uint64(nil), h.counts...)}
	for i, c := range earlier.counts {
		if i < len(d.counts) {
			d.counts[i] -= min(c, d.counts[i])
		}
	}
	return d
}

// Each calls f for each bucket that is not empty, with its longest duration
// and its count, shortest first.
func (h Histogram) Each(f func(top time.Duration, count uint64)) {
	for i, c := range h.counts {
		if c > 0 {
			f(bucketTop(i), c)
		}
	}
}
