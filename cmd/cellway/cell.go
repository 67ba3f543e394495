package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) cellCommand() *cobra.Command {
	c := &cobra.Command{Use: "cell", Aliases: []string{"cells"}, Short: "complete, independent copies of the service", Example: "  cellway cell list\n  cellway cell add cell-001 --endpoint http://10.0.0.1:8080 --state active"}
	c.AddCommand(a.cellList(), a.cellShow(), a.cellAdd(), a.cellSet(),
		a.cellState("activate", "let a cell serve and take placements", cellway.CellActive),
		a.cellState("cordon", "let a cell serve, but take no placements and no moves", cellway.CellCordoned),
		a.cellState("uncordon", "let a cell take placements again", cellway.CellActive),
		a.cellRetire(), a.workersCommand())
	return c
}

// tintState colours what a person should notice in a column of states.
func tintState(column, admit int) func(row []string, i int) string {
	return func(row []string, i int) string {
		switch {
		case i == column && (row[i] == "cordoned" || row[i] == "new"):
			return "33"
		case i == column && row[i] == "retired":
			return "2"
		case i == admit && row[i] == "0 %":
			return "31"
		case i == admit && row[i] != "100 %" && row[i] != "":
			return "33"
		}
		return ""
	}
}

func (a *app) cellList() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "cells by id, and what of the latest requests to them failed", Args: exactly(),
		Long: "List cells by id, with their state, what they hold and what of the latest requests failed.\n\n" + latestRequests, Example: "  cellway cell list\n  cellway cell list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			cells := func(yield func(api.Cell, error) bool) {
				for cell, err := range cl.Cells(cmd.Context()) {
					if err == nil && cell.State == cellway.CellRetired && !all {
						continue
					}
					if !yield(cell, err) {
						return
					}
				}
			}
			// For people only, and a list of cells all the same if it can't be had.
			reported := sync.OnceValue(func() map[cellway.CellID]overviewCell {
				routers, err := client.All(cl.Routers(cmd.Context()))
				if err != nil {
					return nil
				}
				return reportedCells(routers)
			})
			t := newTable("cell", "state", "admit", "tenants", "buckets", "failed requests", "5xx", "breaker", "mismatches", "guard", "region", "endpoints", "title")
			t.tint, t.below = tintState(1, 2), []string{"title", "endpoints", "region", "guard"}
			return showList(a, cells, "no cell yet; register one with cellway cell add CELL --endpoint URL --state active", t, func(c api.Cell) []string {
				r := reported()[c.ID]
				return []string{string(c.ID), c.State.String(), fmt.Sprintf("%d %%", c.Admit), strconv.Itoa(c.Tenants), strconv.Itoa(c.Buckets), r.health(), unlessZero(r.Status5xx), r.breaker(), unlessZero(r.Mismatches),
					c.Guard.String(), c.Region, strings.Join(c.Endpoints, " "), c.Title}
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "retired cells too")
	return c
}

func (a *app) cellShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CELL", SuggestFor: lookups(), Short: "one cell", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()), Example: "  cellway cell show cell-001",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			cell, err := cl.Cell(cmd.Context(), cellway.CellID(args[0]))
			if err != nil {
				return err
			}
			return a.show(cell, func() { tellCell(cell).write(a.out) })
		},
	}
}

func tellCell(c api.Cell) *facts {
	t := &facts{}
	t.add("cell", "%s", c.ID)
	t.add("title", "%s", c.Title)
	t.add("state", "%s", c.State)
	t.add("admit", "%d %%", c.Admit)
	t.add("guard", "%s", c.Guard)
	t.add("endpoints", "%s", strings.Join(c.Endpoints, "\n"))
	t.add("region", "%s", c.Region)
	t.add("zone", "%s", c.Zone)
	var tags []string
	for _, k := range sortedKeys(c.Tags) {
		tags = append(tags, k+"="+c.Tags[k])
	}
	t.add("tags", "%s", strings.Join(tags, " "))
	t.add("tiers", "%s", strings.Join(c.Tiers, " "))
	t.add("tenants", "%d", c.Tenants)
	t.add("buckets", "%d", c.Buckets)
	var load []string
	names := maps.Clone(map[string]float64(c.Reserved))
	if names == nil {
		names = map[string]float64{}
	}
	maps.Copy(names, c.Capacity)
	for _, k := range sortedKeys(names) {
		line := fmt.Sprintf("%s: %s reserved", k, amount(c.Reserved[k]))
		if limit, ok := c.Capacity[k]; ok {
			line += fmt.Sprintf(" of %s", amount(limit))
		}
		load = append(load, line)
	}
	t.add("load", "%s", strings.Join(load, "\n"))
	if c.Headroom > 0 {
		t.add("headroom", "%s %%", amount(c.Headroom))
	}
	t.add("revision", "%d", c.Revision)
	return t
}

