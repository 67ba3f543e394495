package main

import (
	"github.com/cellway/cellway/internal/sim"
	"github.com/spf13/cobra"
)

func (a *app) simHand() *cobra.Command {
	cfg := sim.HandsConfig{}
	var html string
	c := &cobra.Command{
		Use: "hand", Short: "what a change of workers, or of the size of hands, does to tenants", Args: exactly(),
		Long: `Deal hands before and after a worker comes or goes, or hands get larger or smaller, and
count the members that others replace: by hrw-1, which Cellway uses, and for comparison by
naive modulo, a ring, jump, multi-probe, and what some Python snippets do. With --hand 1
it is about which cell a bucket goes to.`,
		Example: `  cellway sim hand --workers 100 --hand 5 --tenants 10000
  cellway sim hand --workers 127 --hand 5 --to-workers 160 --html report.html
  cellway sim hand --workers 12 --hand 1 --to-workers 13 -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.simTarget(c, html); err != nil {
				return err
			}
			run, done := a.simRun()
			r, err := sim.Hands(c.Context(), cfg, run)
			done()
			if err != nil {
				return simError(err)
			}
			return a.simShow(r, r.Page(), html)
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Workers, "workers", 100, "workers of the cell")
	f.IntVar(&cfg.Hand, "hand", 5, "workers in a hand")
	f.IntVar(&cfg.Tenants, "tenants", 10_000, "tenants of the cell")
	f.IntVar(&cfg.ToWorkers, "to-workers", 0, "play also a change to so many workers")
	f.IntVar(&cfg.ToHand, "to-hand", 0, "play also a change to hands of so many workers")
	simFlags(c, &cfg.Seed, &html)
	return c
}
