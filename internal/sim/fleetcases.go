package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// A FleetConfig says what is to go wrong, and how long people and machines
// take to notice. Times are in minutes.
type FleetConfig struct {
	Workers int    `json:"workers"` // of each cell
	Hand    int    `json:"hand"`    // of them for each tenant
	Trials  int    `json:"trials"`  // draws of what is at fault
	Seed    uint64 `json:"seed"`

	Detect float64 `json:"detect"` // until somebody or something knows
	Repair float64 `json:"repair"` // from then until it is mended: rolled back, restarted, published

	Waves []int   `json:"waves"` // cells that have the release after each wave, in percent, rising to 100
	Bake  float64 `json:"bake"`  // between waves

	Routers int     `json:"routers"` // one of which is ring 0
	Soak    float64 `json:"soak"`    // of a map in ring 0
	Gate    float64 `json:"gate"`    // share of owners that a change may move unconfirmed

	Utilization float64 `json:"utilization"` // of the heaviest cell, at the peak
	Storm       Storm   `json:"storm"`
}

// check reports what can't be simulated, as an ErrInvalid.
func (c FleetConfig) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	minutes := func(m float64) bool { return m >= 0 && m <= maxMinutes }
	switch {
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return bad("workers is %d; give 1 to %d", c.Workers, MaxWorkers)
	case c.Hand < 1 || c.Hand > min(c.Workers, MaxHand):
		return bad("hand is %d; give 1 to %d", c.Hand, min(c.Workers, MaxHand))
	case c.Trials < 1 || c.Trials > MaxTrials:
		return bad("trials is %d; give 1 to %d", c.Trials, MaxTrials)
	case !minutes(c.Detect) || !minutes(c.Repair) || c.Detect+c.Repair == 0:
		return bad("it takes %s min to detect and %s min to repair; give 0 to %s for each, and not 0 for both", Number(c.Detect), Number(c.Repair), whole(maxMinutes))
	case !minutes(c.Bake) || c.Bake == 0:
		return bad("waves bake %s min; give a time above 0, at most %s min", Number(c.Bake), whole(maxMinutes))
	case len(c.Waves) == 0 || len(c.Waves) > 20 || c.Waves[0] < 0 || c.Waves[len(c.Waves)-1] != 100 || !slices.IsSorted(c.Waves):
		return bad("waves are %v; give percents of the cells, rising to 100", c.Waves)
	case c.Routers < 1:
		return bad("routers is %d; give 1 or more", c.Routers)
	case !minutes(c.Soak):
		return bad("a map soaks %s min; give 0 to %s", Number(c.Soak), whole(maxMinutes))
	case !(c.Gate >= 0 && c.Gate <= 1):
		return bad("gate is %v; give a share from 0 to 1", c.Gate)
	case !(c.Utilization > 0 && c.Utilization <= 1):
		return bad("utilization is %v; give a share above 0, at most 1", c.Utilization)
	}
	return c.Storm.check()
}

// maxMinutes bounds times: almost two years.
const maxMinutes = 1_000_000

// A FleetReport is what [Fleet] finds out.
type FleetReport struct {
	Config   FleetConfig `json:"config"`
	Name     string      `json:"fleet"`
	Cells    int         `json:"cells"`
	Tenants  int         `json:"tenants"`
	Heaviest struct {
		Cell Reach `json:"cell"` // at most, each for itself
		// Tenant is the share of the load of the heaviest tenant.
		Tenant float64 `json:"tenant"`
	} `json:"heaviest"`
	// Movable is the share of owners that the gate lets move unconfirmed: that of
	// the config, one cell's share, or ten tenants, whichever is most.
	Movable  float64   `json:"movable"`
	Outcomes []Outcome `json:"outcomes"`
	Headroom Headroom  `json:"headroom"`
	Storms   []Course  `json:"storms"`
}

