package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

// expired marks a token that is good for nothing any more.
const expired = " (expired)"

func (a *app) tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Aliases: []string{"tokens"}, Short: "ways in, for people and machines", Example: "  cellway token create --name router-1 --role router --out router-1.token"}
	c.AddCommand(a.tokenList(), a.tokenCreate(), a.tokenDelete())
	return c
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "tokens by id, without their secrets", Args: exactly(), Example: "  cellway token list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			now := time.Now()
			t := newTable("token", "name", "role", "bound to", "created", "by", "expires")
			t.below = []string{"bound to", "by"}
			t.tint = func(row []string, i int) string {
				if i == 6 && strings.HasSuffix(row[i], expired) {
					return "31"
				}
				return ""
			}
			return showList(a, cl.Tokens(cmd.Context()), "no token: everybody on the machine of the control plane may do everything, and nobody elsewhere", t, func(t api.Token) []string {
				expires := "never"
				if !t.ExpiresAt.IsZero() {
					expires = date(t.ExpiresAt)
					if !t.ExpiresAt.After(now) {
						expires += expired
					}
				}
				return []string{t.ID, t.Name, t.Role, t.Routers + t.Cells, date(t.CreatedAt), t.CreatedBy, expires}
			})
		},
	}
}

func (a *app) tokenCreate() *cobra.Command {
	var in api.TokenCreation
	var out string
	var expires time.Duration
	c := &cobra.Command{
		Use: "create", SuggestFor: []string{"add", "new"}, Short: "make a token and tell its secret, once", Args: exactly(),
		Long: `Make a token. The secret is told once: on standard output, or in a file of mode 0600. The
first token must be an admin's: from then on everybody needs one.

Roles: viewer reads everything but secrets; operator also changes cells, tenants,
overrides and admits; admin also settings, tokens, rollbacks, backups and restores.
Machines: router reads the map and reports; cell looks up keys, and reads lists of workers
with their salts, as gateways do. A router's report can halt publishing, and a salt is
worth knowing, so give each router and each cell, or each place, a token bound to its ids.`,
		Example: "  cellway token create --name alice --role admin --out alice.token\n  cellway token create --name router-1 --role router --routers router-1 --expires 2160h\n" +
			"  cellway token create --name gateways-1 --role cell --cells cell-001 --out gateway.token",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("role", in.Role, "viewer", "operator", "admin", "router", "cell"); err != nil {
				return err
			}
			switch {
			case in.Routers != "" && in.Role != "router":
				return usage("--routers is for the role router only, not %s", in.Role)
			case in.Cells != "" && in.Role != "cell":
				return usage("--cells is for the role cell only, not %s", in.Role)
			case expires < 0:
				return usage("--expires is %v; give a time from now, as in 2160h", expires)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			if expires != 0 {
				in.ExpiresAt = time.Now().Add(expires).UTC().Truncate(time.Second)
			}
			if a.dryRun {
				return a.tryToken(cmd.Context(), cl, in, out)
			}
			return a.createToken(cmd.Context(), cl, in, out)
		},
	}
	f := c.Flags()
	f.StringVar(&in.Name, "name", "", "whose it is; the journal names it")
	f.StringVar(&in.Role, "role", "", "viewer, operator, admin, router or cell")
	f.StringVar(&in.Routers, "routers", "", "of a router's: the id that it may report as, or the beginning of ids, as in 'eu-*'; empty: any")
	f.StringVar(&in.Cells, "cells", "", "of a cell's: the id of the cell whose workers it may read, or the beginning of ids, as in 'eu-*'; empty: any")
	f.DurationVar(&expires, "expires", 0, "how long it is good for, as in 2160h; 0: for ever")
	f.StringVar(&out, "out", "", "file to write the secret to")
	f.StringVar(&a.reason, "reason", "", "why, for the journal")
	f.BoolVar(&a.dryRun, "dry-run", false, "check everything and make nothing")
	complete(c, "role", "viewer", "operator", "admin", "router", "cell")
	require(c, "name", "role")
	return c
}

