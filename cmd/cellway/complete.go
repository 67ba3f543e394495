package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

// completeWithin bounds how long a shell waits for names.
const completeWithin = 2 * time.Second

// mostNames bounds how many names a shell is given.
const mostNames = 1000

// complete completes the values of a flag, from words or from functions that
// return some.
func complete[T string | func() []string](c *cobra.Command, flag string, values ...T) {
	err := c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, v := range values {
			switch v := any(v).(type) {
			case string:
				out = append(out, v)
			case func() []string:
				out = append(out, v()...)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // there is no such flag
	}
}

// completeNames completes the first argument.
func completeNames(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(), cobra.ShellCompDirectiveNoFileComp
	}
}

// ask completes from the control plane; without one there is nothing to offer.
// Names that are arguments already are left out.
func ask[T any](a *app, list func(context.Context, *client.Client) iter.Seq2[T, error], name func(T) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		given := map[string]bool{}
		for _, arg := range args {
			given[arg] = true
		}
		var out []string
		for item, err := range list(ctx, c) {
			if err != nil || len(out) == mostNames {
				break
			}
			word, _, _ := strings.Cut(name(item), "\t")
			if strings.HasPrefix(word, typed) && !given[word] {
				out = append(out, name(item))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument only.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, typed)
	}
}

func (a *app) completeCells() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Cell, error] { return c.Cells(ctx) },
		func(c api.Cell) string { return string(c.ID) + "\t" + c.Title })
}

func (a *app) completeTenants() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Tenant, error] {
		return c.Tenants(ctx, client.TenantFilter{})
	}, func(t api.Tenant) string { return string(t.ID) + "\tin " + string(t.Cell) })
}

func (a *app) completeOverrides() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Override, error] {
		return c.Overrides(ctx, "")
	},
		func(o api.Override) string { return string(o.Key) + "\t" + o.Kind.String() })
}

func (a *app) completeAliases() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Alias, error] { return c.Aliases(ctx) },
		func(x api.Alias) string { return string(x.Name) + "\tof " + string(x.Target) })
}

func (a *app) completeRouters() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Router, error] { return c.Routers(ctx) },
		func(r api.Router) string { return r.ID })
}

func (a *app) completeVersions() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.MapVersion, error] { return c.Versions(ctx) },
		func(v api.MapVersion) string { return v.Version.String() + "\t" + date(v.CreatedAt) })
}

func (a *app) completeTokens() cobra.CompletionFunc {
	return ask(a, func(ctx context.Context, c *client.Client) iter.Seq2[api.Token, error] { return c.Tokens(ctx) },
		func(t api.Token) string { return t.ID + "\t" + t.Name })
}

// completionCommand stands in for cobra's, whose help is about cobra.
func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	var bare bool
	c := &cobra.Command{
		Use: "completion SHELL", Short: "print a script that has a shell complete commands, flags and names", Args: exactly("SHELL"), ValidArgs: shells,
		Long: `Print a script that has a shell complete commands, flags, and the names of cells, tenants,
routers and the like, for which it asks the control plane. The shells are bash, zsh, fish
and powershell. bash needs the package bash-completion.`,
		Example: "  source <(cellway completion bash)\n  cellway completion fish > ~/.config/fish/completions/cellway.fish",
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			a.verbatim = true
			switch {
			case args[0] == "bash":
				return root.GenBashCompletionV2(a.out, !bare)
			case args[0] == "zsh" && bare:
				return root.GenZshCompletionNoDesc(a.out)
			case args[0] == "zsh":
				return root.GenZshCompletion(a.out)
			case args[0] == "fish":
				return root.GenFishCompletion(a.out, !bare)
			case args[0] == "powershell" && bare:
				return root.GenPowerShellCompletion(a.out)
			case args[0] == "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usage("there is no script for %q; give %s", args[0], anyOf(shells...))
		},
	}
	c.Flags().BoolVar(&bare, "no-descriptions", false, "leave out the explanations beside the words")
	return c
}