// Fleet plays everything that may go wrong with m. The error wraps
// [cellway.ErrInvalid] if the config can't be, or is the context's.
func Fleet(ctx context.Context, m *Model, cfg FleetConfig, run Run) (*FleetReport, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &FleetReport{Config: cfg, Name: m.Name, Cells: len(m.Cells), Tenants: m.mapped}
	for i := range m.Cells {
		r.Heaviest.Cell.most(m.share([]int{i}))
	}
	for i, c := range m.cell {
		if c >= 0 {
			r.Heaviest.Tenant = max(r.Heaviest.Tenant, m.weight[i]/m.load)
		}
	}
	r.Movable = min(1, max(cfg.Gate, 1/float64(len(m.Cells)), movedAtLeast/float64(m.mapped)))
	draws := r.drawPoison(m)
	maps := min(cfg.Trials, mapTrials)
	g := run.gauge(draws.work + maps*len(m.cell) + len(cfg.Waves)*cfg.Trials*len(m.Cells))
	r.cellLost(m)
	r.headroom(m)
	if err := r.poisonTenant(ctx, m, draws, g); err != nil {
		return nil, err
	}
	if err := r.badDeploy(ctx, m, g); err != nil {
		return nil, err
	}
	r.sharedDependency(m)
	if err := r.badMap(ctx, m, maps, g); err != nil {
		return nil, err
	}
	r.retryStorm(m)
	return r, nil
}

// movedAtLeast is how many tenants the gate lets move in any case, and mapTrials
// how many bad maps are drawn at most.
const (
	movedAtLeast = 10
	mapTrials    = 20
)

// whole is how long something takes that is detected and then repaired.
func (c FleetConfig) whole() float64 { return c.Detect + c.Repair }

// oneCell returns what any one cell reaches: on average, and at worst.
func (m *Model) oneCell() (mean, worst Reach) {
	for i := range m.Cells {
		one := m.share([]int{i})
		mean.add(one, 1/float64(len(m.Cells)))
		worst.most(one)
	}
	return mean, worst
}

// cellLost loses each cell in turn.
func (r *FleetReport) cellLost(m *Model) {
	mean, worst := m.oneCell()
	r.Outcomes = append(r.Outcomes,
		m.outcome("cell", "one stack for all", all, all, Reach{}, r.Config.whole()),
		m.outcome("cell", "a cell", mean, worst, Reach{}, r.Config.whole()))
}

// poisonDraws are the tenants that turn poison, by cell.
type poisonDraws struct {
	tenants, bad [][]int32
	cells        []int // that have a bad one
	trials, work int
}

func (r *FleetReport) drawPoison(m *Model) poisonDraws {
	mapped := make([]int32, 0, m.mapped)
	d := poisonDraws{tenants: make([][]int32, len(m.Cells)), bad: make([][]int32, len(m.Cells))}
	for i, c := range m.cell {
		if c >= 0 {
			mapped = append(mapped, int32(i))
			d.tenants[c] = append(d.tenants[c], int32(i))
		}
	}
	d.trials = min(r.Config.Trials, len(mapped))
	for t := range d.trials {
		random := streamOf(r.Config.Seed, 20, uint64(t))
		who := mapped[random.below(len(mapped))]
		c := m.cell[who]
		if d.bad[c] == nil {
			d.work += 10 * len(d.tenants[c])
		}
		d.bad[c] = append(d.bad[c], who)
		d.work += len(d.tenants[c])
	}
	for c, b := range d.bad {
		if b != nil {
			d.cells = append(d.cells, c)
		}
	}
	return d
}

// poisonTenant lets tenants, drawn at random, take down what serves them. Hands
// are dealt for the cells that are drawn, all of one cell at a time.
func (r *FleetReport) poisonTenant(ctx context.Context, m *Model, draws poisonDraws, g *gauge) error {
	cfg, trials := r.Config, draws.trials
	got := make([]poisoned, len(m.Cells))
	fails := make([]error, len(m.Cells))
	err := g.each(ctx, len(draws.cells), 1, 0, func(i, _ int) {
		c := draws.cells[i]
		got[c], fails[c] = m.poisonIn(ctx, cfg, c, draws.tenants[c], draws.bad[c], g)
	})
	if err != nil {
		return err
	}
	var sum poisoned
	for c := range m.Cells {
		if fails[c] != nil {
			return fails[c]
		}
		sum.cell.add(got[c].cell, 1/float64(trials))
		sum.total.add(got[c].total, 1/float64(trials))
		sum.degraded.add(got[c].degraded, 1/float64(trials))
		sum.worstCell.most(got[c].worstCell)
		sum.worstTotal.most(got[c].worstTotal)
	}
	r.Outcomes = append(r.Outcomes,
		m.outcome("poison", "one stack for all", all, all, Reach{}, cfg.whole()),
		m.outcome("poison", "cells", sum.cell, sum.worstCell, Reach{}, cfg.whole()),
		m.outcome("poison", "cells, hands of "+strconv.Itoa(cfg.Hand)+" of "+strconv.Itoa(cfg.Workers), sum.total, sum.worstTotal, sum.degraded, cfg.whole()))
	return nil
}