// createToken makes a token, and tells its secret once: in a file if one is
// named, or else on standard output.
func (a *app) createToken(ctx context.Context, cl *client.Client, in api.TokenCreation, out string) error {
	var file *os.File
	if out != "" {
		// Before anything happens: a secret that can't be kept is lost.
		var err error
		if file, err = os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		defer file.Close()
	}
	shutOut := routersWithoutToken(ctx, cl)
	t, err := cl.CreateToken(ctx, in, client.Write{Reason: a.reason})
	if err != nil {
		if file != nil {
			os.Remove(out)
		}
		return err
	}
	if len(shutOut) > 0 {
		fmt.Fprintln(a.err, a.own(fmt.Sprintf("from now on everybody needs a token: %s can't ask for maps any more until started with --source-token; make one with cellway token create --role router",
			strings.Join(shutOut, ", "))))
	}
	lost := func(err error) error {
		return fmt.Errorf("token %s was made, but its secret is lost (%w); delete it and make another", t.ID, err)
	}
	if file == nil {
		if err := a.show(t, func() {
			fmt.Fprintf(a.err, "token %s for %s (%s); this is the only time that it is shown\n", t.ID, t.Name, t.Role)
			fmt.Fprintln(a.out, t.Secret)
		}); err != nil {
			return lost(err)
		}
		return nil
	}
	_, err = fmt.Fprintln(file, t.Secret)
	if err = errors.Join(err, file.Close()); err != nil {
		return lost(err)
	}
	return a.show(t.Token, func() { fmt.Fprintf(a.out, "token %s for %s (%s) is in %s\n", t.ID, t.Name, t.Role, out) })
}

// routersWithoutToken returns the live routers if nobody needs a token yet, so
// that none of them can have one: the first token shuts them out. What can't be
// read is nobody, since this only warns.
func routersWithoutToken(ctx context.Context, cl *client.Client) []string {
	for range cl.Tokens(ctx) {
		return nil
	}
	var ids []string
	for r, err := range cl.Routers(ctx) {
		if err != nil {
			return nil
		}
		if r.Live {
			ids = append(ids, "router "+r.ID)
		}
	}
	return ids
}

// tryToken asks for all that token create does, and makes nothing.
func (a *app) tryToken(ctx context.Context, cl *client.Client, in api.TokenCreation, file string) error {
	if file != "" {
		if err := vacant(file); err != nil {
			return err
		}
	}
	t, err := cl.CreateToken(ctx, in, client.Write{DryRun: true})
	if err != nil {
		return err
	}
	return a.say(tokenTry{in.Name, in.Role, in.ExpiresAt, true}, "dry run: nothing has changed; %s would get a token (%s)", t.Name, t.Role)
}

// A tokenTry answers a dry run of token create.
type tokenTry struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	DryRun    bool      `json:"dry_run"`
}

func (a *app) tokenDelete() *cobra.Command {
	c := a.asking(&cobra.Command{
		Use: "delete TOKEN", SuggestFor: []string{"remove", "rm", "revoke"}, Short: "end a token at once", Args: exactly("TOKEN"), ValidArgsFunction: first(a.completeTokens()),
		Example: "  cellway token delete 6xacmbm7jw6i",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			text := args[0]
			for t, err := range cl.Tokens(cmd.Context()) {
				if err != nil {
					return err
				}
				if t.ID == args[0] {
					text = fmt.Sprintf("%s of %s (%s)", t.ID, t.Name, t.Role)
				}
			}
			if err := a.sure(cmd.Context(), func() { fmt.Fprintf(a.err, "this ends token %s at once\n", text) }, args[0]); err != nil {
				return err
			}
			if err := cl.DeleteToken(cmd.Context(), args[0], client.Write{DryRun: a.dryRun, Reason: a.reason}); err != nil {
				return err
			}
			return a.gone(args[0], "token "+text+" deleted")
		},
	})
	c.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "check everything and change nothing")
	return c
}
