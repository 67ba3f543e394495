package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) tenantCommand() *cobra.Command {
	c := &cobra.Command{Use: "tenant", Aliases: []string{"tenants"}, Short: "registered tenants and where they are", Example: "  cellway tenant add acme --tier gold\n  cellway tenant list --cell cell-001"}
	c.AddCommand(a.tenantList(), a.tenantShow(), a.tenantAdd(), a.tenantSet(), a.tenantDelete(), a.tenantUndelete())
	return c
}

func (a *app) tenantList() *cobra.Command {
	var cell cellway.CellID
	var tier string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "tenants by id", Args: exactly(), Example: "  cellway tenant list\n  cellway tenant list --cell cell-001 --tier gold -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			if cell != "" { // the list of a cell that is not there would be empty, too
				if _, err := cl.Cell(cmd.Context(), cell); err != nil {
					return err
				}
			}
			t := newTable("tenant", "cell", "routed to", "by", "tier", "residency", "dedicated", "weights")
			t.below = []string{"weights", "dedicated", "residency", "tier"}
			none := "no tenant is registered; register one with " + a.own("cellway tenant add TENANT")
			switch {
			case cell != "" && tier != "":
				none = fmt.Sprintf("no tenant of tier %s has its data in %s", tier, cell)
			case cell != "":
				none = fmt.Sprintf("no tenant has its data in %s", cell)
			case tier != "":
				none = "no tenant is of tier " + tier
			}
			return showList(a, cl.Tenants(cmd.Context(), client.TenantFilter{Cell: cell, Tier: tier}), none, t, func(t api.Tenant) []string {
				elsewhere, dedicated := "", ""
				if t.RoutedTo != t.Cell {
					elsewhere = orDash(string(t.RoutedTo))
				}
				if t.Dedicated {
					dedicated = "yes"
				}
				return []string{string(t.ID), string(t.Cell), elsewhere, t.Rule, t.Tier, t.Residency, dedicated, formatVector(t.Weights)}
			})
		},
	}
	c.Flags().Var(cellFlag{&cell}, "cell", "only those whose data is in this cell")
	c.Flags().StringVar(&tier, "tier", "", "only those of this tier")
	if err := c.RegisterFlagCompletionFunc("cell", a.completeCells()); err != nil {
		panic(err)
	}
	return c
}

func formatVector(v api.Vector) string {
	var out []string
	for _, k := range sortedKeys(v) {
		out = append(out, k+"="+amount(v[k]))
	}
	return strings.Join(out, ",")
}

func (a *app) tenantShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TENANT", SuggestFor: lookups(), Short: "one tenant", Args: exactly("TENANT"), ValidArgsFunction: first(a.completeTenants()), Example: "  cellway tenant show acme",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			t, err := cl.Tenant(cmd.Context(), cellway.TenantID(args[0]))
			if err != nil {
				return err
			}
			return a.show(t, func() { tellTenant(t).write(a.out) })
		},
	}
}

func tellTenant(t api.Tenant) *facts {
	f := &facts{}
	f.add("tenant", "%s", t.ID)
	if t.Deleted {
		f.add("deleted", "yes: its name is not used again")
	}
	f.add("cell", "%s", t.Cell)
	if t.RoutedTo != t.Cell && !t.Deleted {
		f.add("routed to", "%s", orDash(string(t.RoutedTo)))
	}
	f.add("by", "%s", t.Rule)
	if t.Epoch != 0 {
		f.add("epoch", "%s", t.Epoch)
	}
	f.add("tier", "%s", t.Tier)
	f.add("weights", "%s", formatVector(t.Weights))
	f.add("residency", "%s", t.Residency)
	if t.Dedicated {
		f.add("dedicated", "yes")
	}
	f.add("policy", "%s", t.Policy)
	f.add("created", "%s", date(t.CreatedAt))
	f.add("revision", "%d", t.Revision)
	return f
}

