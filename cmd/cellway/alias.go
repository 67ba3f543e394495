package main

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) aliasCommand() *cobra.Command {
	c := &cobra.Command{Use: "alias", Aliases: []string{"aliases"}, Short: "other names for tenants", Example: "  cellway alias set acme-corp acme"}
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "aliases by name", Args: exactly(), Example: "  cellway alias list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			t := newTable("alias", "target")
			return showList(a, cl.Aliases(cmd.Context()), "no alias", t, func(x api.Alias) []string { return []string{string(x.Name), string(x.Target)} })
		},
	}
	set := a.writing(&cobra.Command{
		Use: "set ALIAS KEY", SuggestFor: []string{"add", "create"}, Short: "give a tenant, or one key of it, another name", Args: exactly("ALIAS", "KEY"),
		Example: "  cellway alias set acme-corp acme\n  cellway alias set acme-eu acme/eu",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := cl.PutAlias(cmd.Context(), cellway.TenantID(args[0]), api.AliasSettings{Target: cellway.Key(args[1])}, w)
			return a.aliasChanged(cmd.Context(), cl, out, err, "is another name for", false)
		},
	})
	remove := a.asking(a.writing(&cobra.Command{
		Use: "remove ALIAS", SuggestFor: []string{"delete", "rm"}, Short: "remove an alias; no other alias gets its name", Args: exactly("ALIAS"), ValidArgsFunction: first(a.completeAliases()),
		Example: "  cellway alias remove acme-corp",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			x, err := cl.Alias(cmd.Context(), cellway.TenantID(args[0]))
			if err != nil {
				return err
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this removes alias %s of %s; requests under that name are told it is gone\n", x.Name, x.Target)
			}, args[0]); err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = x.Revision
			out, err := cl.RemoveAlias(cmd.Context(), x.Name, w)
			return a.aliasChanged(cmd.Context(), cl, out, err, "is no longer a name for", true)
		},
	}))
	c.AddCommand(list, set, remove)
	return c
}

func (a *app) aliasChanged(ctx context.Context, cl *client.Client, out api.AliasChange, err error, is string, kept bool) error {
	if err != nil {
		return err
	}
	return a.wrote(ctx, cl, out, out.Change, outcome{done: func() { fmt.Fprintf(a.out, "%s %s %s\n", out.Name, is, out.Target) }, kept: kept})
}
