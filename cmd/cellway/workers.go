package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) workersCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "workers", Aliases: []string{"worker"}, Short: "a cell's list of workers, which its gateways deal hands from",
		Long: `A cell's list of workers, kept at the control plane. The cell's gateways take it from
there, if they are started with --workers-control, and deal each tenant its hand of the
workers. The list is no part of the map: routers need nothing of it.

The list has a salt, which makes hands unknown to those who don't know it. It is never
shown: the control plane draws one for a new list, and it stays when the list changes.`,
		Example: "  cellway cell workers apply cell-001 -f workers.json\n  cellway cell workers list cell-001\n  cellway cell workers drain cell-001 w3 --dry-run",
	}
	c.AddCommand(a.workersList(), a.workersApply(), a.workersAdd(), a.workersSet(), a.workersDrain(), a.workersUndrain(), a.workersRemove(), a.workersDelete())
	return c
}

// keeping adds what commands take that write beside the map: there is no change to
// confirm, and no router to wait for.
func (a *app) keeping(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "check everything, change nothing, and tell what it would do to hands")
	c.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	return c
}

// completeWorkers completes a cell, and then one of its workers.
func (a *app) completeWorkers() cobra.CompletionFunc {
	cells := first(a.completeCells())
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return cells(cmd, args, typed)
		}
		cl, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		list, err := cl.Workers(ctx, cellway.CellID(args[0]))
		var out []string
		for _, w := range list.Workers {
			if err == nil && strings.HasPrefix(w.ID, typed) && len(out) < mostNames {
				out = append(out, w.ID+"\t"+w.Endpoint)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) workersList() *cobra.Command {
	return &cobra.Command{
		Use: "list CELL", Aliases: []string{"ls"}, SuggestFor: append(lookups(), "show"), Short: "the workers by id, and how hands are dealt", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Example: "  cellway cell workers list cell-001\n  cellway cell workers list cell-001 -o json > workers.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			list, err := cl.Workers(cmd.Context(), cellway.CellID(args[0]))
			if err != nil {
				return err
			}
			return a.show(list, func() {
				tellWorkers(list).write(a.out)
				fmt.Fprintln(a.out)
				a.print(workersTable(list))
			})
		},
	}
}

// tellWorkers is what a list says of hands.
func tellWorkers(l api.CellWorkers) *facts {
	t := &facts{}
	t.add("cell", "%s", l.Cell)
	t.add("hands", "%s", tellHands(l.HandSettings))
	t.add("salt", "%s", map[bool]string{true: "yes", false: "none: who knows the workers knows everybody's hand"}[l.Salted])
	var sizes []string
	for _, tenant := range sortedKeys(l.Sizes) {
		sizes = append(sizes, fmt.Sprintf("%s=%d", tenant, l.Sizes[tenant]))
	}
	t.add("sizes", "%s", some(sizes, len(sizes)))
	if n := len(l.Numbers); n > 0 {
		t.add("numbers", "of %s", plural(n, "tenant", "tenants"))
	}
	t.add("version", "%s", l.Version)
	t.add("changed", "%s (%s)", date(l.ChangedAt), age(time.Now(), l.ChangedAt))
	t.add("revision", "%d", l.Revision)
	return t
}

func tellHands(h api.HandSettings) string {
	text := "of " + strconv.Itoa(h.Size)
	if h.Deal != "" {
		text += ", dealt by " + h.Deal
	}
	if h.Overlap != nil {
		text += fmt.Sprintf(", two of which share %d at most", *h.Overlap)
	}
	if h.Strict {
		text += ", even over zones"
	}
	return text
}

// drainedMark stands for the weight of a worker that is in nobody's hand.
const drainedMark = "drained"

