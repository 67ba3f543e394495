package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/demo/role"
	"github.com/cellway/cellway/internal/gatewayd"
)

// handSize is how many workers are in a hand, unless an act says otherwise.
const handSize = 2

// maxWorkers is how many workers one machine is asked for.
const maxWorkers = 256

// A cell is a gateway, its workers, and the database that they share.
type cell struct {
	id      cellway.CellID
	gateway *part
	workers []*part
	names   []string // of the workers, for hands
}

// A CellStatus says how a cell is.
type CellStatus struct {
	ID      cellway.CellID
	State   proc.State    // of the gateway, or of its workers if none of them is up
	Wait    time.Duration // waiting: until the next start
	Up      int           // workers
	Workers int
}

// WorkerOf splits the name of a worker's process; worker is empty if it is another
// one's.
func WorkerOf(process string) (cell, worker string) {
	i := strings.LastIndex(process, "-w")
	if i < 0 {
		return "", ""
	}
	return process[:i], process[i+1:]
}

// addWorker prepares a process of the service: a worker of a cell, or, without a
// name, the one that all tenants share.
func (f *Fleet) addWorker(id cellway.CellID, name, dir, addr string) *part {
	args := []string{"--id", string(id), "--listen", addr, "--data", dir}
	process := string(id)
	if name != "" {
		args = append(args, "--worker", name, "--guard")
		process += "-" + name
	}
	p := &part{url: "http://" + addr, args: args}
	p.Process = f.child(process, role.Worker, args, p.url+"/healthz", proc.BackOff{First: 250 * time.Millisecond, Most: 2 * time.Second})
	return p
}

// addCell prepares a cell.
func (f *Fleet) addCell(id cellway.CellID, take func() string) (*cell, error) {
	dir, err := f.folder(string(id))
	if err != nil {
		return nil, err
	}
	c := &cell{id: id}
	for i := range f.cfg.Workers {
		name := fmt.Sprintf("w%d", i+1)
		c.names = append(c.names, name)
		c.workers = append(c.workers, f.addWorker(id, name, dir, take()))
	}
	keep := filepath.Join(dir, "workers.json")
	if err := c.writeKept(keep); err != nil {
		return nil, err
	}
	addr, admin := take(), take()
	c.gateway = &part{url: "http://" + addr, admin: "http://" + admin, args: []string{"--cell", string(id), "--listen", addr, "--admin", admin, "--control", f.ControlURL(), "--keep", keep}}
	c.gateway.Process = f.child(string(id)+"-gateway", role.Gateway, c.gateway.args, c.gateway.admin+"/readyz", quick)
	return c, nil
}

// listOf is the cell's list of workers, with hands of that size. It has no salt: who
// plays the demo twice with one seed sees the same hands.
func (c *cell) listOf(size int) api.WorkersSettings {
	in := api.WorkersSettings{Salt: new("")}
	in.Size = size
	for i, w := range c.workers {
		in.Workers = append(in.Workers, api.Worker{ID: c.names[i], WorkerSettings: api.WorkerSettings{Endpoint: w.url}})
	}
	return in
}

// writeKept writes what the cell's gateway would have kept of an earlier life, so
// that a cell starts before the control plane does. Any list of the control plane
// is newer.
func (c *cell) writeKept(file string) error {
	b, err := json.Marshal(api.ServedWorkers{Cell: c.id, Serial: 1, List: c.listOf(handSize)})
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("list of workers of %s: %w", c.id, err)
	}
	return nil
}

// putList gives the control plane the cell's list, with hands of that size.
func (f *Fleet) putList(ctx context.Context, c *cell, size int) error {
	old, err := f.api.Workers(ctx, c.id)
	if err != nil && !errors.Is(err, cellway.ErrNotFound) {
		return err
	}
	_, err = f.api.PutWorkers(ctx, c.id, c.listOf(size), client.Write{Revision: old.Revision})
	return err
}

// processes are the gateway and the workers.
func (c *cell) processes() []*part { return append([]*part{c.gateway}, c.workers...) }

// each does something to processes, all at the same time.
func each(ctx context.Context, all []*part, do func(context.Context, *part) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range all {
		g.Go(func() error { return do(ctx, p) })
	}
	return g.Wait()
}

// start returns when the workers are up, and the gateway.
func (c *cell) start(ctx context.Context) error {
	return each(ctx, c.processes(), func(ctx context.Context, p *part) error { return p.Start(ctx) })
}

func (c *cell) status() CellStatus {
	g := c.gateway.Status()
	s := CellStatus{ID: c.id, State: g.State, Wait: g.Wait, Workers: len(c.workers)}
	worst := proc.Down
	for _, w := range c.workers {
		switch st := w.Status(); st.State {
		case proc.Up:
			s.Up++
		case proc.Waiting:
			worst, s.Wait = proc.Waiting, max(s.Wait, st.Wait)
		default:
			worst = max(worst, st.State)
		}
	}
	if g.State == proc.Up && s.Up == 0 {
		s.State = worst
	}
	return s
}

