package control

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are what there is to measure of a Service. Counters are of this process.
type Stats struct {
	Versions      uint64 // published
	PublishErrors uint64 // tries to publish that failed
	StoreErrors   uint64 // calls of the store that failed
	SinkErrors    uint64 // writes to sinks that failed
	Folds         uint64 // fresh bases made

	// PublishLatency is the time from the acceptance of a change to the
	// announcement of the version that contains it, in seconds.
	PublishLatency Histogram

	Waiting      int            // accepted changes that are not published
	Halted       bool           // something waits for a person
	Keys         int            // with an entry in the accepted map
	BaseBytes    int            // of the accepted map
	OverlayBytes int            // of the accepted map
	Cells        map[string]int // of the accepted map, by state
	Overdue      int            // overrides whose review_by has passed
	Alarms       int

	RoutersLive    int // that have reported within their lease
	RoutersBehind  int // of them, that served less than the newest version when they reported
	RoutersMissing int // that fell silent and are still expected

	BackupAge time.Duration // since the last backup, or since the fleet was made if there was none; 0 without a fleet

	RefusedCalls uint64 // of machines that were not let in
	LockedOut    int    // addresses that such calls come from now
}

// A Histogram counts values by size. It has the form that Prometheus asks of a
// constant histogram.
type Histogram struct {
	Count  uint64
	Sum    float64
	AtMost map[float64]uint64 // bound: how many values do not exceed it
}

// Stats returns the measurements of now.
func (s *Service) Stats() Stats {
	out := Stats{
		Versions: s.stats.versions.Load(), PublishErrors: s.stats.publishErrors.Load(), StoreErrors: s.stats.storeErrors.Load(),
		SinkErrors: s.stats.sinkErrors.Load(), Folds: s.stats.folds.Load(), PublishLatency: s.stats.latency.read(),
		Waiting: s.queue.len(), Halted: s.restored.Load() != nil, Overdue: s.overdue.count(), Alarms: len(s.Alarms()),
		Cells: map[string]int{},
	}
	if m := s.Accepted(); m != nil {
		out.Keys, out.BaseBytes, out.OverlayBytes = m.Keys(), len(m.Base().Bytes()), m.OverlaySize()
		for _, c := range m.Cells() {
			out.Cells[c.State.String()]++
		}
	}
	now := time.Now()
	if at := s.backups.since(); !at.IsZero() {
		out.BackupAge = max(now.Sub(at), 1)
	}
	out.RefusedCalls, out.LockedOut = s.lockedOut.counts(now)
	for _, r := range s.Routers() {
		switch {
		case r.Live:
			out.RoutersLive++
			if !r.Behind.IsZero() {
				out.RoutersBehind++
			}
		case now.Sub(r.LastSeen) < expectFor:
			out.RoutersMissing++
		}
	}
	return out
}

// counters are the counted part of Stats.
type counters struct {
	versions, publishErrors, storeErrors, sinkErrors, folds atomic.Uint64
	latency                                                 histogram
}

const numBounds = 12

// bounds returns the bounds of a histogram, in seconds.
func bounds() [numBounds]float64 {
	return [...]float64{.001, .0025, .005, .01, .025, .05, .1, .2, .5, 1, 5, 30}
}

type histogram struct {
	mu     sync.Mutex
	count  uint64
	sum    float64
	counts [numBounds]uint64 // between each bound and the one below
}

func (h *histogram) observe(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := d.Seconds()
	h.count++
	h.sum += v
	for i, bound := range bounds() {
		if v <= bound {
			h.counts[i]++
			return
		}
	}
}

func (h *histogram) read() Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := Histogram{Count: h.count, Sum: h.sum, AtMost: map[float64]uint64{}}
	n := uint64(0)
	for i, bound := range bounds() {
		n += h.counts[i]
		out.AtMost[bound] = n
	}
	return out
}