// poisoned is what poison tenants did: sums of means, and the worst.
type poisoned struct {
	cell, total, degraded, worstCell, worstTotal Reach
}

// poisonIn plays the poison tenants of one cell. The tenant itself counts: it is
// down, whatever is done.
func (m *Model) poisonIn(ctx context.Context, cfg FleetConfig, cell int, tenants, bad []int32, g *gauge) (poisoned, error) {
	deal := ShuffleConfig{Workers: cfg.Workers, Hand: cfg.Hand, Zones: 1, Seed: cfg.Seed + uint64(cell)}
	snapshot, at, err := deal.snapshot()
	if err != nil {
		return poisoned{}, err
	}
	k := cfg.Hand
	hands := make([]uint16, len(tenants)*k)
	place := make(map[int32]int, len(bad))
	for _, b := range bad {
		place[b] = -1
	}
	var room [MaxHand]shuffle.Worker
	for i, t := range tenants {
		for j, w := range snapshot.AppendHand(room[:0], m.id(int(t))) {
			hands[i*k+j] = at[w.ID]
		}
		if _, ok := place[t]; ok {
			place[t] = i
		}
		if i%chunk == 0 && ctx.Err() != nil {
			return poisoned{}, ctx.Err()
		}
	}
	g.add(10 * len(tenants))
	var out poisoned
	own := m.share([]int{cell})
	for _, b := range bad {
		if ctx.Err() != nil {
			return poisoned{}, ctx.Err()
		}
		out.cell.add(own, 1)
		out.worstCell = own
		down := make([]bool, cfg.Workers)
		for _, w := range hands[place[b]*k : (place[b]+1)*k] {
			down[w] = true
		}
		var total, degraded Reach
		for i, t := range tenants {
			shared := 0
			for _, w := range hands[i*k : (i+1)*k] {
				if down[w] {
					shared++
				}
			}
			one := Reach{1 / float64(m.mapped), m.weight[t] / m.load}
			switch {
			case shared == k:
				total.add(one, 1)
			case shared > 0:
				degraded.add(one, 1)
			}
		}
		out.total.add(total, 1)
		out.degraded.add(degraded, 1)
		out.worstTotal.most(total)
		g.add(len(tenants))
	}
	return out, nil
}

// badDeploy plays a release whose fault shows from wave k on. It reaches waves
// until it is detected, and then all at once are rolled back.
func (r *FleetReport) badDeploy(ctx context.Context, m *Model, g *gauge) error {
	cfg := r.Config
	r.Outcomes = append(r.Outcomes, m.outcome("deploy", "everywhere at once", all, all, Reach{}, cfg.whole()))
	for k := range cfg.Waves {
		if k > 0 && cfg.Waves[k] == cfg.Waves[k-1] {
			continue
		}
		trials := make([]deployed, cfg.Trials)
		err := g.each(ctx, cfg.Trials, 16, len(m.Cells), func(from, to int) {
			for t := from; t < to; t++ {
				trials[t] = m.deploy(cfg, t, k)
			}
		})
		if err != nil {
			return err
		}
		var mean, worst Reach
		var lost, lostLoad float64
		for _, d := range trials {
			mean.add(d.down, 1/float64(cfg.Trials))
			worst.most(d.down)
			lost += d.lost.Tenants * float64(m.mapped)
			lostLoad += d.lost.Load
		}
		o := m.outcome("deploy", fmt.Sprintf("in waves, shows from wave %d (%d %%)", k+1, cfg.Waves[k]), mean, worst, Reach{}, cfg.whole())
		o.Lost, o.LostLoad = lost/float64(cfg.Trials), lostLoad/float64(cfg.Trials)
		r.Outcomes = append(r.Outcomes, o)
	}
	return nil
}

// deployed is what a release did in one trial: who was down, and that times
// minutes.
type deployed struct{ down, lost Reach }

// deploy rolls a release out to cells in a random order. Cells of the waves
// before k have the release, too, and the fault: it shows there at the same time,
// as with one that a date or a load brings.
func (m *Model) deploy(cfg FleetConfig, trial, k int) (d deployed) {
	order := make([]int, len(m.Cells))
	for i := range order {
		order[i] = i
	}
	random := streamOf(cfg.Seed, 30, uint64(trial))
	reorder(&random, order)
	from := 0
	for w := k; w < len(cfg.Waves); w++ {
		began := float64(w-k) * cfg.Bake
		if w > k && began >= cfg.Detect {
			break
		}
		to := upTo(cfg.Waves[w], len(order))
		part := m.share(order[from:max(from, to)])
		from = max(from, to)
		d.down.add(part, 1)
		d.lost.add(part, cfg.whole()-began)
	}
	return d
}

