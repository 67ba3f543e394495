//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
	"github.com/cellway/cellway/bench/internal/openload"
	"github.com/cellway/cellway/internal/demo/proc"
)

// A window is what one window gave.
type window struct {
	openload.Quantiles
	asked  int
	failed openload.Tally // requests for the other cells
	fourth openload.Tally
	cpu    float64 // milliseconds a second that the router took
}

// A trial is what one fault gave in one round.
type trial struct {
	first, with, last     window // before the fault, with it, and after it
	before, during, after holding
	settled               time.Duration // until the descriptors were free again
	seen                  string
}

// settleIn is how long descriptors may take to be free after a fault, and
// spareDescriptors how many more there may be than before it: connections to
// cells that are kept.
const (
	settleIn         = 15 * time.Second
	spareDescriptors = cells * keptConnections
)

// warmUp is how long requests come before a window.
const warmUp = 200 * time.Millisecond

// A meter measures windows.
type meter struct {
	plan    plan
	rig     *rig
	fronts  map[string]*front
	sources map[string][]*openload.Source // of each front; the last is of the fourth cell
}

// measure plays all faults in all rounds, and measures idle connections.
func measure(ctx context.Context, p plan, dir string, stderr io.Writer) (rep report, err error) {
	files, err := raiseDescriptors()
	if err != nil {
		return rep, err
	}
	if most := files - 1500; p.clients > most || p.idle > most {
		if most < 1 {
			return rep, fmt.Errorf("a process may have %d descriptors here, which is too few: raise the limit (ulimit -n)", files)
		}
		fmt.Fprintf(stderr, "a process may have %d descriptors here (ulimit -n), so crowds have %d clients\n", files, most)
		p.clients, p.idle = min(p.clients, most), min(p.idle, most)
	}
	group := proc.New(proc.Config{Dir: dir})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- group.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	rep = report{
		Rounds: p.rounds, WindowMS: p.window.Milliseconds(), Rate: p.rate, BadRate: p.badRate, Clients: p.clients, Readers: p.readers,
		CPUs: runtime.NumCPU(), Load: fleet.LoadAverage(),
	}
	r, err := newRig(ctx, group, dir, p.router, p.elsewhere)
	if err != nil {
		return rep, err
	}
	m := &meter{plan: p, rig: r, fronts: map[string]*front{}, sources: map[string][]*openload.Source{}}
	if rep.Results, err = m.rounds(ctx, stderr); err != nil {
		return rep, err
	}
	if p.idle > 0 {
		rep.Idle, err = m.idle(ctx, stderr)
	}
	return rep, err
}

// rounds plays every fault once in each round.
func (m *meter) rounds(ctx context.Context, stderr io.Writer) ([]verdict, error) {
	trials, beside := make([][]trial, len(m.plan.faults)), make([][]trial, len(m.plan.faults))
	began := time.Now()
	for round := range m.plan.rounds {
		for i, f := range m.plan.faults {
			one, err := m.play(ctx, f)
			if err != nil {
				return m.verdicts(trials, beside), fmt.Errorf("%s: %w", f.name, err)
			}
			trials[i] = append(trials[i], one)
			if m.plan.peer == "" || f.front != frontPlain {
				continue
			}
			f.front = frontPeer
			if one, err = m.play(ctx, f); err != nil {
				return m.verdicts(trials, beside), fmt.Errorf("%s, in front of %s: %w", f.name, nginxName, err)
			}
			beside[i] = append(beside[i], one)
		}
		if len(trials) > 0 {
			fmt.Fprintf(stderr, "played %d of %d rounds in %v\n", round+1, m.plan.rounds, time.Since(began).Round(time.Second))
		}
	}
	return m.verdicts(trials, beside), nil
}

// verdicts judges the faults that were played.
func (m *meter) verdicts(trials, beside [][]trial) (all []verdict) {
	for i, f := range m.plan.faults {
		if len(trials[i]) == 0 {
			continue
		}
		v := judge(f, trials[i])
		if len(beside[i]) > 0 {
			v.Beside = new(compare(beside[i]))
		}
		all = append(all, v)
	}
	return all
}

// front returns a router, which it starts if it is the first to ask.
func (m *meter) front(ctx context.Context, name string) (*front, error) {
	f := m.fronts[name]
	if f != nil {
		return f, nil
	}
	descriptors, more := 0, bounded()
	var err error
	switch name {
	case frontFew:
		descriptors = fewDescriptors
	case frontBeyond:
		descriptors = fewDescriptors
		more = append(more, "--max-connections", "100000", "--max-in-flight", "100000")
	}
	if name == frontPeer {
		f, err = m.rig.startPeer(ctx, m.plan.peer)
	} else {
		f, err = m.rig.start(ctx, "router-"+name, descriptors, more...)
	}
	if err != nil {
		return nil, err
	}
	m.fronts[name] = f
	for i := range cells {
		m.sources[name] = append(m.sources[name], openload.New(f.url, i, 5*time.Second))
	}
	_, err = m.window(ctx, name) // connections are made, caches are warm
	return f, err
}

