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
const startTime = 4 * time.Second

// A pace says how one act is spread over its time.
type pace struct {
	window      time.Duration
	cover, skew float64
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
