package sim

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/cellway/cellway/shuffle"
)

// mostClaims bounds the hands of a simulated registry by its memory: claims
// of all tenants.
const mostClaims = 20_000_000

// Shuffle computes and simulates the hands of one cell. The error wraps
// [cellway.ErrInvalid] if the config can't be, or is the context's.
func Shuffle(ctx context.Context, cfg ShuffleConfig, run Run) (*ShuffleReport, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &ShuffleReport{Config: cfg}
	overlap, err := r.exact()
	if err != nil {
		return nil, err
	}
	hands, err := r.simulate(ctx, run)
	if err != nil {
		return nil, err
	}
	if err := r.risks(overlap); err != nil {
		return nil, err
	}
	r.SamePairs = samePairs(hands, cfg.Hand)
	return r, nil
}

// exact fills in the tables that need no simulation.
func (r *ShuffleReport) exact() ([]float64, error) {
	cfg := r.Config
	overlap, err := shuffle.ZoneOverlap(cfg.zoneSizes(), cfg.Hand)
	if err != nil {
		return nil, err
	}
	hands, err := shuffle.ZoneHands(cfg.zoneSizes(), cfg.Hand)
	if err != nil {
		return nil, err
	}
	r.Hands = hands.String()
	if r.SameHand, err = shuffle.SameHand(cfg.Tenants, hands); err != nil {
		return nil, err
	}
	for s, p := range overlap {
		pairs, err := shuffle.PairsOf(cfg.Tenants, p)
		if err != nil {
			return nil, err
		}
		least, err := shuffle.PairsOf(cfg.Tenants, min(1, shuffle.AtLeast(overlap, s)))
		if err != nil {
			return nil, err
		}
		if s == cfg.Hand {
			least.Any = r.SameHand // which is exact
		}
		r.Overlap = append(r.Overlap, OverlapRow{Shared: s, Exact: p, Pairs: pairs.Mean, AnyPair: least.Any})
	}
	for t := range cfg.Hand {
		bound, err := shuffle.ZoneCapacity(cfg.zoneSizes(), cfg.Hand, t)
		if err != nil {
			return nil, err
		}
		beyond, err := shuffle.PairsOf(cfg.Tenants, min(1, shuffle.AtLeast(overlap, t+1)))
		if err != nil {
			return nil, err
		}
		r.Bounds = append(r.Bounds, BoundRow{
			Overlap: t, Capacity: bound.String(), Beyond: beyond.Mean,
			Fits: !bound.IsInt64() || bound.Int64() >= int64(cfg.Tenants),
		})
	}
	return overlap, nil
}

// groups is how many fixed groups of a hand's size the workers make.
func (c ShuffleConfig) groups() int { return c.Workers / c.Hand }

// simulate deals everybody a hand and poisons one tenant after the other.
func (r *ShuffleReport) simulate(ctx context.Context, run Run) ([]uint16, error) {
	cfg := r.Config
	snapshot, at, err := cfg.snapshot()
	if err != nil {
		return nil, err
	}
	// To deal a hand costs about as much as to look at twenty.
	work := cfg.Tenants * (20 + cfg.Trials)
	registry := cfg.Overlap >= 0
	if registry {
		work += cfg.Tenants * 100
	}
	g := run.gauge(work)
	hands := make([]uint16, cfg.Tenants*cfg.Hand)
	err = g.each(ctx, cfg.Tenants, chunk, 20, func(from, to int) {
		var room [MaxHand]shuffle.Worker
		for i := from; i < to; i++ {
			for j, w := range snapshot.AppendHand(room[:0], name("tenant", i)) {
				hands[i*cfg.Hand+j] = at[w.ID]
			}
		}
	})
	if err != nil {
		return nil, err
	}
	r.spread(hands)
	trials, err := poison(ctx, g, cfg, hands, cfg.Tenants)
	if err != nil {
		return nil, err
	}
	r.read(trials)
	if registry {
		if err := r.register(ctx, g, snapshot, at, hands); err != nil {
			return nil, err
		}
	}
	return hands, nil
}

