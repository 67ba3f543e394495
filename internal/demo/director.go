package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/fleet"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/demo/view"
)

// A director plays acts in turn: those of the script, then those that keys
// call for.
type director struct {
	cfg    Config
	began  time.Time
	script int // how many acts the script has
	fleet  stage
	load   *load.Generator
	runner *act.Runner
	wake   chan struct{}

	slow     throttle      // owned by direct
	replayed time.Duration // what plays beyond the first of their acts took of the script's time; owned by direct

	mu      sync.Mutex
	rep     report.Report
	queue   []cue
	onStage bool     // an act is performed, if only between two of its plays
	playing *playing // nil between plays
	chosen  cellway.CellID
	version cellway.Version
	owned   map[cellway.CellID]int
	events  []view.Event
	deaths  map[string]int       // of workers, by cell, since they were told of
	toldOf  map[string]time.Time // when
	notice  string               // a word to who pressed a key
	noticed time.Time            // when
}

// A stage is the fleet that acts are played on.
type stage interface {
	act.Fleet
	Up(ctx context.Context) error
	Cells() []cellway.CellID
	Home() load.Stack
	ControlURL() string
	Admit(id cellway.CellID) uint8
	Statuses() (cells []fleet.CellStatus, others []proc.Status)
	Map(ctx context.Context) cellway.Version
}

// A cue is an act that waits for its turn.
type cue struct {
	act    act.Act
	target cellway.CellID
	script bool // else it was called for by a key
}

// A playing is the act on the stage.
type playing struct {
	cue
	began  time.Time
	window time.Duration
	end    chan struct{} // closed to end it early
	ended  bool
	record *load.Record
}

func newDirector(cfg Config, acts []act.Act) *director {
	d := &director{cfg: cfg, began: time.Now(), script: len(acts), wake: make(chan struct{}, 1), owned: make(map[cellway.CellID]int),
		deaths: make(map[string]int), toldOf: make(map[string]time.Time)}
	d.rep.Acts = []report.Act{}
	for _, a := range acts {
		d.queue = append(d.queue, cue{act: a, script: true})
	}
	return d
}

// handTime is what an act takes that a key has called for.
const handTime = 8 * time.Second

// drainTime is how long a drain by hand lasts, unless it is undrained.
const drainTime = 10 * time.Minute

// direct brings the fleet up and plays acts until the script has ended, or,
// if the fleet is to be kept or there is no script, until ctx ends.
func (d *director) direct(ctx context.Context) error {
	d.tell(fmt.Sprintf("start a control plane, %d routers and %d cells of a gateway and %d workers each", len(d.fleet.Home().Endpoints), len(d.fleet.Cells()), d.fleet.Whole()))
	err := d.start(ctx)
	kept := false
	for err == nil {
		d.mu.Lock()
		queued := len(d.queue) > 0
		d.mu.Unlock()
		switch {
		case queued:
			err = d.next(ctx)
			continue
		case d.script > 0 && !d.cfg.Keep:
			return nil
		case !kept && !d.cfg.View:
			kept = true
			if err = d.keep(); err != nil {
				continue
			}
		}
		select {
		case <-d.wake:
		case <-ctx.Done():
			return nil
		}
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil // it was told to stop; the caller knows
	}
	return err
}

// keep tells where the fleet is that stays.
func (d *director) keep() error {
	d.tell("the fleet stays until it is interrupted\n" +
		"routers        " + strings.Join(d.fleet.Home().Endpoints, "  ") + "\n" +
		"control plane  " + d.fleet.ControlURL() + "\n" +
		"a tenant's     " + curl(d.fleet.Home().Endpoints[0], string(d.runner.Tenants[0])))
	if d.cfg.Kept == nil {
		return nil
	}
	return d.cfg.Kept(d.report())
}

// start brings the fleet up and lets the tenants in.
func (d *director) start(ctx context.Context) error {
	if err := d.fleet.Up(ctx); err != nil {
		return err
	}
	owner, err := d.fleet.Owners(ctx)
	if err != nil {
		return err
	}
	if err := d.load.SetOwners(owner); err != nil {
		return err
	}
	if err := d.load.Use(d.runner.Home); err != nil {
		return err
	}
	d.mu.Lock()
	for _, t := range d.runner.Tenants {
		d.owned[owner(t)]++
	}
	cells := d.fleet.Cells()
	d.chosen = cells[0]
	aimed := 0
	for i := range d.queue {
		if c := &d.queue[i]; c.act.Aimed {
			c.target = cells[aimed%len(cells)]
			aimed++
		}
	}
	d.mu.Unlock()
	d.tell(fmt.Sprintf("the fleet is up; %d tenants send requests", len(d.runner.Tenants)))
	if d.script == 0 {
		d.calm()
		return nil
	}
	return d.warmUp(ctx)
}