// tenantFlags are a tenant's settings as flags.
type tenantFlags struct {
	tier, residency, policy string
	weights                 map[string]string
	dedicated               bool
}

func (s *tenantFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.tier, "tier", "", "tier")
	f.Var(pairs{&s.weights, "resource=amount"}, "weight", "what it takes of a resource, as in rps=50,storage_mb=200; one tenant it is always")
	f.StringVar(&s.residency, "residency", "", "region that its data may not leave")
	f.BoolVar(&s.dedicated, "dedicated", false, "needs a cell of its own")
	f.StringVar(&s.policy, "policy", "", "how it is placed: bucket or least_loaded; none: the fleet's way")
	complete(c, "policy", "bucket", "least_loaded")
}

// apply puts what the flags say into in, and notes what goes.
func (s *tenantFlags) apply(a *app, c *cobra.Command, in *api.TenantSettings) (err error) {
	a.leaves = nil
	set := c.Flags().Changed
	if set("tier") {
		in.Tier = s.tier
	}
	if set("weight") {
		was := in.Weights
		if in.Weights, err = parseVector("weight", s.weights); err != nil {
			return err
		}
		a.leaving("weight of", sortedKeys(was), sortedKeys(in.Weights))
	}
	if set("residency") {
		in.Residency = s.residency
	}
	if set("dedicated") {
		in.Dedicated = s.dedicated
	}
	if set("policy") {
		if s.policy != "" {
			if err := oneOf("policy", s.policy, "bucket", "least_loaded"); err != nil {
				return err
			}
		}
		in.Policy = s.policy
	}
	return nil
}

func (a *app) tenantAdd() *cobra.Command {
	var s tenantFlags
	var key string
	c := a.writing(&cobra.Command{
		Use: "add TENANT", Short: "register a tenant and place it", Args: exactly("TENANT"), SuggestFor: []string{"create", "register"},
		Long: `Register a tenant: placement chooses its cell and reserves its room there in the same
transaction. Repeat the command with the same --idempotency-key when you don't know
whether it happened: it happens once.`,
		Example: "  cellway tenant add acme\n  cellway tenant add acme --tier gold --weight rps=50 --residency eu --idempotency-key signup-4711",
		RunE: func(cmd *cobra.Command, args []string) error {
			var in api.TenantSettings
			if err := s.apply(a, cmd, &in); err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			a.strangeTier(cmd.Context(), cl, in.Tier)
			w := a.write(cl)
			w.IdempotencyKey = key
			out, err := cl.CreateTenant(cmd.Context(), cellway.TenantID(args[0]), in, w)
			if errors.Is(err, cellway.ErrNoRoom) {
				err = noRoom(cmd.Context(), cl, in, err)
			}
			return a.tenantChanged(cmd.Context(), cl, out, err)
		},
	})
	s.flags(c)
	c.Flags().StringVar(&key, "idempotency-key", "", "name of this sign-up, so that asking twice creates once")
	return c
}

// strangeTier warns a person of a tier that no cell names, though cells name
// some, and that no tenant has: more often it is mistyped than new. What can't
// be asked is not warned of.
func (a *app) strangeTier(ctx context.Context, cl *client.Client, tier string) {
	if tier == "" || !a.forPeople() {
		return
	}
	named := map[string]bool{}
	for cell, err := range cl.Cells(ctx) {
		if err != nil {
			return
		}
		for _, t := range cell.Tiers {
			named[t] = named[t] || cell.State != cellway.CellRetired
		}
	}
	if len(named) == 0 || named[tier] {
		return
	}
	for range cl.Tenants(ctx, client.TenantFilter{Tier: tier}) {
		return
	}
	fmt.Fprintf(a.err, "cellway: no cell names tier %s, and no tenant has it yet; cells name %s\n", tier, anyOf(sortedKeys(named)...))
}

