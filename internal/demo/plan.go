package demo

import (
	"fmt"
	"time"

	"github.com/cellway/cellway"
)

// The bounds of the load. The fleet, its routers and the load itself share one
// machine, which may have two cores, with some to spare for what goes wrong.
const (
	maxCover  = 1000.0 // requests a second that go through all tenants in turn
	minCover  = 100.0
	skewShare = 0.15 // of the cover: requests of tenants drawn by weight
	rounds    = 2    // how often an act's cover goes through all tenants, at least
)

// Shares of an act's time.
const (
	coverShare  = 0.90 // in which the cover makes its rounds; the rest is spare
	windowShare = 0.75 // before the repair
)

// startTime is what a fleet may take to come up.
const startTime = 6 * time.Second

// A pace says how one act is spread over its time.
type pace struct {
	window      time.Duration
	cover, skew float64
}

// A throttle slows the load down on a machine that is too slow or too busy for
// it, as late answers would else be blamed on the fleet. The zero throttle is
// open.
type throttle struct {
	closed float64 // 0 to 1
}

// How a throttle judges the p99 of tenants whom nothing should have touched.
const (
	lateShare  = 0.25 // of the act's limit: slow down
	earlyShare = 0.05 // of it: speed up again
	mostClosed = 0.9
)

// judge hears of a p99 and reports whether the throttle has moved.
func (t *throttle) judge(p99, limit time.Duration) bool {
	before := t.closed
	switch {
	case p99 > time.Duration(lateShare*float64(limit)):
		t.closed = min(mostClosed, 1-(1-t.closed)*0.6)
	case p99 < time.Duration(earlyShare*float64(limit)):
		t.closed = max(0, 1-(1-t.closed)*1.3)
	}
	return t.closed != before
}

// apply slows a pace down.
func (t *throttle) apply(p pace) pace {
	open := 1 - t.closed
	return pace{window: p.window, cover: max(minCover, p.cover*open), skew: p.skew * open}
}

// paceFor spreads an act with so many tenants over a time. If the time is too
// short, the pace is the fastest there is, and the act takes longer.
func paceFor(total time.Duration, tenants int) pace {
	total = max(total, shortest(tenants))
	cover := max(minCover, rounds*float64(tenants)/(coverShare*total.Seconds()))
	return pace{window: time.Duration(windowShare * float64(total)), cover: cover, skew: skewShare * cover}
}

// shortest returns the least time that an act with so many tenants takes.
func shortest(tenants int) time.Duration {
	return time.Duration(rounds * float64(tenants) / (coverShare * maxCover) * float64(time.Second))
}

// minActTime is what an act takes however few the tenants are: processes
// start, and breakers close.
const minActTime = 2 * time.Second

// enough returns an error unless so many acts fit in a time.
func enough(total time.Duration, acts, tenants int) error {
	need := (startTime + time.Duration(acts)*max(minActTime, shortest(tenants)) + time.Second - 1).Truncate(time.Second)
	if total < need {
		return fmt.Errorf("%d acts with %d tenants need %v and get %v: give --for %v, or fewer tenants or acts: %w",
			acts, tenants, need, total, need, cellway.ErrInvalid)
	}
	return nil
}