func (a *app) cellAdd() *cobra.Command {
	var s cellFlags
	c := a.writing(&cobra.Command{
		Use: "add CELL", Short: "register a cell", Args: exactly("CELL"), SuggestFor: []string{"create", "register"},
		Long: `Register a cell. Its id is for ever: it is never renamed and never used again.

A new cell owns no keys. Once it is active it takes placements; in a fleet with
buckets it gets its share of them by cellway map assign.`,
		Example: "  cellway cell add cell-001 --endpoint http://10.0.0.1:8080 --state active\n" +
			"  cellway cell add cell-eu-1 --endpoint https://10.1.0.1:8443 --guard identity --region eu --capacity tenants=500,rps=2000 --headroom 20",
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := s.settings(a, cmd, args[0])
			if err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := cl.PutCell(cmd.Context(), cellway.CellID(args[0]), in, w)
			if errors.Is(err, cellway.ErrExists) {
				err = mend(err, "cellway cell set %s changes it; the name of a retired cell is not used again", args[0])
			}
			if err := a.cellChanged(cmd.Context(), cl, out, err, outcome{kept: true}); err != nil {
				return err
			}
			if a.forPeople() && out.State == cellway.CellActive && out.Buckets == 0 && out.ChangeID != "" {
				if f, err := cl.Fleet(cmd.Context()); err == nil && f.Mapping == "buckets" {
					fmt.Fprintln(a.out, a.own("it owns no bucket yet: cellway map assign"))
				}
			}
			return nil
		},
	})
	s.flags(c)
	c.Flags().StringVar(&s.state, "state", "new", "new, active or cordoned")
	complete(c, "state", "new", "active", "cordoned")
	return c
}

// cellChanged tells what a write of a cell did.
func (a *app) cellChanged(ctx context.Context, cl *client.Client, out api.CellChange, err error, o outcome) error {
	if err != nil {
		return err
	}
	o.done = func() { fmt.Fprintf(a.out, "cell %s is %s and admits %d %%\n", out.ID, out.State, out.Admit) }
	o.would = fmt.Sprintf("cell %s would be %s and admit %d %%", out.ID, out.State, out.Admit)
	if out.State == cellway.CellActive && out.Admit < 100 {
		// The map calls it cordoned, since that is what it is for placement.
		o.would = fmt.Sprintf("cell %s would admit %d %%, and be cordoned until it admits 100 %% again", out.ID, out.Admit)
	}
	o.as = tellCell(out.Cell)
	return a.wrote(ctx, cl, out, out.Change, o)
}

func (a *app) cellSet() *cobra.Command {
	var s cellFlags
	c := a.writing(&cobra.Command{
		Use: "set CELL", SuggestFor: changes(), Short: "change the settings that are named", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Example: "  cellway cell set cell-001 --add-endpoint http://10.0.0.2:8080\n" +
			"  cellway cell set cell-001 --endpoint http://10.0.0.1:8080 --endpoint http://10.0.0.2:8080\n" +
			"  cellway cell set cell-001 --title 'Europe 1' --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysWhat(cmd); err != nil {
				return err
			}
			if _, err := s.settings(a, cmd, args[0]); err != nil {
				return err
			}
			return a.updateCell(cmd, args[0], func(in *api.CellSettings) error { return s.apply(a, cmd, in) })
		},
	})
	s.flags(c)
	return c
}

func (a *app) updateCell(cmd *cobra.Command, id string, edit func(*api.CellSettings) error) error {
	cl, w, err := a.writer()
	if err != nil {
		return err
	}
	deaf := false // it is to serve, and nobody knows where
	out, err := cl.UpdateCell(cmd.Context(), cellway.CellID(id), func(in *api.CellSettings) error {
		err := edit(in)
		deaf = len(in.Endpoints) == 0 && in.State != cellway.CellNew
		return err
	}, w)
	if deaf && errors.Is(err, cellway.ErrInvalid) {
		err = mend(fmt.Errorf("%w: %w", err, errState), "first say where it listens: cellway cell set %s --endpoint http://10.0.0.1:8080", id)
	}
	return a.cellChanged(cmd.Context(), cl, out, err, outcome{kept: true})
}

func (a *app) cellState(verb, short string, state cellway.CellState) *cobra.Command {
	return a.writing(&cobra.Command{
		Use: verb + " CELL", Short: short, Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Example: "  cellway cell " + verb + " cell-001\n  cellway cell " + verb + " cell-001 --reason 'change 4711'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.updateCell(cmd, args[0], func(in *api.CellSettings) error { in.State = state; return nil })
		},
	})
}

func (a *app) cellRetire() *cobra.Command {
	return a.asking(a.writing(&cobra.Command{
		Use: "retire CELL", Short: "end a cell that owns nothing; its name is never used again", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		SuggestFor: []string{"remove", "delete", "rm"},
		Long: `End a cell that owns nothing: no registered tenant, no bucket, no key that a person sends
there. Its buckets go to the other cells by cellway cell cordon and cellway map assign; those
with registered tenants stay as long as these are there.`,
		Example: "  cellway cell retire cell-001 --reason 'hardware returned'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			cell, err := cl.Cell(cmd.Context(), cellway.CellID(args[0]))
			if err != nil {
				return err
			}
			// Nobody is asked about what can't be.
			if _, err := cl.Retire(cmd.Context(), cell.ID, a.reason, client.Write{Revision: cell.Revision, DryRun: true}); errors.Is(err, cellway.ErrInUse) {
				return emptied(err, cell)
			} else if err != nil {
				return err
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this retires cell %s for ever:\n", cell.ID)
				tellCell(cell).write(a.err)
			}, args[0]); err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = cell.Revision
			out, err := cl.Retire(cmd.Context(), cell.ID, a.reason, w)
			return a.cellChanged(cmd.Context(), cl, out, err, outcome{kept: true})
		},
	}))
}

// emptied says how a cell comes to own nothing.
func emptied(err error, cell api.Cell) error {
	switch {
	case cell.Tenants > 0:
		return mend(err, "cellway tenant list --cell %s shows its tenants; it can go when they have", cell.ID)
	case cell.Buckets > 0:
		return mend(err, "to give its buckets to the other cells: cellway cell cordon %s, then cellway map assign", cell.ID)
	}
	return mend(err, "cellway override list shows the keys that somebody sends to it")
}
