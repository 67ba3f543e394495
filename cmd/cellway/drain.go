package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) drainCommand() *cobra.Command {
	var to uint8
	c := a.writing(&cobra.Command{
		Use: "drain CELL", Short: "lower the percent of a cell's keys that routers let through", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Long: `Lower a cell's admit: the percent of its keys that routers let through. Nothing in the
cell is asked, so it works with the cell dead.

Nobody else may serve the tenants of a cell, as their data is there: those that are not
let through get a prompt 503 cell_drained. The cell takes no placements until it admits
100 percent again. If less than half of the fleet is left admitted, it asks once.`,
		Example: "  cellway drain cell-002 --reason 'disk is dying' --wait routers\n  cellway drain cell-002 --to 25",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.admit(cmd, args[0], to, (*client.Client).Drain)
		},
	})
	c.Flags().Var(percent{&to, 0, 99}, "to", "percent to admit, 0 to 99")
	return c
}

func (a *app) undrainCommand() *cobra.Command {
	var to uint8
	c := a.writing(&cobra.Command{
		Use: "undrain CELL --to PERCENT", Short: "raise the percent of a cell's keys that routers let through", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Long: `Raise a cell's admit. Climb in steps, such as 1, 5, 25, 50 and 100, and look at the cell
after each: whoever is let through at 5 percent also is at 25.`,
		Example: "  cellway undrain cell-002 --to 1 --wait routers\n  cellway undrain cell-002 --to 100",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("to") {
				return usage("say how far to undrain %s: --to 1 to 100; the usual steps are 1, 5, 25, 50 and 100", args[0])
			}
			return a.admit(cmd, args[0], to, (*client.Client).Undrain)
		},
	})
	c.Flags().Var(percent{&to, 1, 100}, "to", "percent to admit, 1 to 100")
	return c
}

type admitFunc func(*client.Client, context.Context, cellway.CellID, uint8, string, client.Write) (api.CellChange, error)

func (a *app) admit(cmd *cobra.Command, id string, to uint8, set admitFunc) error {
	cl, w, err := a.writer()
	if err != nil {
		return err
	}
	out, err := set(cl, cmd.Context(), cellway.CellID(id), to, a.reason, w)
	if errors.Is(err, cellway.ErrInvalid) {
		err = a.otherWay(cmd, cl, id, to, err)
	}
	return a.cellChanged(cmd.Context(), cl, out, err, outcome{drain: cmd.Name() == "drain"})
}

// otherWay says of a drain that would raise what a cell admits, and of an
// undrain that would lower it, how it is done.
func (a *app) otherWay(cmd *cobra.Command, cl *client.Client, id string, to uint8, err error) error {
	err = fmt.Errorf("%w: %w", err, errState)
	cell, cellErr := cl.Cell(cmd.Context(), cellway.CellID(id))
	if cellErr != nil || cell.State == cellway.CellNew || cell.State == cellway.CellRetired {
		return err
	}
	verb := "drain"
	if to > cell.Admit {
		verb = "undrain"
	}
	words := []string{verb, id, "--to", strconv.Itoa(int(to))}
	if a.reason != "" {
		words = append(words, "--reason", a.reason)
	}
	return mend(err, "to do that: %s", a.command(words...))
}