// calm sets the load between acts.
func (d *director) calm() {
	p := d.slow.apply(paceFor(handTime, len(d.runner.Tenants)))
	d.load.SetRate(p.cover/2, p.skew)
}

// warmTime is how long the load runs before the first act, to see what the
// machine is good for.
const warmTime = time.Second

// warmUp runs the load of the script without an act and slows it down until
// the machine can bear it.
func (d *director) warmUp(ctx context.Context) error {
	for range 5 {
		p := d.slow.apply(d.scriptPace(d.script))
		d.load.SetRate(p.cover, p.skew)
		p99, err := d.sample(ctx, warmLimit)
		if err != nil {
			return err
		}
		if !d.judge(p99, warmLimit) {
			return nil
		}
	}
	return nil
}

// warmLimit is what warming up holds latencies against: that of every act.
const warmLimit = time.Second

// sample returns the worst p99 of a cell while the load runs and nothing is
// wrong.
func (d *director) sample(ctx context.Context, limit time.Duration) (p99 time.Duration, err error) {
	rec, err := d.load.Begin(limit)
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(warmTime):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	res, err := rec.Close(ctx)
	for _, c := range res.Cells {
		p99 = max(p99, c.P99)
	}
	return p99, err
}

// busy looks whether the machine is too busy to tell late answers from a
// fault: under the load of an act, with nothing wrong, they are late as well.
func (d *director) busy(ctx context.Context, p pace, limit time.Duration) (bool, error) {
	d.tell("answers were late and none failed: see whether they are late with nothing wrong, too")
	d.load.SetRate(p.cover, p.skew)
	p99, err := d.sample(ctx, limit)
	return p99 > time.Duration(lateShare*float64(limit)), err
}

// scriptPace is that of each of so many acts in the time that is left. What acts
// that were played again took is not counted: it would hurry the others, on a machine
// that was just found to be busy.
func (d *director) scriptPace(left int) pace {
	return paceFor(time.Until(d.began.Add(d.cfg.For+d.replayed))/time.Duration(max(1, left)), len(d.runner.Tenants))
}

// judge sets the throttle by a p99 where nothing is wrong, says so, and reports
// whether the load goes slower now.
func (d *director) judge(p99, limit time.Duration) bool {
	before := d.slow.closed
	if !d.slow.judge(p99, limit) {
		return false
	}
	open := 100 * (1 - d.slow.closed)
	if d.slow.closed < before {
		d.tell(fmt.Sprintf("the machine has room again: the load goes at %.0f %%", open))
		return false
	}
	d.tell(fmt.Sprintf("this machine is slow or busy (p99 %v where nothing is wrong): the load goes at %.0f %%, and the script may take longer",
		p99.Round(time.Millisecond), open))
	return true
}

// next plays the first act of the queue.
func (d *director) next(ctx context.Context) error {
	d.mu.Lock()
	c := d.queue[0]
	d.queue = d.queue[1:]
	d.onStage = true
	left := 1
	for _, q := range d.queue {
		if q.script {
			left++
		}
	}
	d.mu.Unlock()
	p := paceFor(handTime, len(d.runner.Tenants))
	if c.script {
		p = d.scriptPace(left)
	}
	on := ""
	if c.target != "" {
		on = " on " + string(c.target)
	}
	d.tell(fmt.Sprintf("act %s%s: %s", c.act.Name, on, c.act.Title))
	out, err := d.perform(ctx, c, p)
	d.calm()
	d.mu.Lock()
	d.onStage, d.playing = false, nil
	if err != nil && ctx.Err() != nil {
		d.rep.CutOff = &report.CutOff{Name: c.act.Name, Target: c.target}
	}
	if err == nil {
		d.rep.Add(out)
		d.rep.Seconds = time.Since(d.began).Seconds()
	}
	d.mu.Unlock()
	if err != nil {
		if !c.script && ctx.Err() == nil {
			d.tell(err.Error()) // somebody is watching, and may go on
			return nil
		}
		return err
	}
	d.tellOutcome(out)
	return nil
}