// upTo is how many of n cells a wave of so many percent reaches: at least one.
func upTo(percent, n int) int { return max(1, (percent*n+99)/100) }

// sharedDependency takes away what cells share: everything, and each group of
// cells that the map tells of.
func (r *FleetReport) sharedDependency(m *Model) {
	r.Outcomes = append(r.Outcomes, m.outcome("dependency", "one that every cell uses", all, all, Reach{}, r.Config.whole()))
	groups := m.groups()
	names := slices.Sorted(maps.Keys(groups))
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(m.share(groups[b]).Load, m.share(groups[a]).Load)
	})
	const most = 12 // the rest is smaller
	for _, g := range names[:min(len(names), most)] {
		one := m.share(groups[g])
		r.Outcomes = append(r.Outcomes, m.outcome("dependency", g+" ("+m.describe(groups[g])+")", one, one, Reach{}, r.Config.whole()))
	}
	mean, worst := m.oneCell()
	r.Outcomes = append(r.Outcomes, m.outcome("dependency", "a cell's own", mean, worst, Reach{}, r.Config.whole()))
}

// badMap publishes a map that sends tenants to cells without their data.
func (r *FleetReport) badMap(ctx context.Context, m *Model, trials int, g *gauge) error {
	cfg := r.Config
	// Who would be moved by a change that passes the gate: drawn by tenant, each
	// trial anew, so that heavy ones count as what they are.
	drawn := make([]Reach, trials)
	err := g.each(ctx, trials, 1, len(m.cell), func(t, _ int) {
		seed := streamOf(cfg.Seed, 40, uint64(t)).state
		tenants, load := 0, 0.0
		for i, c := range m.cell {
			if c >= 0 && float64(mix(seed^mix(uint64(i)+golden))>>11)/(1<<53) < r.Movable {
				tenants++
				load += m.weight[i]
			}
		}
		drawn[t] = Reach{float64(tenants) / float64(m.mapped), load / m.load}
	})
	if err != nil {
		return err
	}
	var mean, worst Reach
	for _, one := range drawn {
		mean.add(one, 1/float64(trials))
		worst.most(one)
	}
	r.Outcomes = append(r.Outcomes,
		m.outcome("map", "no gate, all routers at once", all, all, Reach{}, cfg.whole()),
		m.outcome("map", "passes the gate, all routers at once", mean, worst, Reach{}, cfg.whole()))
	if cfg.Routers == 1 {
		return nil // a fleet of one router has no ring before the rest
	}
	// In ring 0 each tenant loses the requests that come through that router. It
	// leaves the ring if nobody knows by the end of the soak.
	ring := 1 / float64(cfg.Routers)
	if cfg.Detect > cfg.Soak {
		o := m.outcome("map", fmt.Sprintf("passes the gate and a soak of %s min", Number(cfg.Soak)), mean, worst, Reach{}, cfg.whole()-cfg.Soak)
		o.Lost += mean.Tenants * float64(m.mapped) * ring * cfg.Soak
		o.LostLoad += mean.Load * ring * cfg.Soak
		r.Outcomes = append(r.Outcomes, o)
	}
	caught := m.outcome("map", "passes the gate, caught in ring 0", Reach{}, Reach{}, mean, 0)
	minutes := min(cfg.Detect, cfg.Soak) + cfg.Repair
	caught.Lost, caught.LostLoad = mean.Tenants*float64(m.mapped)*ring*minutes, mean.Load*ring*minutes
	r.Outcomes = append(r.Outcomes, caught)
	return nil
}

// retryStorm plays a short outage of one cell, and of one stack for all, whose
// callers retry.
func (r *FleetReport) retryStorm(m *Model) {
	mean, worst := m.oneCell()
	storm := r.Config.Storm
	storm.Load = r.Config.Utilization
	for _, budget := range []bool{false, true} {
		course := storm.play(budget)
		r.Storms = append(r.Storms, course)
		for _, where := range []struct {
			name        string
			mean, worst Reach
		}{{"one stack for all", all, all}, {"a cell", mean, worst}} {
			o := m.outcome("storm", where.name+", "+course.Name, where.mean, where.worst, Reach{}, course.Minutes)
			o.Lost, o.LostLoad = o.Down.Tenants*float64(m.mapped)*course.Failed, o.Down.Load*course.Failed
			r.Outcomes = append(r.Outcomes, o)
		}
	}
}
