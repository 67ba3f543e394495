package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/sim"
	"github.com/cellway/cellway/routemap"
	"github.com/spf13/cobra"
)

// A fleetSim is what sim fleet takes.
type fleetSim struct {
	cfg      sim.FleetConfig
	file     string
	tenants  int
	skew     float64
	resource string
	html     string

	detect, repair, bake, soak, outage, backoff, played time.Duration
}

func (a *app) simFleet() *cobra.Command {
	var s fleetSim
	c := &cobra.Command{
		Use: "fleet [VERSION]", Short: "who is down, and for how long, when something goes wrong", Args: atMost("VERSION"), ValidArgsFunction: a.completeVersions(),
		Long: `Play what may go wrong with a fleet on its real map: the loss of a cell, a poison tenant,
a bad release, a shared dependency, a bad map, a retry storm. For each: the share of the
tenants and of the load that is down, on average and at worst, for how long, and what
that is in tenant-minutes; beside it what the same does where everything is shared.

The map is the control plane's newest one, that of a VERSION, or a file written by
cellway map get or cellway map export (--map). The tenants are those registered with the
control plane, with their weights of --resource, and the capacities those of its cells.
With --tenants, and for a file, tenants are drawn: as many as asked for, weighing
differently by --skew, in cells that are alike.`,
		Example: `  cellway sim fleet --resource rps
  cellway sim fleet --map fleet.map --tenants 1000000 --skew 1.5 --html report.html
  cellway sim fleet --detect 15m --repair 10m --waves 1,10,50,100 --bake 1h -o json`,
		RunE: func(c *cobra.Command, args []string) error { return a.playFleet(c, args, s) },
	}
	f := c.Flags()
	f.StringVar(&s.file, "map", "", "file of the map; - is standard input")
	f.IntVar(&s.tenants, "tenants", 0, "draw so many tenants instead of asking for those registered; for a file 0 means 10000")
	f.Float64Var(&s.skew, "skew", 1, "how differently drawn tenants weigh: deviation of the logarithm, 0 to 4")
	f.StringVar(&s.resource, "resource", "tenants", "resource whose weights are the tenants' load")
	f.IntVar(&s.cfg.Workers, "workers", 20, "workers of each cell")
	f.IntVar(&s.cfg.Hand, "hand", 3, "workers in a hand")
	f.DurationVar(&s.detect, "detect", 5*time.Minute, "how long until what is wrong is noticed")
	f.DurationVar(&s.repair, "repair", 10*time.Minute, "how long from then until it is mended")
	f.IntSliceVar(&s.cfg.Waves, "waves", []int{1, 10, 50, 100}, "percent of the cells that have a release after each wave; a wave has at least one cell")
	f.DurationVar(&s.bake, "bake", 30*time.Minute, "time between waves")
	f.IntVar(&s.cfg.Routers, "routers", 4, "routers, one of which is ring 0")
	f.DurationVar(&s.soak, "soak", 30*time.Second, "how long a map stays in ring 0")
	f.Float64Var(&s.cfg.Gate, "gate", 0.1, "share of the owners that a change of the map may move unconfirmed; one cell's share, and ten tenants, may move anyhow")
	f.Float64Var(&s.cfg.Utilization, "utilization", 0.7, "of the heaviest cell at the peak, as a share of what it can carry")
	f.DurationVar(&s.outage, "outage", 30*time.Second, "outage before a retry storm")
	f.IntVar(&s.cfg.Storm.Attempts, "attempts", 4, "tries of a request in a retry storm, the first one included")
	f.DurationVar(&s.backoff, "backoff", time.Second, "time before the first retry; doubled before each further one")
	f.Float64Var(&s.cfg.Storm.Budget, "budget", 0.1, "retries to first tries at most, where callers have a budget")
	f.Float64Var(&s.cfg.Storm.Waste, "waste", 1, "part of an overload that costs capacity: 0 if it is turned away for nothing, 1 if it is answered too late")
	f.DurationVar(&s.played, "play", 15*time.Minute, "how much of a retry storm is played")
	f.IntVar(&s.cfg.Trials, "trials", 60, "draws of what is at fault")
	simFlags(c, &s.cfg.Seed, &s.html)
	return c
}