// tellOutcome tells what came of a play.
func (d *director) tellOutcome(out report.Act) {
	at := ""
	if out.LoadShare > 0 {
		at = fmt.Sprintf(", at %s of the load", report.Percent(out.LoadShare))
	}
	d.tell(fmt.Sprintf("%s: touched %s of tenants, predicted %s: %s%s", out.Name, report.Percent(out.TouchedShare), report.Percent(out.PredictedShare), out.Verdict(), at))
	if h := out.Hands; h != nil {
		d.tell(fmt.Sprintf("hands of %d of %d workers: %s of the cell's tenants lost all (predicted %s), %s one or all (%s)", h.Size, h.Workers,
			report.Percent(h.LostShare), report.Percent(h.PredictedLostShare), report.Percent(h.DegradedShare), report.Percent(h.PredictedDegradedShare)))
	}
}

// report returns what has come of the acts so far, and what of the script is
// still to come.
func (d *director) report() report.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rep
	r.Acts = slices.Clone(r.Acts)
	for _, q := range d.queue {
		if q.script {
			r.NotPlayed = append(r.NotPlayed, q.act.Name)
		}
	}
	return r
}

// maxEvents bounds the log that is kept for the view.
const maxEvents = 200

// tell notes something that happens.
func (d *director) tell(text string) {
	e := view.Event{At: time.Since(d.began), Text: text}
	d.mu.Lock()
	d.events = append(d.events, e)
	if over := len(d.events) - maxEvents; over > 0 {
		d.events = slices.Delete(d.events, 0, over)
	}
	d.mu.Unlock()
	if !d.cfg.View {
		fmt.Fprintf(d.cfg.Progress, "%6.1f s  %s\n", e.At.Seconds(), strings.ReplaceAll(text, "\n", "\n          "))
	}
}

// changed hears of the fleet's processes. Deeds tell of themselves; this tells
// of what nobody asked for.
func (d *director) changed(s proc.Status) {
	if s.State != proc.Waiting {
		return
	}
	cell, worker := fleet.WorkerOf(s.Name)
	if worker == "" {
		d.tell(fmt.Sprintf("%s died (%s), starts again in %v", s.Name, s.Exit, s.Wait))
		return
	}
	// Workers may die many at a time, and again and again.
	d.mu.Lock()
	d.deaths[cell]++
	n := d.deaths[cell]
	quiet := time.Since(d.toldOf[cell]) < deathsEvery
	if !quiet {
		d.deaths[cell], d.toldOf[cell] = 0, time.Now()
	}
	d.mu.Unlock()
	switch {
	case quiet:
	case n == 1:
		d.tell(fmt.Sprintf("worker %s of %s died (%s), starts again in %v", worker, cell, s.Exit, s.Wait))
	default:
		d.tell(fmt.Sprintf("workers of %s died %d times more (%s)", cell, n, s.Exit))
	}
}

// tellDeaths tells of the deaths of workers that came too soon after others to
// be told of, now that an act is over.
func (d *director) tellDeaths() {
	d.mu.Lock()
	var lines []string
	for _, cell := range slices.Sorted(maps.Keys(d.deaths)) {
		if n := d.deaths[cell]; n > 0 {
			line := fmt.Sprintf("workers of %s died %d times more", cell, n)
			if n == 1 {
				line = fmt.Sprintf("a worker of %s died once more", cell)
			}
			lines = append(lines, line)
			d.deaths[cell], d.toldOf[cell] = 0, time.Now()
		}
	}
	d.mu.Unlock()
	for _, line := range lines {
		d.tell(line)
	}
}

// deathsEvery is how often it is told of the deaths of a cell's workers.
const deathsEvery = 2 * time.Second

// measuring hears of the measurement of the present act.
func (d *director) measuring(r *load.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.playing != nil {
		d.playing.record = r
	}
}

// watchMap keeps up with the newest map, for the view.
func (d *director) watchMap(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, time.Second)
		v := d.fleet.Map(limited)
		cancel()
		d.mu.Lock()
		d.version = v
		d.mu.Unlock()
	}
}
