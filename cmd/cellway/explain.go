package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	return a.aboutKey(&cobra.Command{
		Use: "explain KEY", Short: "how the newest map answers a key, step by step",
		Long: `How the newest map answers a key, step by step: the rule that finds its cell, and whether
that lets it through.

Each tenant has a place from 1 to 100 in the order in which a cell lets its tenants in
again, drawn from the tenant's name and the same for all cells. A cell that admits 30
percent lets those through whose place is 30 or less.`,
		Example: "  cellway explain acme\n  cellway explain acme/eu -o json",
	}, func(ctx context.Context, cl *client.Client, key cellway.Key) error {
		e, err := cl.Explain(ctx, key)
		if err != nil {
			return err
		}
		return a.show(e, func() { tellExplanation(e).write(a.out) })
	})
}

// aboutKey makes c a command that asks about one key.
func (a *app) aboutKey(c *cobra.Command, ask func(context.Context, *client.Client, cellway.Key) error) *cobra.Command {
	c.Args, c.ValidArgsFunction = exactly("KEY"), first(a.completeTenants())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		key, err := cellway.ParseKey(args[0])
		if err != nil {
			return boot.UsageError{Err: err}
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		return ask(cmd.Context(), cl, key)
	}
	return c
}

func tellExplanation(e api.Explanation) *facts {
	t := &facts{}
	t.add("map", "%s", e.Version)
	t.add("asked", "%s", e.Asked)
	if e.Alias != "" {
		t.add("alias", "%s is another name for %s", e.Alias, e.Key)
	}
	switch e.Rule {
	case "key":
		t.add("found by", "an entry for the key")
	case "tenant":
		t.add("found by", "an entry for its tenant, %s", e.Key.Tenant())
	case "bucket":
		t.add("found by", "bucket %d of its tenant", *e.Bucket)
	case "catch_all":
		t.add("found by", "nothing; the fleet's catch-all cell takes it")
	default:
		t.add("found by", "nothing")
	}
	if x := e.Entry; x != nil {
		t.add("entry", "%s", x.Kind)
		if x.Kind.IsOverride() {
			t.add("because", "%s (by %s, to be looked at by %s)", x.Reason, x.By, x.ReviewBy.Format(time.DateOnly))
		}
	}
	if e.Cell != "" {
		title := ""
		if e.Title != "" {
			title = " (" + e.Title + ")"
		}
		state := e.State
		if state == cellway.CellCordoned.String() && e.Admission.Admit < 100 {
			state += " while it is drained"
		}
		t.add("cell", "%s%s, %s", e.Cell, title, state)
		t.add("epoch", "%s", e.Epoch)
	}
	switch d := e.Admission; {
	case d.Admitted && d.Exempt:
		t.add("admitted", "yes: a test override ignores that the cell admits %d %%", d.Admit)
	case d.Admitted:
		t.add("admitted", "yes: the cell admits %d %%, and this tenant is let through from %d %% on", d.Admit, d.Position)
	case d.Code == cellway.CellDrained:
		t.add("admitted", "no, %d %s: the cell admits %d %%, and this tenant is let through from %d %% on", d.Code.Status(), d.Code, d.Admit, d.Position)
	default:
		t.add("admitted", "no, %d %s", d.Code.Status(), d.Code)
	}
	if h := e.Admission.Hold; h != nil {
		t.add("held", "by move %s; requests that change something park until %s", h.Move, h.Until.Format(time.RFC3339))
	}
	return t
}

func (a *app) locateCommand() *cobra.Command {
	return a.aboutKey(&cobra.Command{
		Use: "locate KEY", Short: "the cell of a key",
		Example: "  cellway locate acme\n  curl $(cellway locate acme -o json | jq -r '.endpoints[0]')/health",
	}, func(ctx context.Context, cl *client.Client, key cellway.Key) error {
		l, err := cl.Locate(ctx, key)
		if err != nil {
			return err
		}
		return a.show(l, func() { fmt.Fprintln(a.out, l.Cell) })
	})
}
