package control

import (
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// Whatever was seen, the step of a restore counts: two that saw the same go up by what
// each has drawn.
func TestAStepIsAboveAllThatWasSeen(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := minutesSince2025(now)
	for name, h := range map[string]headRecord{
		"the clock is ahead":           {Incarnation: 1},
		"the store is ahead":           {Incarnation: clock + 1000},
		"somebody else is ahead":       {Incarnation: 1, Highest: HighestVersion{Version: cellway.NewVersion(clock+1<<20, 7)}},
		"epochs are of another future": {Incarnation: 1, NextEpoch: cellway.NewEpoch(clock+500, 3)},
	} {
		raised := func(step uint32) uint32 {
			one := h
			if err := one.raise(t.Context(), nil, 0, step, now); err != nil {
				t.Fatal(err)
			}
			return one.Incarnation
		}
		least := raised(0)
		if least <= h.Incarnation || least <= h.Highest.Version.Incarnation() || least <= h.NextEpoch.Incarnation() || least < clock {
			t.Errorf("%s: %d is used", name, least)
		}
		if got := raised(41); got != least+41 {
			t.Errorf("%s: a step of 41 from %d is %d", name, least, got)
		}
	}
}