func (a *app) tenantChanged(ctx context.Context, cl *client.Client, out api.TenantChange, err error) error {
	if err != nil {
		return err
	}
	return a.tellTenantChange(ctx, cl, out, false)
}

// tellTenantChange tells what became of a tenant. more: the command does more
// than that.
func (a *app) tellTenantChange(ctx context.Context, cl *client.Client, out api.TenantChange, more bool) error {
	is, would := "is in cell %s", "would be in cell %s"
	if out.Deleted {
		is, would = "is deleted; its data in cell %s is not touched", "would be deleted; its data in cell %s is not touched"
	}
	return a.wrote(ctx, cl, out, out.Change, outcome{
		done:  func() { fmt.Fprintf(a.out, "tenant %s "+is+"\n", out.ID, out.Cell) },
		would: fmt.Sprintf("tenant %s "+would, out.ID, out.Cell),
		as:    tellTenant(out.Tenant), kept: true, more: more,
	})
}

func (a *app) tenantSet() *cobra.Command {
	var s tenantFlags
	c := a.writing(&cobra.Command{
		Use: "set TENANT", SuggestFor: changes(), Short: "change the settings that are named; the tenant stays in its cell", Args: exactly("TENANT"), ValidArgsFunction: first(a.completeTenants()),
		Example: "  cellway tenant set acme --tier platinum --weight rps=200",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysWhat(cmd); err != nil {
				return err
			}
			if err := s.apply(a, cmd, &api.TenantSettings{}); err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			a.strangeTier(cmd.Context(), cl, s.tier)
			edit := func(in *api.TenantSettings) error { return s.apply(a, cmd, in) }
			out, err := cl.UpdateTenant(cmd.Context(), cellway.TenantID(args[0]), edit, a.write(cl))
			return a.tenantChanged(cmd.Context(), cl, out, err)
		},
	})
	s.flags(c)
	return c
}

// mostDeleted is how many tenants one command deletes at most: a list that was
// made of the wrong ids does no more harm than that.
const mostDeleted = 10

func (a *app) tenantDelete() *cobra.Command {
	return a.asking(a.writing(&cobra.Command{
		Use: "delete TENANT...", Short: "delete tenants and leave tombstones", ValidArgsFunction: a.completeTenants(), SuggestFor: []string{"remove", "rm"},
		Long: fmt.Sprintf(`Delete tenants, at most %d at a time. Their requests are answered 410 key_gone from then
on, their overrides go, and their names are not used again. The data in their cells is
not touched.

All of them are looked up and shown first; if one does not exist, none is deleted.`, mostDeleted),
		Example: "  cellway tenant delete acme --reason 'contract ended'\n  cellway tenant delete acme --dry-run",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage("name the tenants to delete")
			case len(args) > mostDeleted:
				return usage("%d tenants are named; at most %d are deleted at a time", len(args), mostDeleted)
			}
			for _, arg := range args {
				if err := wellFormed([]string{"TENANT"}, []string{arg}); err != nil {
					return err
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var tenants []api.Tenant
			for i, id := range args {
				t, err := cl.Tenant(cmd.Context(), cellway.TenantID(id))
				switch {
				case errors.Is(err, cellway.ErrNotFound):
					return notTenant(cmd, cl, id, err)
				case err != nil:
					return err
				case t.Deleted && a.confirm != "" && len(args) > 1:
					continue // before the one that is confirmed now
				case t.Deleted:
					return fmt.Errorf("tenant %s is deleted already: %w", id, cellway.ErrNotFound)
				}
				if slices.Contains(args[:i], id) {
					return usage("tenant %s is named twice", id)
				}
				tenants = append(tenants, t)
			}
			if len(tenants) == 0 {
				return fmt.Errorf("tenants %s are deleted already: %w", some(args, len(args)), cellway.ErrNotFound)
			}
			word := string(tenants[0].ID)
			if len(tenants) > 1 {
				word = fmt.Sprintf("delete %d tenants", len(tenants))
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this deletes %s:\n", plural(len(tenants), "tenant", "tenants"))
				t := newTable("tenant", "cell", "tier", "created")
				for _, x := range tenants {
					t.row(string(x.ID), string(x.Cell), x.Tier, date(x.CreatedAt))
				}
				a.tell(t)
			}, word); err != nil {
				return err
			}
			return a.deleteAll(cmd, cl, tenants)
		},
	}))
}

