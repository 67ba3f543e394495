package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
	"github.com/cellway/cellway/bench/internal/openload"
	"github.com/cellway/cellway/internal/demo/proc"
)

// A plan says how much is measured.
type plan struct {
	pairs         int
	window        time.Duration
	rate, badRate int
}

// The kinds of pairs, by what the fourth cell is in one half of each.
const (
	hangs   = "hangs"
	refuses = "refuses"
	same    = "healthy" // in both halves
)

// A verdict is the median over the pairs of one kind.
type verdict struct {
	Name       string             `json:"name"` // what the fourth cell was
	Pairs      int                `json:"pairs"`
	Healthy    openload.Quantiles `json:"healthy"`
	Bad        openload.Quantiles `json:"bad"`
	P50Ratio   float64            `json:"p50_ratio"`
	P99Ratio   float64            `json:"p99_ratio"`
	P99AddedMS float64            `json:"p99_added_ms"`
	Failures   int                `json:"failures"` // of requests for the good cells, in all windows
	Fourth     openload.Tally     `json:"fourth"`   // requests for the fourth cell while it was bad, by what became of them
	Meets      bool               `json:"meets"`    // p99 <= 1.1 x or + 0.5 ms, whichever is larger, and no failure
}

// The budget.
const (
	maxRatio   = 1.1
	maxAddedMS = 0.5
)

// measure starts a fleet and measures all pairs.
func measure(ctx context.Context, p plan, stderr io.Writer) (rep report, err error) {
	dir, err := os.MkdirTemp("", "cellway-isolation-")
	if err != nil {
		return rep, err
	}
	defer os.RemoveAll(dir)
	group := proc.New(proc.Config{Dir: dir})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- group.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	rep = report{Pairs: p.pairs, WindowMS: p.window.Milliseconds(), Rate: p.rate, BadRate: p.badRate, CPUs: runtime.NumCPU(), Load: fleet.LoadAverage(), Meets: true}
	f, err := startRig(ctx, group, dir)
	if err != nil {
		return rep, err
	}
	m := &meter{plan: p, fleet: f}
	for i := range cells {
		limit := 5 * time.Second
		if i == cells-1 {
			limit = 2 * time.Second
		}
		m.sources = append(m.sources, openload.New(f.url, i, limit))
	}
	if err := f.healthy(ctx); err != nil {
		return rep, err
	}
	if _, err := m.half(ctx, same); err != nil { // connections are made, caches are warm
		return rep, err
	}
	kinds := []string{same, hangs, refuses}
	pairs := map[string][]pair{}
	for i := range p.pairs {
		for _, kind := range kinds {
			one, err := m.pair(ctx, kind, i%2 == 1)
			if err != nil {
				return rep, err
			}
			pairs[kind] = append(pairs[kind], one)
		}
		fmt.Fprintf(stderr, "measured %d of %d pairs of each kind\n", i+1, p.pairs)
	}
	for _, kind := range kinds {
		v := judge(kind, pairs[kind])
		rep.Results = append(rep.Results, v)
		if kind == same {
			rep.Conclusive = quiet(v)
		} else {
			rep.Meets = rep.Meets && v.Meets
		}
	}
	return rep, nil
}

// quiet reports whether two healthy windows are as alike as the budget asks of a
// healthy and a bad one. If not, the machine does something else meanwhile, and
// no verdict means much.
func quiet(v verdict) bool {
	return v.P99Ratio <= maxRatio && v.P99Ratio >= 1/maxRatio || math.Abs(v.P99AddedMS) <= maxAddedMS
}

// A meter measures windows.
type meter struct {
	plan    plan
	fleet   *rig
	sources []*openload.Source // the last is of the fourth cell
}

// A window is what one window gave.
type window struct {
	openload.Quantiles
	failures int
	fourth   openload.Tally
}

// A pair is a window with the fourth cell healthy, and one with it as it may be.
type pair struct{ healthy, bad window }

// pair measures both halves, the bad one first if swapped: what drifts by itself
// falls on either half as often.
func (m *meter) pair(ctx context.Context, kind string, swapped bool) (p pair, err error) {
	first, second := same, kind
	if swapped {
		first, second = kind, same
	}
	a, err := m.half(ctx, first)
	if err != nil {
		return p, err
	}
	b, err := m.half(ctx, second)
	if swapped {
		a, b = b, a
	}
	return pair{a, b}, err
}

// half measures one window in which the fourth cell is of that kind from the
// very beginning, and leaves the fleet healthy.
func (m *meter) half(ctx context.Context, kind string) (w window, err error) {
	fourth := m.fleet.cells[cells-1]
	var mend func() error
	switch kind {
	case hangs:
		err, mend = fourth.Suspend(), fourth.Resume
	case refuses:
		err, mend = fourth.Kill(ctx), func() error { return fourth.Start(ctx) }
	default:
		mend = func() error { return nil }
	}
	if err != nil {
		return w, err
	}
	all := make([][]openload.Outcome, cells)
	var sending sync.WaitGroup
	for i, s := range m.sources {
		rate := m.plan.rate / (cells - 1)
		if i == cells-1 {
			rate = m.plan.badRate
		}
		sending.Go(func() { all[i] = s.Send(ctx, rate, m.plan.window) })
	}
	sending.Wait()
	if err := mend(); err != nil {
		return w, err
	}
	if err := context.Cause(ctx); err != nil {
		return w, err
	}
	w.fourth = openload.Tally{}
	for _, o := range all[cells-1] {
		w.fourth[o.Said]++
	}
	var took []time.Duration
	for _, outcomes := range all[:cells-1] {
		for _, o := range outcomes {
			took = append(took, o.Took)
			if o.Said != openload.OK {
				w.failures++
			}
		}
	}
	w.Quantiles = openload.QuantilesOf(took)
	return w, m.fleet.healthy(ctx)
}

// judge takes the medians over pairs and holds them against the budget.
func judge(kind string, pairs []pair) verdict {
	v := verdict{Name: kind, Pairs: len(pairs), Fourth: openload.Tally{}}
	over := func(f func(pair) float64) float64 {
		var all []float64
		for _, p := range pairs {
			all = append(all, f(p))
		}
		return openload.Median(all)
	}
	for _, p := range pairs {
		v.Failures += p.healthy.failures + p.bad.failures
		for k, n := range p.bad.fourth {
			v.Fourth[k] += n
		}
	}
	v.Healthy = openload.Quantiles{P50MS: over(func(p pair) float64 { return p.healthy.P50MS }), P99MS: over(func(p pair) float64 { return p.healthy.P99MS })}
	v.Bad = openload.Quantiles{P50MS: over(func(p pair) float64 { return p.bad.P50MS }), P99MS: over(func(p pair) float64 { return p.bad.P99MS })}
	v.P50Ratio = over(func(p pair) float64 { return p.bad.P50MS / p.healthy.P50MS })
	v.P99Ratio = over(func(p pair) float64 { return p.bad.P99MS / p.healthy.P99MS })
	v.P99AddedMS = over(func(p pair) float64 { return p.bad.P99MS - p.healthy.P99MS })
	v.Meets = (v.P99Ratio <= maxRatio || v.P99AddedMS <= maxAddedMS) && v.Failures == 0
	return v
}
