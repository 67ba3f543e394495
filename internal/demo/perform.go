package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/report"
)

// perform plays an act. One of the script whose answers were late, and no worse, is
// played again, more slowly: late answers may be the machine's doing, and a failure
// that is the fleet's comes again.
func (d *director) perform(ctx context.Context, c cue, p pace) (report.Act, error) {
	var tries trials
	bears := d.slow.closed == 0 // nothing has been slow yet
	first := time.Time{}
	for {
		out, err := d.play(ctx, c, p, bears)
		if first.IsZero() {
			first = time.Now()
		}
		if err != nil {
			return out, err
		}
		again := tries.add(&out)
		if !again || !c.script {
			d.replayed += time.Since(first)
			return out, nil
		}
		d.tellOutcome(out)
		p.window *= 2
		if bears, err = d.untilBearable(ctx, p, c.act.Limit); err != nil {
			return out, err
		}
		d.tell(fmt.Sprintf("act %s again, to see whether that was the machine's doing: play %d, at %.0f %% of the load",
			c.act.Name, tries.plays+1, 100*d.slow.apply(p).cover/p.cover))
	}
}

// play plays an act once and judges it. Late answers are the machine's doing if it
// was late itself, or is with nothing wrong, and may be unless it bears the load, as
// far as is known.
func (d *director) play(ctx context.Context, c cue, p pace, bears bool) (report.Act, error) {
	whole := p.cover
	p = d.slow.apply(p)
	hold := time.Duration(0)
	if !c.script && c.act.Name == drainAct {
		hold = drainTime
	}
	now := &playing{cue: c, began: time.Now(), window: max(p.window, hold), end: make(chan struct{})}
	d.mu.Lock()
	d.playing = now
	d.mu.Unlock()
	d.load.SetRate(p.cover, p.skew)
	out, err := d.runner.Play(ctx, act.Play{Act: c.act, Target: c.target, Window: p.window, Hold: hold, End: now.end})
	d.mu.Lock()
	d.playing = nil // a look at the machine may follow, and another play, which this one's end does not end
	d.mu.Unlock()
	d.tellDeaths()
	if p.cover < whole {
		out.LoadShare = p.cover / whole
	}
	if err != nil || c.act.Control {
		return out, err
	}
	d.judge(elsewhere(out), c.act.Limit)
	if out.OnlyLate() {
		// The load shares the machine: if it was late itself, so was everybody.
		stalled := out.LagMS > lateShare*out.LimitMS
		if out.Inconclusive = !bears || stalled; !out.Inconclusive {
			out.Inconclusive, err = d.busy(ctx, p, c.act.Limit)
		}
	}
	return out, err
}

// untilBearable slows the load down until the machine bears it with nothing wrong,
// waits a while for a machine that doesn't, and reports whether it does now.
func (d *director) untilBearable(ctx context.Context, p pace, limit time.Duration) (bool, error) {
	for range bearTries {
		slowed := d.slow.apply(p)
		d.load.SetRate(slowed.cover, slowed.skew)
		p99, err := d.sample(ctx, limit)
		if err != nil {
			return false, err
		}
		if d.judge(p99, limit); p99 <= time.Duration(lateShare*float64(limit)) {
			return true, nil
		}
	}
	return false, nil
}

// bearTries is how often the load is looked at, each time for [warmTime], before an
// act is played again all the same.
const bearTries = 8

// elsewhere returns the worst p99 of the cells that nothing was done to.
func elsewhere(a report.Act) (p99 time.Duration) {
	for _, c := range a.Cells {
		if c.ID != a.Target {
			p99 = max(p99, time.Duration(c.P99MS*float64(time.Millisecond)))
		}
	}
	return p99
}