// poison counts, for each trial, the others by how many workers they share
// with a tenant drawn at random.
func poison(ctx context.Context, g *gauge, cfg ShuffleConfig, hands []uint16, tenants int) ([][]int, error) {
	k := cfg.Hand
	trials := make([][]int, cfg.Trials)
	err := g.each(ctx, cfg.Trials, 1, tenants, func(trial, _ int) {
		random := streamOf(cfg.Seed, 1, uint64(trial))
		bad := random.below(tenants)
		down := make([]bool, cfg.Workers)
		for _, w := range hands[bad*k : (bad+1)*k] {
			down[w] = true
		}
		counts := make([]int, k+1)
		for i := 0; i < tenants*k; i += k {
			shared := 0
			for _, w := range hands[i : i+k] {
				if down[w] {
					shared++
				}
			}
			counts[shared]++
		}
		counts[k]-- // the poison tenant itself
		trials[trial] = counts
	})
	return trials, err
}

// read turns the counts of trials into means, with fixed groups beside them.
func (r *ShuffleReport) read(trials [][]int) {
	cfg := r.Config
	others, n := float64(cfg.Tenants-1), float64(len(trials))
	sim := BlastRow{Way: "hands", Simulated: true}
	for s := range r.Overlap {
		var sum, squares float64
		for _, counts := range trials {
			share := float64(counts[s]) / others
			sum += share
			squares += share * share
			if s == cfg.Hand {
				sim.Worst = max(sim.Worst, share)
			}
		}
		mean := sum / n
		r.Overlap[s].Simulated = mean
		// Which tenants turn poison is one chance; which hands were dealt another,
		// and all pairs of tenants are as many draws of it.
		p := r.Overlap[s].Exact
		variance := p * (1 - p) / (others * (others + 1) / 2)
		if n > 1 {
			variance += max(0, squares/n-mean*mean) / (n - 1)
		}
		r.Overlap[s].Error = 2 * math.Sqrt(max(0, variance))
		switch {
		case s == cfg.Hand:
			sim.Total = mean
		case s > 0:
			sim.Degraded += mean
		}
	}
	exact := BlastRow{Way: "hands"}
	exact.Total = r.Overlap[cfg.Hand].Exact
	for s := cfg.Hand - 1; s > 0; s-- {
		exact.Degraded += r.Overlap[s].Exact
	}
	r.Blast = []BlastRow{
		{Way: "no isolation", Total: 1},
		{Way: "fixed groups", Total: 1 / float64(cfg.groups())},
		r.fixed(),
		exact, sim,
	}
}

// fixed simulates fixed groups, to which tenants are hashed.
func (r *ShuffleReport) fixed() BlastRow {
	cfg := r.Config
	in := make([]int, cfg.groups())
	of := func(tenant int) int {
		s := streamOf(cfg.Seed, 2, uint64(tenant))
		return s.below(len(in))
	}
	for i := range cfg.Tenants {
		in[of(i)]++
	}
	row := BlastRow{Way: "fixed groups", Simulated: true}
	for trial := range cfg.Trials {
		random := streamOf(cfg.Seed, 1, uint64(trial))
		share := float64(in[of(random.below(cfg.Tenants))]-1) / float64(cfg.Tenants-1)
		row.Total += share / float64(cfg.Trials)
		row.Worst = max(row.Worst, share)
	}
	return row
}

// spread counts the tenants on each worker.
func (r *ShuffleReport) spread(hands []uint16) {
	cfg := r.Config
	on := make([]int, cfg.Workers)
	for _, w := range hands {
		on[w]++
	}
	r.Spread = Spread{Least: slices.Min(on), Most: slices.Max(on), Mean: float64(len(hands)) / float64(cfg.Workers)}
	var squares float64
	for _, n := range on {
		d := float64(n) - r.Spread.Mean
		squares += d * d
	}
	r.Spread.Deviation = math.Sqrt(squares/float64(cfg.Workers)) / r.Spread.Mean
}