func workersTable(l api.CellWorkers) *table {
	seats, zones := false, false
	for _, w := range l.Workers {
		seats, zones = seats || w.Seat != nil, zones || w.Zone != ""
	}
	head := []string{"worker", "weight"}
	if zones {
		head = append(head, "zone")
	}
	if seats {
		head = append(head, "seat")
	}
	t := newTable(append(head, "endpoint")...)
	t.below = []string{"endpoint"}
	t.tint = func(row []string, i int) string {
		if i == 1 && strings.HasPrefix(row[i], drainedMark) {
			return "33"
		}
		return ""
	}
	for _, w := range l.Workers {
		weight := "1"
		switch was := l.Drained[w.ID]; {
		case w.Weight != nil && *w.Weight == 0 && was > 1:
			weight = fmt.Sprintf("%s (was %d)", drainedMark, was)
		case w.Weight != nil && *w.Weight == 0:
			weight = drainedMark
		case w.Weight != nil:
			weight = strconv.Itoa(*w.Weight)
		}
		row := []string{w.ID, weight}
		if zones {
			row = append(row, orDash(w.Zone))
		}
		if seats {
			seat := "" // of a list that a newer control plane may have
			if w.Seat != nil {
				seat = strconv.Itoa(*w.Seat)
			}
			row = append(row, orDash(seat))
		}
		t.row(append(row, w.Endpoint)...)
	}
	return t
}

// workerFlags are a worker's settings as flags.
type workerFlags struct {
	endpoint, zone string
	weight, seat   int
}

func (s *workerFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.endpoint, "endpoint", "", "where it listens, as in http://10.0.0.1:8080")
	f.StringVar(&s.zone, "zone", "", "what may fail together with other workers")
	f.IntVar(&s.weight, "weight", 1, "how much of the cell's load it gets, 0 to 256; 0: none, it is drained")
	f.IntVar(&s.seat, "seat", 0, "its place in the design, where hands are dealt by one")
}

// apply puts what the flags say into in.
func (s *workerFlags) apply(c *cobra.Command, in *api.WorkerSettings) {
	set := c.Flags().Changed
	if set("endpoint") {
		in.Endpoint = s.endpoint
	}
	if set("zone") {
		in.Zone = s.zone
	}
	if set("weight") {
		in.Weight = &s.weight
	}
	if set("seat") {
		in.Seat = &s.seat
	}
}

// check finds what can't be right whatever the list has.
func (s *workerFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("endpoint") {
		if _, err := cellway.ParseEndpoint(s.endpoint); err != nil {
			return usage("--endpoint: %w", err)
		}
	}
	if s.weight < 0 || s.weight > maxWeight {
		return usage("--weight is %d; give 0 to %d", s.weight, maxWeight)
	}
	if s.seat < 0 {
		return usage("--seat is %d; seats are counted from 0", s.seat)
	}
	return nil
}

// maxWeight is the largest weight of a worker.
const maxWeight = 256

func (a *app) workersAdd() *cobra.Command {
	var s workerFlags
	c := a.asking(a.keeping(&cobra.Command{
		Use: "add CELL WORKER", SuggestFor: []string{"create", "register"}, Short: "add a worker to a cell's list", Args: exactly("CELL", "WORKER"), ValidArgsFunction: first(a.completeCells()),
		Long: `Add a worker to a cell's list. It gets into about as many hands as every other one, and
changes at most one member of any. Whatever else has changed in the list meanwhile does
not matter. A worker that comes back under its old id gets its old tenants back. If most
tenants would lose a member of their hand, it asks.`,
		Example: "  cellway cell workers add cell-001 w9 --endpoint http://10.0.0.9:8080 --zone b --dry-run\n  cellway cell workers add cell-001 w9 --endpoint http://10.0.0.9:8080 --zone b",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.check(cmd); err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			var in api.WorkerSettings
			s.apply(cmd, &in)
			out, err := a.changeHands(cmd.Context(), w, args[1], func(w client.Write) (api.CellWorkersChange, error) {
				return cl.PutWorker(cmd.Context(), cellway.CellID(args[0]), args[1], in, w)
			})
			if errors.Is(err, cellway.ErrExists) {
				err = mend(err, "%s changes it", a.command("cell", "workers", "set", args[0], args[1]))
			}
			return a.workersChanged(out, err, fmt.Sprintf("worker %s of cell %s", args[1], args[0]), "is in the list", "would be in the list")
		},
	}))
	s.flags(c)
	require(c, "endpoint")
	return c
}