func (a *app) playFleet(c *cobra.Command, args []string, s fleetSim) error {
	s.cfg.Detect, s.cfg.Repair, s.cfg.Bake, s.cfg.Soak = s.detect.Minutes(), s.repair.Minutes(), s.bake.Minutes(), s.soak.Minutes()
	for _, d := range []struct {
		flag string
		is   time.Duration
		to   *int
	}{{"outage", s.outage, &s.cfg.Storm.Outage}, {"backoff", s.backoff, &s.cfg.Storm.Backoff}, {"play", s.played, &s.cfg.Storm.Seconds}} {
		if d.is%time.Second != 0 {
			return usage("--%s is %v; a retry storm is played by the second, so give whole ones", d.flag, d.is)
		}
		*d.to = int(d.is / time.Second)
	}
	drawn := s.tenants > 0 || s.file != ""
	switch f := c.Flags(); {
	case drawn && f.Changed("resource"):
		return usage("--resource is of tenants that are registered; those of --tenants and --map are drawn, and weigh by --skew")
	case !drawn && f.Changed("skew"):
		return usage("--skew is for tenants that are drawn; say how many with --tenants")
	}
	if err := a.simTarget(c, s.html); err != nil {
		return err
	}
	if s.file != "" && len(args) > 0 {
		return usage("a version and --map are two maps; give one of them")
	}
	if s.tenants < 0 {
		return usage("--tenants is %d; give a number from 0 on", s.tenants)
	}
	m, err := a.simMap(c, args, s.file)
	if err != nil {
		return err
	}
	run, done := a.simRun()
	defer done()
	model, err := a.model(c.Context(), m, s, partOf(run, 0, 0.3))
	if err != nil {
		return simError(err)
	}
	r, err := sim.Fleet(c.Context(), model, s.cfg, partOf(run, 0.3, 1))
	done()
	if err != nil {
		return simError(err)
	}
	return a.simShow(r, r.Page(), s.html)
}

// simMap reads a map: the content of a control plane's, an archive or a file
// of plain content. What it is used for needs no signature.
func (a *app) simMap(c *cobra.Command, args []string, file string) (*routemap.Map, error) {
	if file == "" {
		v, err := versionArg(args, 0)
		if err != nil {
			return nil, err
		}
		cl, err := a.client()
		if err != nil {
			return nil, err
		}
		content, err := cl.MapContent(c.Context(), v)
		if err != nil {
			return nil, err
		}
		return routemap.Build(content, 1)
	}
	text, err := a.simFile(c.Context(), file)
	if err != nil {
		return nil, err
	}
	m, err := readMap(text)
	if err != nil {
		return nil, fmt.Errorf("map in %s: %w", file, err)
	}
	return m, nil
}

// model finds or draws the tenants.
func (a *app) model(ctx context.Context, m *routemap.Map, s fleetSim, run sim.Run) (*sim.Model, error) {
	if s.tenants > 0 || s.file != "" {
		if s.tenants == 0 {
			s.tenants = 10_000
		}
		return sim.DrawModel(ctx, m, s.tenants, s.skew, s.cfg.Seed, run)
	}
	cl, err := a.client()
	if err != nil {
		return nil, err
	}
	var tenants []sim.Tenant
	for t, err := range cl.Tenants(ctx, client.TenantFilter{}) {
		if err != nil {
			return nil, err
		}
		if t.Deleted {
			continue
		}
		weight, ok := t.Weights[s.resource]
		if !ok && s.resource == "tenants" {
			weight = 1
		}
		tenants = append(tenants, sim.Tenant{ID: t.ID, Weight: weight})
	}
	if s.resource != "tenants" && len(tenants) > 0 && !slices.ContainsFunc(tenants, func(t sim.Tenant) bool { return t.Weight > 0 }) {
		return nil, mend(fmt.Errorf("no tenant has a weight of %s: %w", s.resource, cellway.ErrInvalid),
			"cellway tenant set TENANT --weight %s=50 gives one; --tenants 10000 draws tenants that weigh differently", s.resource)
	}
	if len(tenants) == 0 {
		return nil, fmt.Errorf("no tenant is registered; draw some with --tenants 10000: %w", cellway.ErrInvalid)
	}
	model, err := sim.NewModel(m, tenants)
	if err != nil {
		return nil, err
	}
	capacities := make(map[cellway.CellID]float64)
	for c, err := range cl.Cells(ctx) {
		if err != nil {
			return nil, err
		}
		if most := c.Capacity[s.resource]; most > 0 {
			capacities[c.ID] = most
		}
	}
	return model, model.SetCapacities(capacities)
}

// simFile reads a file, or standard input.
func (a *app) simFile(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return a.readIn(ctx)
	}
	text, err := readFile(ctx, file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s: %w", file, cellway.ErrNotFound)
	}
	return text, err
}