// play plays one fault between two windows without it.
func (m *meter) play(ctx context.Context, f fault) (r trial, err error) {
	fr, err := m.front(ctx, f.front)
	if err != nil {
		return r, err
	}
	if r.first, err = m.window(ctx, f.front); err != nil {
		return r, err
	}
	if r.before, _, err = m.settle(ctx, f.front, 0); err != nil {
		return r, err
	}
	if err := m.warm(ctx, f.front); err != nil {
		return r, err
	}
	watched := watch(fr.pid)
	end, err := f.begin(ctx, m.rig, fr, m.plan)
	if err != nil {
		watched()
		return r, err
	}
	r.with, err = m.window(ctx, f.front)
	seen, endErr := end()
	r.during, r.seen = watched(), seen
	if err := errors.Join(err, endErr, context.Cause(ctx)); err != nil {
		return r, err
	}
	if s := fr.process.Status(); s.Died > 0 || s.Pid != fr.pid {
		return r, fmt.Errorf("the router's process did not outlive it:\n%s", fr.process.Tail(30))
	}
	if r.after, r.settled, err = m.settle(ctx, f.front, r.before.Descriptors+spareDescriptors); err != nil {
		return r, err
	}
	if err := fleet.Healthy(ctx, m.rig.client, fr.url, cells); err != nil {
		return r, err
	}
	if err := m.warm(ctx, f.front); err != nil {
		return r, err
	}
	r.last, err = m.window(ctx, f.front)
	return r, err
}

// settle closes the connections of clients, and returns what the router holds
// when it has no more than so many descriptors, or if that is 0 no fewer than a
// moment before; or when that takes too long.
func (m *meter) settle(ctx context.Context, name string, most int) (h holding, took time.Duration, err error) {
	for _, s := range m.sources[name] {
		s.Close()
	}
	began, last := time.Now(), math.MaxInt
	for {
		if h, err = held(m.fronts[name].pid); err != nil {
			return h, 0, err
		}
		took = time.Since(began)
		if most > 0 && h.Descriptors <= most || most == 0 && h.Descriptors >= last || took > settleIn {
			return h, took, nil
		}
		last = h.Descriptors
		if err := fleet.Pause(ctx, 100*time.Millisecond); err != nil {
			return h, took, err
		}
	}
}

// warm opens the connections that a window needs.
func (m *meter) warm(ctx context.Context, name string) error {
	_, err := m.send(ctx, name, warmUp)
	return err
}