func (a *app) workersSet() *cobra.Command {
	var s workerFlags
	c := a.asking(a.keeping(&cobra.Command{
		Use: "set CELL WORKER", SuggestFor: changes(), Short: "change the settings of a worker that are named", Args: exactly("CELL", "WORKER"), ValidArgsFunction: a.completeWorkers(),
		Long: `Change the settings of a worker that are named. Another endpoint changes no hand; another
zone, weight or seat may. If most tenants would lose a member of their hand, it asks.`,
		Example: "  cellway cell workers set cell-001 w3 --endpoint http://10.0.0.33:8080\n  cellway cell workers set cell-001 w3 --weight 2 --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := saysWhat(cmd); err != nil {
				return err
			}
			if err := s.check(cmd); err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := a.changeHands(cmd.Context(), w, args[1], func(w client.Write) (api.CellWorkersChange, error) {
				return cl.UpdateWorker(cmd.Context(), cellway.CellID(args[0]), args[1], func(in *api.WorkerSettings) error { s.apply(cmd, in); return nil }, w)
			})
			return a.workersChanged(out, a.noSuchWorker(err, args), fmt.Sprintf("worker %s of cell %s", args[1], args[0]), "is changed", "would be changed")
		},
	}))
	s.flags(c)
	return c
}

// noSuchWorker says how to find the name of a worker, or how to add one.
func (a *app) noSuchWorker(err error, args []string) error {
	if _, told := errors.AsType[*client.Error](err); told || !errors.Is(err, cellway.ErrNotFound) {
		return err
	}
	return mend(err, "%s shows those that it has", a.command("cell", "workers", "list", args[0]))
}

func (a *app) workersDrain() *cobra.Command {
	return a.asking(a.keeping(&cobra.Command{
		Use: "drain CELL WORKER", Short: "take a worker out of all hands, and leave it in the list", Args: exactly("CELL", "WORKER"), ValidArgsFunction: a.completeWorkers(),
		Long: `Take a worker out of all hands, by weight 0. It gets no new requests, and what is under
way ends by itself. It stays in the list: undrain gives it its weight, and its tenants,
again. Where hands are dealt by a design it keeps its seat, and gets requests only of
tenants whose whole hand is drained. If most tenants would lose a member of their hand,
it asks.`,
		Example: "  cellway cell workers drain cell-001 w3 --dry-run\n  cellway cell workers drain cell-001 w3 --reason 'new kernel'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := a.changeHands(cmd.Context(), w, args[1], func(w client.Write) (api.CellWorkersChange, error) {
				return cl.DrainWorker(cmd.Context(), cellway.CellID(args[0]), args[1], w)
			})
			err = a.tooFew(cmd.Context(), cl, args, err)
			return a.workersChanged(out, err, fmt.Sprintf("worker %s of cell %s", args[1], args[0]), "is drained", "would be drained")
		},
	}))
}

// tooFew says what to do if so few workers would be left that no hand can be dealt.
func (a *app) tooFew(ctx context.Context, cl *client.Client, args []string, err error) error {
	if !errors.Is(err, cellway.ErrInvalid) {
		return err
	}
	list, listErr := cl.Workers(ctx, cellway.CellID(args[0]))
	if listErr != nil {
		return err
	}
	left, size := 0, list.Size
	for _, w := range list.Workers {
		if w.ID != args[1] && (w.Weight == nil || *w.Weight > 0) {
			left++
		}
	}
	for _, n := range list.Sizes {
		size = max(size, n)
	}
	if left >= size {
		return err
	}
	return mend(fmt.Errorf("%w: %w", err, errState), "first add one (cellway cell workers add %s -h), undrain one, or apply a list with smaller hands", args[0])
}

