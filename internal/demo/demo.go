// Package demo shows on one machine what cells are for.
//
// It starts a fleet, lets thousands of tenants use it, and breaks one thing
// after the other.
//
// [Run] is the whole of it. The fleet is real: a control plane, routers and
// cells, each a process of its own, or of several (package fleet). Acts say what goes wrong
// (package act); the load checks every answer (package load); the report says
// who was touched beside who should have been (package report).
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/fleet"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/demo/view"
)

// NoScript is the script without acts: they are played by hand.
const NoScript = "none"

// A Config says what is shown, and how.
type Config struct {
	Script  string        // "all", names of acts with commas between, or "none"; if empty, "all"
	For     time.Duration // all the script's acts take, with the start; if zero, 90 s
	Keep    bool          // leave the fleet running after the script, until ctx ends
	Cells   int           // if zero, 4
	Workers int           // of each cell; if zero, 8
	Routers int           // if zero, 2
	Tenants int           // if zero, 2000
	Seed    uint64        // of the load
	Path    string        // the executable that plays every part; if empty, the running one

	View     bool      // show the fleet live, in the terminal that In and Out are
	In       io.Reader // if nil, standard input
	Out      io.Writer // if nil, standard output
	Progress io.Writer // gets a line for each thing that happens, without a view; if nil, discarded

	// Kept is called once, if not nil, when the script has ended and the fleet
	// is left running without a view.
	Kept func(report.Report) error

	Log *slog.Logger // if nil, discarded
}

func (c Config) orDefault() Config {
	if c.Script == "" {
		c.Script = "all"
	}
	if c.For == 0 {
		c.For = 90 * time.Second
	}
	if c.Tenants == 0 {
		c.Tenants = 2000
	}
	if c.Cells == 0 {
		c.Cells = 4
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// maxTenants bounds the load that one machine is asked for.
const maxTenants = 20_000

// Run starts a fleet, plays the script and returns what came of it, as far as
// it came. With a view it goes on until somebody quits, if there is no script or
// the fleet is to be kept. Nothing of the fleet is left when it returns. If ctx
// ends before the script does, the error is that of ctx.
func Run(ctx context.Context, cfg Config) (report.Report, error) {
	cfg = cfg.orDefault()
	var acts []act.Act
	if cfg.Script != NoScript {
		var err error
		if acts, err = act.Named(cfg.Script); err != nil {
			return report.Report{}, err
		}
		if err := enough(cfg.For, len(acts), cfg.Tenants); err != nil {
			return report.Report{}, err
		}
	} else if !cfg.View && !cfg.Keep {
		return report.Report{}, fmt.Errorf("without a script, a terminal and --keep there is nothing to do: %w", cellway.ErrInvalid)
	}
	if cfg.Tenants < 10*cfg.Cells || cfg.Tenants > maxTenants {
		return report.Report{}, fmt.Errorf("%d tenants in %d cells: give from ten a cell to %d in all: %w", cfg.Tenants, cfg.Cells, maxTenants, cellway.ErrInvalid)
	}
	if cfg.Path == "" {
		path, err := os.Executable()
		if err != nil {
			return report.Report{}, fmt.Errorf("find this program: %w", err)
		}
		cfg.Path = path
	}
	dir, remove, err := boot.TempDir("cellway-demo-")
	if err != nil {
		return report.Report{}, err
	}
	rep, err := run(ctx, cfg, acts, dir)
	return rep, errors.Join(err, remove())
}

func run(ctx context.Context, cfg Config, acts []act.Act, dir string) (report.Report, error) {
	d := newDirector(cfg, acts)
	tenants := load.Tenants(cfg.Tenants)
	f, err := fleet.New(fleet.Config{
		Dir: dir, Path: cfg.Path, Cells: cfg.Cells, Workers: cfg.Workers, Routers: cfg.Routers, Tenants: tenants, Log: cfg.Log, Changed: d.changed,
	})
	if err != nil {
		return report.Report{}, err
	}
	g, err := load.New(load.Config{Tenants: tenants, Seed: cfg.Seed, Log: cfg.Log})
	if err != nil {
		return report.Report{}, err
	}
	d.fleet, d.load = f, g
	d.runner = &act.Runner{Fleet: f, Load: g, Home: f.Home(), Tenants: tenants, Tell: d.tell, Began: d.measuring}

	// The fleet outlives all that uses it, so that nothing fails at the end.
	fleetCtx, endFleet := context.WithCancel(context.WithoutCancel(ctx))
	defer endFleet()
	fleetDone := make(chan error, 1)
	go func() { fleetDone <- f.Run(fleetCtx) }()

	caller := ctx
	users, ctx := errgroup.WithContext(ctx)
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	users.Go(func() error { return g.Run(ctx) })
	users.Go(func() error { return d.watchMap(ctx) })
	users.Go(func() error {
		defer quit()
		return d.direct(ctx)
	})
	if cfg.View {
		users.Go(func() error {
			defer quit()
			return view.Run(ctx, view.Config{State: d.state, Press: d.press, In: cfg.In, Out: cfg.Out})
		})
	}
	err = users.Wait()
	if err != nil {
		fmt.Fprint(cfg.Progress, f.Logs(20))
	}
	endFleet()
	err = errors.Join(err, <-fleetDone)
	rep := d.report()
	if err == nil && caller.Err() != nil && len(rep.Acts) < len(acts) {
		err = fmt.Errorf("after %d of %d acts: %w", len(rep.Acts), len(acts), caller.Err())
	}
	return rep, err
}