func (f *Fleet) cell(id cellway.CellID) (*cell, error) {
	i := slices.IndexFunc(f.cells, func(c *cell) bool { return c.id == id })
	if i < 0 {
		return nil, fmt.Errorf("cell %q: %w", id, cellway.ErrNotFound)
	}
	return f.cells[i], nil
}

// eachOf does something to all processes of a cell.
func (f *Fleet) eachOf(ctx context.Context, id cellway.CellID, do func(context.Context, *part) error) error {
	c, err := f.cell(id)
	if err != nil {
		return err
	}
	return each(ctx, c.processes(), do)
}

// Kill implements act.Cells.
func (f *Fleet) Kill(ctx context.Context, id cellway.CellID) error {
	return f.eachOf(ctx, id, func(ctx context.Context, p *part) error { return p.Process.Kill(ctx) })
}

// Start implements act.Cells.
func (f *Fleet) Start(ctx context.Context, id cellway.CellID) error {
	return f.eachOf(ctx, id, func(ctx context.Context, p *part) error { return p.Process.Start(ctx) })
}

// Suspend implements act.Cells.
func (f *Fleet) Suspend(ctx context.Context, id cellway.CellID) error {
	return f.eachOf(ctx, id, func(_ context.Context, p *part) error { return p.Process.Suspend() })
}

// Resume implements act.Cells.
func (f *Fleet) Resume(ctx context.Context, id cellway.CellID) error {
	return f.eachOf(ctx, id, func(_ context.Context, p *part) error { return p.Process.Resume() })
}

// Deploy implements act.Cells. Half of the workers restart at a time.
func (f *Fleet) Deploy(ctx context.Context, id cellway.CellID, failPercent int) error {
	c, err := f.cell(id)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, len(c.workers)/2))
	for _, w := range c.workers {
		args := append([]string{role.Worker}, w.args...)
		if failPercent > 0 {
			args = append(args, "--release", "v2", "--fail-percent", strconv.Itoa(failPercent))
		}
		g.Go(func() error {
			w.SetArgs(args)
			return errors.Join(w.Stop(ctx), w.Process.Start(ctx))
		})
	}
	return g.Wait()
}

// Whole implements act.Workers.
func (f *Fleet) Whole() int { return f.cfg.Workers }

// Deal implements act.Workers.
func (f *Fleet) Deal(ctx context.Context, id cellway.CellID, size int) error {
	c, err := f.cell(id)
	if err != nil {
		return err
	}
	if size == 0 {
		size = len(c.workers)
	}
	if err := f.putList(ctx, c, size); err != nil {
		return err
	}
	return f.poll(ctx, fmt.Sprintf("have the gateway of %s deal hands of %d", id, size), func(ctx context.Context) error {
		s, err := f.handsOf(ctx, c, nil)
		if err == nil && s.Size != size {
			err = fmt.Errorf("it deals hands of %d: %w", s.Size, cellway.ErrNotReady)
		}
		return err
	})
}

// handsAtOnce is for how many tenants a gateway is asked at a time.
const handsAtOnce = 100

// Hands implements act.Workers.
func (f *Fleet) Hands(ctx context.Context, id cellway.CellID, tenants []cellway.TenantID) (map[cellway.TenantID][]string, error) {
	c, err := f.cell(id)
	if err != nil {
		return nil, err
	}
	all := make(map[cellway.TenantID][]string, len(tenants))
	for some := range slices.Chunk(tenants, handsAtOnce) {
		s, err := f.handsOf(ctx, c, some)
		if err != nil {
			return nil, err
		}
		for _, t := range s.Tenants {
			for _, m := range t.Members {
				if !m.Former {
					all[t.ID] = append(all[t.ID], m.ID)
				}
			}
		}
	}
	return all, nil
}

// Fared implements act.Workers.
func (f *Fleet) Fared(ctx context.Context, id cellway.CellID) (map[string]act.Fared, error) {
	c, err := f.cell(id)
	if err != nil {
		return nil, err
	}
	s, err := f.handsOf(ctx, c, nil)
	all := make(map[string]act.Fared, len(s.Workers))
	for _, w := range s.Workers {
		all[w.ID] = act.Fared{Attempts: w.Attempts, Trouble: w.Failed - w.Late + w.Passed}
	}
	return all, err
}

// handsOf asks a gateway's admin listener for the hands of tenants.
func (f *Fleet) handsOf(ctx context.Context, c *cell, tenants []cellway.TenantID) (s gatewayd.Status, err error) {
	q := url.Values{}
	for _, t := range tenants {
		q.Add("tenant", string(t))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.gateway.admin+"/hands?"+q.Encode(), nil)
	if err != nil {
		return s, err
	}
	res, err := f.probe.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s, fmt.Errorf("GET %s/hands: %s", c.gateway.admin, res.Status)
	}
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// Restart implements act.Workers.
func (f *Fleet) Restart(ctx context.Context, id cellway.CellID) error {
	c, err := f.cell(id)
	if err != nil {
		return err
	}
	return each(ctx, c.workers, func(ctx context.Context, w *part) error {
		if w.Status().State == proc.Up {
			return nil
		}
		return errors.Join(w.Process.Kill(ctx), w.Process.Start(ctx)) // it waits for nothing then
	})
}