// risks fills in what several bad tenants, and what dead machines do.
func (r *ShuffleReport) risks(overlap []float64) error {
	cfg := r.Config
	var err error
	if r.Spread.Expected, err = shuffle.Unevenness(cfg.Workers, cfg.Hand, cfg.Tenants); err != nil {
		return err
	}
	groups := float64(cfg.groups())
	for bad := 1; bad <= min(64, cfg.Tenants-1); bad *= 2 {
		row := SqueezeRow{Bad: bad, Fixed: 1 - math.Pow(1-1/groups, float64(bad))}
		if row.Squeezed, err = shuffle.Squeezed(cfg.Workers, cfg.Hand, bad); err != nil {
			return err
		}
		if bad == 1 {
			row.Squeezed = overlap[cfg.Hand] // exact with zones, too
		}
		r.Squeeze = append(r.Squeeze, row)
	}
	last := 0
	for _, part := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5} {
		dead := int(math.Round(part * float64(cfg.Workers)))
		if dead <= last || dead >= cfg.Workers {
			continue
		}
		last = dead
		hands, err := shuffle.OutageOf(cfg.Workers, cfg.Hand, dead, cfg.Tenants)
		if err != nil {
			return err
		}
		fixed, err := shuffle.OutageOf(cfg.Workers, cfg.Hand, dead, cfg.groups())
		if err != nil {
			return err
		}
		r.Outage = append(r.Outage, OutageRow{
			Dead: dead, Tenant: hands.Total, AnyTenant: hands.Anyone, AnyFixed: fixed.Anyone,
			TenantsFixed: float64(cfg.Tenants) / groups,
		})
	}
	return nil
}

// register deals the same tenants hands from a registry, in order.
func (r *ShuffleReport) register(ctx context.Context, g *gauge, s *shuffle.Snapshot, at map[string]uint16, hrw []uint16) error {
	cfg := r.Config
	d := &Dealt{Overlap: cfg.Overlap, Capacity: r.Bounds[cfg.Overlap].Capacity}
	reg, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: cfg.Overlap, SearchNodes: 20_000})
	if err != nil {
		return err
	}
	most := min(cfg.Tenants, int(mostClaims/cfg.claims()))
	hands := make([]uint16, 0, most*cfg.Hand)
	usual := 0
	for i := range most {
		h, err := reg.Deal(ctx, s, name("tenant", i))
		if errors.Is(err, shuffle.ErrExhausted) {
			d.Stopped = "exhausted"
			break
		}
		if errors.Is(err, shuffle.ErrSearchLimit) {
			d.Stopped = "search"
			break
		}
		if err != nil {
			return err
		}
		for _, id := range h.Members {
			hands = append(hands, at[id])
		}
		if slices.Equal(hands[i*cfg.Hand:], hrw[i*cfg.Hand:(i+1)*cfg.Hand]) {
			usual++
		}
		d.Dealt++
		g.add(100)
	}
	if d.Stopped == "" && most < cfg.Tenants {
		d.Stopped = "limit"
	}
	d.Usual = float64(usual) / float64(max(d.Dealt, 1))
	r.Registry = d
	if d.Dealt < 2 {
		return nil
	}
	trials, err := poison(ctx, cfg.quiet(), cfg, hands, d.Dealt)
	for _, counts := range trials {
		for shared, n := range counts {
			if n > 0 {
				d.MaxShared = max(d.MaxShared, shared)
			}
		}
	}
	return err
}

// quiet is a gauge for work that is not counted.
func (c ShuffleConfig) quiet() *gauge { return Run{}.gauge(1) }

// samePairs counts the pairs of tenants that have the same workers.
func samePairs(hands []uint16, k int) int {
	prints := make([]uint64, len(hands)/k)
	var sorted [MaxHand]uint16
	for i := range prints {
		hand := sorted[:copy(sorted[:], hands[i*k:(i+1)*k])]
		slices.Sort(hand)
		p := uint64(golden)
		for _, w := range hand {
			p = mix(p ^ mix(uint64(w)+golden))
		}
		prints[i] = p
	}
	slices.Sort(prints)
	pairs, same := 0, 0
	for i := 1; i < len(prints); i++ {
		if same++; prints[i] != prints[i-1] {
			same = 0
		}
		pairs += same
	}
	return pairs
}
