package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/strictjson"
	"github.com/cellway/cellway/internal/workers"
	"github.com/spf13/cobra"
)

// A workersFile is a list as a gateway's file has it, or as list -o json shows it.
// What only the latter has changes nothing, but Cell and Revision are kept to.
type workersFile struct {
	api.WorkersSettings
	Cell      cellway.CellID   `json:"cell"`
	Revision  cellway.Revision `json:"revision"`
	Drained   map[string]int   `json:"drained"`
	Salted    bool             `json:"salted"`
	Version   string           `json:"version"`
	Serial    cellway.Version  `json:"serial"`
	ChangedAt time.Time        `json:"changed_at"`
}

// readWorkers reads a list, and holds it to the rules of gateways before anybody is
// asked anything.
func readWorkers(text []byte, id cellway.CellID) (f workersFile, err error) {
	if err := strictjson.Decode(text, &f); err != nil {
		return f, fmt.Errorf("it is no list of workers in JSON: %w", err)
	}
	if f.Cell != "" && f.Cell != id {
		return f, fmt.Errorf("it is the list of cell %s; take \"cell\" and \"revision\" out of it if cell %s is to have the same", f.Cell, id)
	}
	plain, err := json.Marshal(f.WorkersSettings)
	if err != nil {
		return f, err
	}
	l, err := workers.Decode(plain)
	if err == nil {
		_, err = l.Check()
	}
	return f, err
}

func (a *app) workersApply() *cobra.Command {
	var file string
	c := a.asking(a.keeping(&cobra.Command{
		Use: "apply CELL -f FILE", SuggestFor: []string{"put", "replace", "import", "edit"}, Short: "give a cell its list of workers, from a file", Args: exactly("CELL"), ValidArgsFunction: first(a.completeCells()),
		Long: `Give a cell its list of workers, or put another in its place. The file has the form that
a gateway reads by --workers-file:

  {"size": 2, "workers": [
    {"id": "w1", "endpoint": "http://10.0.0.1:8080", "zone": "a"},
    {"id": "w2", "endpoint": "http://10.0.0.2:8080", "zone": "b"}]}

What list -o json shows will do, too: then it is refused if the list has changed since.
Without a salt in the file the salt stays as it is, and a new list gets one drawn. If
workers go, or most tenants would lose a member of their hand, it asks.`,
		Example: "  cellway cell workers apply cell-001 -f workers.json --dry-run\n" +
			"  cellway cell workers list cell-001 -o json > list.json; vi list.json; cellway cell workers apply cell-001 -f list.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			id := cellway.CellID(args[0])
			text, err := a.readFileOrIn(cmd.Context(), file)
			if err != nil {
				return err
			}
			f, err := readWorkers(text, id)
			if err != nil {
				return boot.UsageError{Err: fmt.Errorf("%s: %w", nameOfFile(file), err)}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			return a.applyWorkers(cmd.Context(), cl, id, f)
		},
	}))
	c.Flags().StringVarP(&file, "file", "f", "", "the list, in JSON; - is standard input")
	require(c, "file")
	return c
}

// readFileOrIn reads a file, or standard input as -.
func (a *app) readFileOrIn(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return a.readIn(ctx)
	}
	return readFile(ctx, file)
}

