package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/demo/role"
)

// demoCommand runs the demo fleet.
func (a *app) demoCommand() *cobra.Command {
	var cfg demo.Config
	c := &cobra.Command{
		Use:   "demo",
		Short: "a whole fleet on this machine, with things going wrong in it",
		Long: `Starts a fleet on this machine: a control plane, two routers, and cells, each of them
a gateway and eight workers: processes of a real service with a database in each cell.
A few thousand tenants send requests. Then acts are played, one after the other:

  kill-cell             a cell's processes are killed
  hang-cell             a cell stops answering but keeps its connections
  poison-tenant         a tenant's requests crash workers, until it is quarantined: once
                        while all workers of the cell serve all of its tenants, and once
                        with hands of two of them (poison-tenant-hands)
  noisy-tenant          a tenant's requests keep workers busy: once without hands, and
                        once with them (noisy-tenant-hands)
  bad-deploy            a bad release is deployed to a cell
  drain-undrain         a cell is drained, then let in again in steps
  control-plane-killed  the control plane's process is killed
  routers-restarted     the routers restart one after the other, without a control plane
  corrupt-map           a corrupt map is served to the routers
  shared-fate           the control: the same tenants on one shared stack, which is killed

On a terminal you see the fleet live, and keys play more acts. At the end stands the
share of tenants that each act touched, beside the share that was predicted: the
target's tenants, by the map. For poison-tenant and noisy-tenant there is also the share
of the cell's tenants who lost their whole hand, or a worker of it, beside what the
arithmetic of hands predicts. It exits with 1 if an act was not contained. If answers
were late and none failed, the act is played again, up to twice and more slowly, and
the report says so: once if the machine was busy meanwhile, and else it must come out
well twice. If it is late each time, the act is inconclusive: the machine is too busy
to tell.

The demo ends with its script. With --script none nothing is played by itself, and with
--keep the fleet stays after the script: both until you quit.

Nothing is left behind: all files are in a temporary folder, and all processes end
with this one, even if it is killed; then the next demo removes the folder.`,
		Example: `  cellway demo
  cellway demo --script kill-cell,shared-fate --for 20s
  cellway demo --script all --for 60s -o json
  cellway demo --script none --keep`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return a.demo(c.Context(), cfg) },
	}
	f := c.Flags()
	f.StringVar(&cfg.Script, "script", "all", "acts to play: all, names with commas between, or none")
	f.DurationVar(&cfg.For, "for", 90*time.Second, "how long the script takes in all, with the start of the fleet; a slow machine takes longer")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the fleet running after the script, and print its addresses")
	f.IntVar(&cfg.Cells, "cells", 4, "how many cells, 2 to 64")
	f.IntVar(&cfg.Workers, "workers", 8, "how many workers in each cell, 2 to 32")
	f.IntVar(&cfg.Routers, "routers", 2, "how many routers, 1 to 8")
	f.IntVar(&cfg.Tenants, "tenants", 2000, "how many tenants")
	f.Uint64Var(&cfg.Seed, "seed", 0, "draws the tenants' weights and requests")
	scripts := []string{"all", "none"}
	for _, x := range act.All() {
		scripts = append(scripts, x.Name)
	}
	complete(c, "script", scripts...)
	return c
}

// errSpread ends a demo in which somebody was touched who should not have been.
var errSpread = errors.New("an act came out otherwise than it must; see the verdicts")

// errBusy ends a demo whose machine was too busy to tell.
var errBusy = errors.New("inconclusive: this machine is too busy; try again with more time (--for) or fewer tenants (--tenants)")

func (a *app) demo(ctx context.Context, cfg demo.Config) error {
	// A terminal that is closed must not leave a fleet behind.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	cfg.View = a.forPeople() && terminal(a.in) && terminal(a.out)
	cfg.In, cfg.Out, cfg.Progress = a.in, unfilled(a.out), a.err // the view needs the terminal itself
	printed := false
	cfg.Kept = func(r report.Report) error {
		printed = true
		return a.printDemo(r)
	}
	r, err := demo.Run(ctx, cfg)
	if !printed && (len(r.Acts) > 0 || r.CutOff != nil) {
		err = errors.Join(err, a.printDemo(r))
	}
	switch {
	case errors.Is(err, cellway.ErrInvalid):
		return boot.UsageError{Err: err}
	case err == nil && r.Inconclusive():
		return errBusy
	case err == nil && !r.AsExpected():
		return errSpread
	}
	return err
}

// printDemo prints the outcome of acts.
func (a *app) printDemo(r report.Report) (err error) {
	return errors.Join(a.show(r, func() {
		if len(r.Acts) > 0 || r.CutOff != nil {
			err = r.Table(a.out, a.look().width)
		}
	}), err)
}

// partCommands are what the demo's processes run: this program again, with
// other arguments.
func (a *app) partCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, name := range role.Names() {
		all = append(all, &cobra.Command{
			Use:                name,
			Short:              "a process of the demo's fleet",
			Hidden:             true,
			DisableFlagParsing: true,
			RunE: func(c *cobra.Command, args []string) error {
				return role.Run(c.Context(), name, args, a.in, a.err)
			},
		})
	}
	return all
}