func (a *app) workersUndrain() *cobra.Command {
	var weight int
	c := a.asking(a.keeping(&cobra.Command{
		Use: "undrain CELL WORKER", Short: "give a drained worker its weight again, and its tenants with it", Args: exactly("CELL", "WORKER"), ValidArgsFunction: a.completeWorkers(),
		Example: "  cellway cell workers undrain cell-001 w3\n  cellway cell workers undrain cell-001 w3 --weight 2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("weight") && (weight < 1 || weight > maxWeight) {
				return usage("--weight is %d; give 1 to %d", weight, maxWeight)
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := a.changeHands(cmd.Context(), w, args[1], func(w client.Write) (api.CellWorkersChange, error) {
				return cl.UndrainWorker(cmd.Context(), cellway.CellID(args[0]), args[1], weight, w)
			})
			return a.workersChanged(out, err, fmt.Sprintf("worker %s of cell %s", args[1], args[0]), "is in hands again", "would be in hands again")
		},
	}))
	c.Flags().IntVar(&weight, "weight", 0, "weight to give it, 1 to 256; left out: the one that it had")
	return c
}

func (a *app) workersRemove() *cobra.Command {
	return a.asking(a.keeping(&cobra.Command{
		Use: "remove CELL WORKER", SuggestFor: []string{"delete", "rm"}, Short: "take a worker out of a cell's list", Args: exactly("CELL", "WORKER"), ValidArgsFunction: a.completeWorkers(),
		Long: `Take a worker out of a cell's list. Drain it before, and wait until what it does has ended:
GET /hands of a gateway shows what is in flight there.`,
		Example: "  cellway cell workers remove cell-001 w3 --dry-run\n  cellway cell workers remove cell-001 w3 --yes --reason 'hardware returned'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			id := cellway.CellID(args[0])
			list, err := cl.Workers(cmd.Context(), id)
			if err != nil {
				return err
			}
			// Nobody is asked about what can't be.
			tried, err := cl.RemoveWorker(cmd.Context(), id, args[1], client.Write{Revision: list.Revision, DryRun: true})
			if err != nil {
				return a.tooFew(cmd.Context(), cl, args, err)
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this takes worker %s out of the list of cell %s:\n", args[1], id)
				tellGoing(list, args[1]).write(a.err)
				fmt.Fprintln(a.err, tellEffect(tried.Hands, true))
			}, args[1]); err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = list.Revision
			out, err := cl.RemoveWorker(cmd.Context(), id, args[1], w)
			return a.workersChanged(out, err, fmt.Sprintf("worker %s of cell %s", args[1], id), "is out of the list", "would be out of the list")
		},
	}))
}

// tellGoing is what a person must know of a worker before it goes.
func tellGoing(l api.CellWorkers, id string) *facts {
	t := &facts{}
	for _, w := range l.Workers {
		if w.ID != id {
			continue
		}
		t.add("endpoint", "%s", w.Endpoint)
		t.add("zone", "%s", w.Zone)
		if w.Weight != nil && *w.Weight == 0 {
			t.add("weight", "%s", drainedMark)
		} else {
			t.add("weight", "not drained yet; drain it first, and what it does ends by itself")
		}
	}
	return t
}

func (a *app) workersDelete() *cobra.Command {
	return a.asking(a.keeping(&cobra.Command{
		Use: "delete CELL", Short: "take the whole list of a cell away", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Long: `Take the whole list of a cell away, and its salt with it. Gateways that have it from here
go on with the last one, and say that they get none; a new gateway has nothing to serve
from. A list that is made again has another salt, and everybody other hands.`,
		Example: "  cellway cell workers delete cell-001 --reason 'its gateways read a file again'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			id := cellway.CellID(args[0])
			list, err := cl.Workers(cmd.Context(), id)
			if err != nil {
				return err
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this takes away the list of %s of cell %s, and its salt:\n", plural(len(list.Workers), "worker", "workers"), id)
				tellWorkers(list).write(a.err)
			}, args[0]); err != nil {
				return err
			}
			w := a.write(cl)
			w.Revision = list.Revision
			if _, err := cl.DeleteWorkers(cmd.Context(), id, w); err != nil {
				return err
			}
			return a.gone(args[0], fmt.Sprintf("the list of workers of cell %s is gone", id))
		},
	}))
}
