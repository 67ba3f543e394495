package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/shell"
)

// roomFor says how a tenant that no cell takes finds one: what keeps the cells from
// it is looked for in the order in which placement does.
func roomFor(in api.TenantSettings, cells []api.Cell) string {
	open := slices.DeleteFunc(slices.Clone(cells), func(c api.Cell) bool { return c.State != cellway.CellActive || c.Admit < 100 })
	if len(open) == 0 {
		return "first " + untilMap("the fleet", cells)
	}
	flags := ""
	if in.Residency != "" {
		flags = " --region " + shell.Quote(in.Residency)
		if open = slices.DeleteFunc(open, func(c api.Cell) bool { return c.Region != in.Residency }); len(open) == 0 {
			return fmt.Sprintf("if a cell is in region %s, say so: cellway cell set CELL%s; else add one: cellway cell add CELL --endpoint URL%s --state active", in.Residency, flags, flags)
		}
	}
	add := "cellway cell add CELL --endpoint URL" + flags + " --state active"
	if open = slices.DeleteFunc(open, func(c api.Cell) bool { return len(c.Tiers) > 0 && !slices.Contains(c.Tiers, in.Tier) }); len(open) == 0 {
		if in.Tier == "" {
			return "every cell is for tiers: give the tenant one with --tier, or add a cell for all: " + add
		}
		return fmt.Sprintf("let a cell take the tier: cellway cell set CELL --add-tier %s; or add a cell: %s", shell.Quote(in.Tier), add)
	}
	if in.Dedicated {
		return "a dedicated tenant needs a cell without tenants; to add one: " + add
	}
	if slices.ContainsFunc(open, func(c api.Cell) bool { return len(c.Capacity) > 0 }) {
		return "if a cell can take more, raise its limits, and name them all: cellway cell set CELL --capacity RESOURCE=AMOUNT; or add a cell: " + add
	}
	return "to add a cell: " + add
}

// noRoom adds to a refusal of placement what mends it.
func noRoom(ctx context.Context, cl *client.Client, in api.TenantSettings, err error) error {
	cells, cellsErr := client.All(cl.Cells(ctx))
	if cellsErr != nil {
		return err // the refusal says why all the same
	}
	return mend(err, "%s", roomFor(in, cells))
}