func nameOfFile(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// applyWorkers tries the list first, and asks if it destroys something.
func (a *app) applyWorkers(ctx context.Context, cl *client.Client, id cellway.CellID, f workersFile) error {
	old, err := cl.Workers(ctx, id)
	switch {
	case errors.Is(err, cellway.ErrNotFound):
		if _, err := cl.Cell(ctx, id); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	w := a.write(cl)
	if w.Revision = old.Revision; f.Revision != 0 {
		w.Revision = f.Revision
	}
	a.leaves = nil
	a.leaving("worker", workerIDs(old.Workers), workerIDs(f.Workers))
	write := func(w client.Write) (api.CellWorkersChange, error) {
		out, err := cl.PutWorkers(ctx, id, f.WorkersSettings, w)
		if old.Revision == 0 {
			out.Hands = nil // everybody gets a first hand
		}
		return out, err
	}
	out, err := a.changeHands(ctx, w, string(id), write)
	return a.workersChanged(out, err, "the list of workers of cell "+string(id), "is written", "would be written")
}

// changeHands tries a write first, and asks if workers go, or if it would take a
// member out of the hands of most tenants.
func (a *app) changeHands(ctx context.Context, w client.Write, word string, write func(client.Write) (api.CellWorkersChange, error)) (api.CellWorkersChange, error) {
	if a.yes {
		return write(w)
	}
	try := w
	try.DryRun = true
	tried, err := write(try)
	if err != nil {
		return tried, err
	}
	if h := tried.Hands; len(a.leaves) > 0 || h != nil && h.Losing > h.Tenants/2 {
		if err := a.sure(ctx, func() {
			a.tellLeaving(a.err)
			fmt.Fprintln(a.err, tellEffect(tried.Hands, true))
		}, word); err != nil {
			return tried, err
		}
	}
	if a.dryRun {
		return tried, nil
	}
	return write(w)
}

func workerIDs(all []api.Worker) (ids []string) {
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	return ids
}

// workersChanged tells what a write of a list did, and what that does to hands.
func (a *app) workersChanged(out api.CellWorkersChange, err error, what, is, would string) error {
	if err != nil {
		return err
	}
	return a.show(out, func() {
		if out.DryRun {
			fmt.Fprintln(a.out, "dry run: nothing has changed")
			is = would
		}
		if out.Unchanged {
			fmt.Fprintf(a.out, "%s: nothing is left to do, it is so already\n", what)
			return
		}
		fmt.Fprintf(a.out, "%s %s\n", what, is)
		a.tellLeaving(a.out)
		drained := 0
		for _, w := range out.Workers {
			if w.Weight != nil && *w.Weight == 0 {
				drained++
			}
		}
		count := plural(len(out.Workers), "worker", "workers")
		if drained > 0 {
			count += fmt.Sprintf(", %d of them drained", drained)
		}
		fmt.Fprintf(a.out, "cell %s: %s, hands %s\n", out.Cell, count, tellHands(out.HandSettings))
		if out.Hands != nil {
			fmt.Fprintln(a.out, tellEffect(out.Hands, out.DryRun))
		}
		if out.DryRun {
			a.tellCommand()
			return
		}
		fmt.Fprintf(a.out, "gateways with --workers-control take it at their next look: hands %s\n", shortVersion(out.Version))
	})
}

// shortVersion is the version of hands for people: the method, if it begins with one,
// and enough of the digest to tell it from others.
func shortVersion(version string) string {
	digest := strings.LastIndexByte(version, '-') + 1
	return version[:digest] + fmt.Sprintf("%.12s…", version[digest:])
}

// tellEffect says how many tenants get other workers.
func tellEffect(e *api.HandsEffect, would bool) string {
	if e == nil {
		return ""
	}
	of := strconv.Itoa(e.Tenants)
	switch {
	case e.MadeUp:
		of += " made-up ones, as none is registered"
	case e.Tenants >= 10_000:
		of = "the first " + of
	}
	share := func(n int) string {
		return fmt.Sprintf("%.1f %% of the cell's tenants (%d of %s)", 100*float64(n)/float64(max(e.Tenants, 1)), n, of)
	}
	verb := ""
	if would {
		verb = "would "
	}
	most := ""
	if e.Most > 1 {
		most = fmt.Sprintf(", up to %d", e.Most)
	}
	switch {
	case e.Losing == 0 && e.Gaining == 0 && would:
		return "nobody's hand would change"
	case e.Losing == 0 && e.Gaining == 0:
		return "nobody's hand changes"
	case e.Losing == e.Gaining:
		return share(e.Losing) + " " + verb + "get another worker in their hand" + most
	case e.Losing == 0:
		return share(e.Gaining) + " " + verb + "get a larger hand"
	case e.Gaining == 0:
		return share(e.Losing) + " " + verb + "lose a worker of their hand" + most
	}
	return fmt.Sprintf("%s %slose a worker of their hand%s, and %.1f %% (%d) %sget a new one, or more", share(e.Losing), verb, most,
		100*float64(e.Gaining)/float64(max(e.Tenants, 1)), e.Gaining, verb)
}