// deleteAll deletes tenants one after the other, and tells of each that went
// whatever came of the others. To confirm one that the gate refused, the same
// command is repeated: it passes over those that went. Routers that lag stop nothing; a refusal does,
// since it may hold for the rest too. Only the last one is waited for: the map
// that has it has all before it.
func (a *app) deleteAll(cmd *cobra.Command, cl *client.Client, tenants []api.Tenant) error {
	all := []api.TenantChange{}
	var failed error
	for i, t := range tenants {
		w := client.Write{DryRun: a.dryRun, Confirm: a.confirm, Reason: a.reason}
		if i == len(tenants)-1 {
			w = a.write(cl)
		}
		w.Revision = t.Revision
		out, err := cl.DeleteTenant(cmd.Context(), t.ID, w)
		if err != nil {
			done := fmt.Sprintf("%d of %d are deleted", len(all), len(tenants))
			switch failed = err; {
			case a.dryRun:
			case len(all) == 0:
				failed = fmt.Errorf("%s; %w", done, err)
			default:
				failed = partly{fmt.Errorf("%s; %w", done, err), done}
			}
			break
		}
		all = append(all, out)
		if a.forPeople() {
			failed = errors.Join(failed, a.tellTenantChange(cmd.Context(), cl, out, i < len(tenants)-1))
		} else {
			failed = errors.Join(failed, behind(out.Change))
		}
	}
	if a.forPeople() {
		return failed
	}
	refused, _ := errors.AsType[*client.Error](failed)
	switch asks := refused != nil && refused.Code == api.CodeGate; {
	case asks && len(all) == 0:
		return failed // it is told by itself
	case asks:
		return errors.Join(a.show(partDeleted{all, a.refusal(refused)}, nil), failed)
	}
	return errors.Join(a.show(all, nil), failed)
}

// A partDeleted is what became of a deletion of several tenants when one of them
// needs a confirmation.
type partDeleted struct {
	Done    []api.TenantChange `json:"done"`
	Refused refusal            `json:"refused"`
}

func (a *app) tenantUndelete() *cobra.Command {
	return a.writing(&cobra.Command{
		Use: "undelete TENANT", Short: "bring back a tenant that was deleted by mistake", Args: exactly("TENANT"),
		Long: `Bring back a tenant that was deleted by mistake: to the cell that has its data, with the
settings that it had. Its overrides don't come back.`,
		Example: "  cellway tenant undelete acme --reason 'wrong list'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			t, err := cl.Tenant(cmd.Context(), cellway.TenantID(args[0]))
			if err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = t.Revision
			out, err := cl.UndeleteTenant(cmd.Context(), t.ID, a.reason, w)
			return a.tenantChanged(cmd.Context(), cl, out, err)
		},
	})
}

// notTenant says what an id is that is no tenant's.
func notTenant(cmd *cobra.Command, cl *client.Client, id string, err error) error {
	if cell, cellErr := cl.Cell(cmd.Context(), cellway.CellID(id)); cellErr == nil {
		return fmt.Errorf("%s is a cell with %s, not a tenant; nothing is deleted: %w", id, plural(cell.Tenants, "tenant", "tenants"), cellway.ErrNotFound)
	}
	if alias, aliasErr := cl.Alias(cmd.Context(), cellway.TenantID(id)); aliasErr == nil {
		return fmt.Errorf("%s is an alias of %s, not a tenant; nothing is deleted: %w", id, alias.Target, cellway.ErrNotFound)
	}
	return fmt.Errorf("%w; nothing is deleted", err)
}
