package main

import (
	"context"
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
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "tokens by id, without their secrets", Args: exactly(), Example: "  cellway token list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			now := time.Now()
			t := newTable("token", "name", "role", "routers", "created", "by", "expires")
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
				return []string{t.ID, t.Name, t.Role, t.Routers, date(t.CreatedAt), t.CreatedBy, expires}
			})
		},
	}
	var name, role, routers, out string
	var expires time.Duration
	create := &cobra.Command{
		Use: "create", SuggestFor: []string{"add", "new"}, Short: "make a token and tell its secret, once", Args: exactly(),
		Long: `Make a token. The secret is told once: on standard output, or in a file of mode 0600. The
first token must be an admin's: from then on everybody needs one.

Roles: viewer reads everything but secrets; operator also changes cells, tenants,
overrides and admits; admin also settings, tokens, rollbacks, backups and restores.
Machines: router reads the map and reports; cell looks up keys. A router's report can
halt publishing, so give each router, or each place, a token bound to its ids.`,
		Example: "  cellway token create --name alice --role admin --out alice.token\n  cellway token create --name router-1 --role router --routers router-1 --expires 2160h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("role", role, "viewer", "operator", "admin", "router", "cell"); err != nil {
				return err
			}
			switch {
			case routers != "" && role != "router":
				return usage("--routers is for the role router only, not %s", role)
			case expires < 0:
				return usage("--expires is %v; give a time from now, as in 2160h", expires)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			in := api.TokenCreation{Name: name, Role: role, Routers: routers}
			if expires != 0 {
				in.ExpiresAt = time.Now().Add(expires).UTC().Truncate(time.Second)
			}
			if a.dryRun {
				return a.tryToken(cmd.Context(), cl, in, out)
			}
			var file *os.File
			if out != "" {
				// Before anything happens: a secret that can't be kept is lost.
				if file, err = os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
					return err
				}
				defer file.Close()
			}
			shutOut := routersWithoutToken(cmd.Context(), cl)
			t, err := cl.CreateToken(cmd.Context(), in, client.Write{Reason: a.reason})
			if err == nil && len(shutOut) > 0 {
				fmt.Fprintln(a.err, a.own(fmt.Sprintf("from now on everybody needs a token: %s can't ask for maps any more until started with --source-token; make one with cellway token create --role router",
					strings.Join(shutOut, ", "))))
			}
			if err != nil {
				if file != nil {
					os.Remove(out)
				}
				return err
			}
			if file != nil {
				if _, err := fmt.Fprintln(file, t.Secret); err != nil {
					return fmt.Errorf("token %s was made, but its secret is lost (%w); delete it and make another", t.ID, err)
				}
				if err := file.Close(); err != nil {
					return fmt.Errorf("token %s was made, but its secret may be lost (%w); delete it and make another", t.ID, err)
				}
				t.Secret = ""
				return a.show(t.Token, func() { fmt.Fprintf(a.out, "token %s for %s (%s) is in %s\n", t.ID, t.Name, t.Role, out) })
			}
			if err := a.show(t, func() {
				fmt.Fprintf(a.err, "token %s for %s (%s); this is the only time that it is shown\n", t.ID, t.Name, t.Role)
				fmt.Fprintln(a.out, t.Secret)
			}); err != nil {
				return fmt.Errorf("token %s was made, but its secret is lost (%w); delete it and make another", t.ID, err)
			}
			return nil
		},
	}
	create.Flags().StringVar(&name, "name", "", "whose it is; the journal names it")
	create.Flags().StringVar(&role, "role", "", "viewer, operator, admin, router or cell")
	create.Flags().StringVar(&routers, "routers", "", "of a router's: the id that it may report as, or the beginning of ids, as in 'eu-*'; empty: any")
	create.Flags().DurationVar(&expires, "expires", 0, "how long it is good for, as in 2160h; 0: for ever")
	create.Flags().StringVar(&out, "out", "", "file to write the secret to")
	create.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	create.Flags().BoolVar(&a.dryRun, "dry-run", false, "check everything and make nothing")
	complete(create, "role", "viewer", "operator", "admin", "router", "cell")
	require(create, "name", "role")
	remove := a.asking(&cobra.Command{
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
			if err := a.sure(func() { fmt.Fprintf(a.err, "this ends token %s at once\n", text) }, args[0]); err != nil {
				return err
			}
			if err := cl.DeleteToken(cmd.Context(), args[0], client.Write{DryRun: a.dryRun, Reason: a.reason}); err != nil {
				return err
			}
			return a.gone(args[0], "token "+text+" deleted")
		},
	})
	remove.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	remove.Flags().BoolVar(&a.dryRun, "dry-run", false, "check everything and change nothing")
	c.AddCommand(list, create, remove)
	return c
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