// watch returns what returns the most that a process has held meanwhile.
func watch(pid int) func() holding {
	var most holding
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if h, err := held(pid); err == nil { // a process that is gone is noticed elsewhere
				most = holding{max(most.MiB, h.MiB), max(most.Descriptors, h.Descriptors)}
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	return func() holding {
		close(stop)
		watching.Wait()
		return most
	}
}

// window measures one window as things are.
func (m *meter) window(ctx context.Context, name string) (window, error) {
	return m.send(ctx, name, m.plan.window)
}

// send sends requests for d.
func (m *meter) send(ctx context.Context, name string, d time.Duration) (w window, err error) {
	all := make([][]openload.Outcome, cells)
	began := time.Now()
	before, err := cpuTime(m.fronts[name].pid)
	if err != nil {
		return w, err
	}
	var sending sync.WaitGroup
	for i, s := range m.sources[name] {
		rate := m.plan.rate / (cells - 1)
		if i == cells-1 {
			rate = m.plan.badRate
		}
		sending.Go(func() { all[i] = s.Send(ctx, rate, d) })
	}
	sending.Wait()
	if err := context.Cause(ctx); err != nil {
		return w, err
	}
	after, err := cpuTime(m.fronts[name].pid)
	if err != nil {
		return w, err
	}
	w.cpu = 1000 * float64(after-before) / float64(time.Since(began))
	w.failed, w.fourth = openload.Tally{}, openload.Tally{}
	w.fourth.Add(all[cells-1])
	var took []time.Duration
	for _, outcomes := range all[:cells-1] {
		for _, o := range outcomes {
			took = append(took, o.Took)
			if o.Said != openload.OK {
				w.failed[o.Said]++
			}
		}
	}
	w.asked, w.Quantiles = len(took), openload.QuantilesOf(took)
	return w, nil
}

// The bounds of the other cells' p99.
const (
	mostRatio   = 1.1
	mostAddedMS = 0.5
)

// near reports whether a p99 is as near to another one as the budget asks, which
// goes by the larger of a ratio and a difference.
func near(ratio, addedMS float64) bool { return ratio <= mostRatio || addedMS <= mostAddedMS }

// A comparison is of windows with a fault to those without: medians over the
// rounds.
type comparison struct {
	WithoutP50MS float64 `json:"without_p50_ms"`
	WithoutP99MS float64 `json:"without_p99_ms"`
	WithP50MS    float64 `json:"with_p50_ms"`
	WithP99MS    float64 `json:"with_p99_ms"`
	P99Ratio     float64 `json:"p99_ratio"`
	P99AddedMS   float64 `json:"p99_added_ms"`
	SameRatio    float64 `json:"same_p99_ratio"` // of the windows without the fault, the second to the first
	SameAddedMS  float64 `json:"same_p99_added_ms"`
	WithoutCPUMS float64 `json:"without_cpu_ms_per_s"` // that the router's processes took
	WithCPUMS    float64 `json:"with_cpu_ms_per_s"`
}

// compare compares.
func compare(trials []trial) (c comparison) {
	over := func(of func(trial) float64) float64 {
		var all []float64
		for _, r := range trials {
			all = append(all, of(r))
		}
		return openload.Median(all)
	}
	without := func(r trial) float64 { return (r.first.P99MS + r.last.P99MS) / 2 }
	c.WithoutP50MS = over(func(r trial) float64 { return (r.first.P50MS + r.last.P50MS) / 2 })
	c.WithoutP99MS = over(without)
	c.WithP50MS, c.WithP99MS = over(func(r trial) float64 { return r.with.P50MS }), over(func(r trial) float64 { return r.with.P99MS })
	c.P99Ratio = over(func(r trial) float64 { return r.with.P99MS / without(r) })
	c.P99AddedMS = over(func(r trial) float64 { return r.with.P99MS - without(r) })
	c.SameRatio = over(func(r trial) float64 { return r.last.P99MS / r.first.P99MS })
	c.SameAddedMS = over(func(r trial) float64 { return r.last.P99MS - r.first.P99MS })
	c.WithoutCPUMS = over(func(r trial) float64 { return (r.first.cpu + r.last.cpu) / 2 })
	c.WithCPUMS = over(func(r trial) float64 { return r.with.cpu })
	return c
}

// A verdict is what one fault gave: medians over the rounds, and what was held in
// the round in which that grew most.
type verdict struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	Front string `json:"router"`

	comparison
	Beside *comparison `json:"nginx,omitempty"` // the same in front of it

	Asked  int            `json:"asked"`            // of the other cells, with the fault
	Failed openload.Tally `json:"failed,omitempty"` // of these
	Lost   int            `json:"lost_without"`     // of those without the fault
	Fourth openload.Tally `json:"fourth"`           // with the fault
	Seen   string         `json:"seen,omitempty"`   // in the last round

	Before  holding `json:"before"`
	During  holding `json:"during"`
	After   holding `json:"after"`
	Settled float64 `json:"settled_seconds"` // until the descriptors were free, at most

	Conclusive bool     `json:"conclusive"` // the windows without the fault are alike
	Missed     []string `json:"missed,omitempty"`
}

// judge makes a verdict of a fault's trials.
func judge(f fault, trials []trial) verdict {
	v := verdict{Name: f.name, What: f.what, Front: f.front, comparison: compare(trials), Failed: openload.Tally{}, Fourth: openload.Tally{}}
	failed, stayed := 0, 0.0
	for i, r := range trials {
		v.Asked += r.with.asked
		for said, n := range r.with.failed {
			v.Failed[said] += n
			failed += n
		}
		for said, n := range r.with.fourth {
			v.Fourth[said] += n
		}
		for _, w := range []window{r.first, r.last} {
			for _, n := range w.failed {
				v.Lost += n
			}
		}
		if grew := r.during.MiB - r.before.MiB; i == 0 || grew > v.During.MiB-v.Before.MiB {
			v.Before, v.During, v.After = r.before, r.during, r.after
		}
		v.Settled, v.Seen = max(v.Settled, r.settled.Seconds()), r.seen
		stayed = max(stayed, r.after.MiB-r.before.MiB)
	}
	v.Conclusive = near(v.SameRatio, v.SameAddedMS) && near(1/v.SameRatio, -v.SameAddedMS)
	miss := func(missed bool, format string, args ...any) {
		if missed {
			v.Missed = append(v.Missed, fmt.Sprintf(format, args...))
		}
	}
	miss(f.refused == 0 && !near(v.P99Ratio, v.P99AddedMS), "p99 of the other cells is %.2f x, at most %.1f x or + %.1f ms", v.P99Ratio, mostRatio, mostAddedMS)
	miss(failed > int(f.refused*float64(v.Asked)), "%d of %d requests of the other cells failed", failed, v.Asked)
	miss(v.Lost > 0, "%d requests failed without the fault", v.Lost)
	miss(f.spoils && v.Fourth[openload.OK] > 0 && f.front == frontPlain, "%d requests of the fourth cell went well: there was no fault", v.Fourth[openload.OK])
	miss(v.During.MiB > v.Before.MiB+f.moreMiB, "memory grew by more than %.0f MiB", f.moreMiB)
	miss(stayed > f.moreMiB, "memory stayed %.0f MiB higher, at most %.0f", stayed, f.moreMiB)
	miss(v.Settled > settleIn.Seconds(), "descriptors were not free %.0f s afterwards", settleIn.Seconds())
	return v
}
