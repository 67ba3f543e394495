package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
)

func (a *app) overrideCommand() *cobra.Command {
	c := &cobra.Command{Use: "override", Aliases: []string{"overrides"}, Short: "keys that a person sends to a cell: pin, heavy, quarantine, test", Example: "  cellway override list\n  cellway override set acme --kind quarantine --by alice --reason 'crashes its cell' --review-by 7d"}
	c.AddCommand(a.overrideList(), a.overrideSet(), a.overrideRemove())
	return c
}

func (a *app) overrideList() *cobra.Command {
	var kind string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "overrides by key", Args: exactly(), Example: "  cellway override list --kind quarantine",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind != "" {
				if err := oneOf("kind", kind, "pin", "heavy", "quarantine", "test"); err != nil {
					return err
				}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			t := newTable("key", "kind", "cell", "by", "review by", "reason")
			t.below = []string{"reason", "by"}
			t.tint = func(row []string, i int) string {
				if i == 4 && strings.HasSuffix(row[i], overdue) {
					return "31"
				}
				return ""
			}
			return showList(a, cl.Overrides(cmd.Context(), kind), "no override", t, func(o api.Override) []string {
				review := o.ReviewBy.Format(time.DateOnly)
				if o.Overdue {
					review += overdue
				}
				return []string{string(o.Key), o.Kind.String(), orDash(string(o.Cell)), o.By, review, o.Reason}
			})
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only this kind: pin, heavy, quarantine or test")
	complete(c, "kind", "pin", "heavy", "quarantine", "test")
	return c
}

const overdue = " (overdue)"

// parseReview reads a date, a time, or a number of days from now, as in "30d".
func parseReview(s string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 36500 {
			return now.AddDate(0, 0, n).UTC().Truncate(time.Second), nil
		}
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		t, err := time.Parse(layout, s)
		switch {
		case err == nil && !t.After(now):
			return time.Time{}, usage("--review-by is %q, and that is past; give a date to come, or days from now like 30d", s)
		case err == nil:
			return t.UTC(), nil
		}
	}
	return time.Time{}, usage("--review-by is %q; give a date like 2026-12-31, or days from now like 30d", s)
}

func (a *app) overrideSet() *cobra.Command {
	var kind, by, review string
	var cell cellway.CellID
	c := a.writing(&cobra.Command{
		Use: "set KEY", SuggestFor: []string{"add", "create", "put"}, Short: "set the override of a tenant, or of a tenant/part", Args: exactly("KEY"), ValidArgsFunction: first(a.completeTenants()),
		Long: `Set the override of a key. A pin, heavy or test override names the cell. A quarantine
without a cell refuses the key in the routers: it is always possible. An override that
would send a tenant away from its data is refused, as that is a move.

Every override has somebody answerable, a reason and a date at which somebody looks at it
again. When the date has passed an alarm is raised, and nothing else changes.`,
		Example: "  cellway override set acme --kind quarantine --by alice --reason 'crashes its cell' --review-by 7d\n" +
			"  cellway override set acme/eu --kind pin --cell cell-003 --by team-eu --reason 'see ticket 4711' --review-by 2026-12-31",
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := cellway.ParseEntryKind(kind)
			if err != nil {
				return boot.UsageError{Err: err}
			}
			if !k.IsOverride() {
				return usage("--kind is %q; give pin, heavy, quarantine or test", kind)
			}
			if cell == "" && k != cellway.Quarantine {
				return usage("a %s names the cell to send the key to: --cell", kind)
			}
			at, err := parseReview(review, time.Now())
			if err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			key := cellway.Key(args[0])
			switch old, err := cl.Override(cmd.Context(), key); {
			case err == nil:
				w.Revision = old.Revision
			case !errors.Is(err, cellway.ErrNotFound):
				return err
			}
			out, err := cl.PutOverride(cmd.Context(), key, api.OverrideSettings{Kind: k, Cell: cell, By: by, Reason: a.reason, ReviewBy: at}, w)
			if err != nil {
				return err
			}
			to := "refused in the routers"
			if out.Cell != "" {
				to = "in cell " + string(out.Cell)
			}
			said := fmt.Sprintf("%s of %s: %s, to be looked at by %s", out.Kind, out.Key, to, out.ReviewBy.Format(time.DateOnly))
			return a.wrote(cmd.Context(), cl, out, out.Change, outcome{done: func() { fmt.Fprintln(a.out, said) }, would: said})
		},
	})
	f := c.Flags()
	f.StringVar(&kind, "kind", "", "pin, heavy, quarantine or test")
	f.Var(cellFlag{&cell}, "cell", "cell to send the key to; none only for a quarantine")
	f.StringVar(&by, "by", "", "the person or team answerable")
	f.StringVar(&review, "review-by", "", "when somebody looks at it again: a date, or days from now like 30d")
	require(c, "kind", "by", "reason", "review-by")
	complete(c, "kind", "pin", "heavy", "quarantine", "test")
	if err := c.RegisterFlagCompletionFunc("cell", a.completeCells()); err != nil {
		panic(err)
	}
	return c
}

func (a *app) overrideRemove() *cobra.Command {
	return a.asking(a.writing(&cobra.Command{
		Use: "remove KEY", SuggestFor: []string{"delete", "rm"}, Short: "remove an override; the key goes where it would without", Args: exactly("KEY"), ValidArgsFunction: first(a.completeOverrides()),
		Example: "  cellway override remove acme --reason 'fixed in 4.2'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			o, err := cl.Override(cmd.Context(), cellway.Key(args[0]))
			if err != nil {
				return err
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this removes the %s of %s: %s, by %s\n", o.Kind, o.Key, o.Reason, o.By)
			}, args[0]); err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = o.Revision
			out, err := cl.RemoveOverride(cmd.Context(), o.Key, w)
			if err != nil {
				return err
			}
			return a.wrote(cmd.Context(), cl, out, out.Change, outcome{
				done:  func() { fmt.Fprintf(a.out, "%s of %s removed\n", out.Kind, out.Key) },
				would: fmt.Sprintf("%s of %s would go", out.Kind, out.Key), kept: true,
			})
		},
	}))
}
