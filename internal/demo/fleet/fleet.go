// Package fleet runs the demo's fleet, each part of it a process of its own.
//
// There are a control plane, routers and cells, each of these a gateway and its
// workers, on this machine, all from the same executable.
//
// It is what the acts are played on: every deed is a signal to a process, or a
// request to the control plane's API, as an operator's would be. Nothing
// reaches into a process.
//
// Routers get their maps through a mirror in this process that can damage
// them; see [Fleet.CorruptMap].
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/routemap"
)

// Name is the name of the demo's fleet.
const Name = "demo"

// SharedName is who answers for the one process that all tenants share.
const SharedName cellway.CellID = "shared"

// TenantHeader is where the demo's fleet finds the key of a request.
const TenantHeader = "X-Tenant-Id"

// A Config says how large a fleet is and where it lives.
type Config struct {
	Dir     string             // for all files; must exist
	Path    string             // the executable that plays every part
	Cells   int                // if zero, 4; at least 2
	Workers int                // of each cell; if zero, 8; at least 2
	Routers int                // if zero, 2
	Tenants []cellway.TenantID // to register
	Log     *slog.Logger       // if nil, discarded
	Changed func(proc.Status)  // told of every change of a process, if not nil; must not block
}

// A Fleet is a running fleet. It is an act.Fleet.
type Fleet struct {
	cfg    Config
	group  *proc.Group
	mirror *mirror
	api    *client.Client
	probe  *http.Client
	ring   routemap.Keyring

	trusted string // the keyring's file, for routers
	mended  string // the change of the last MendMap; acts are played one at a time

	control *proc.Process
	routers []*part
	cells   []*cell
	shared  *part

	mu    sync.Mutex
	owner func(cellway.TenantID) cellway.CellID // by the newest map that was asked for
	edits int                                   // numbers the changes that only make a new version
	admit map[cellway.CellID]uint8              // what was last set; if not there, 100
}

// A part is a process that serves requests at a fixed address.
type part struct {
	*proc.Process
	url   string
	admin string // of a router or a gateway: the base URL of its admin listener
	args  []string
}

// New prepares a fleet: addresses, keys and folders. Nothing runs yet.
func New(cfg Config) (*Fleet, error) {
	if cfg.Cells == 0 {
		cfg.Cells = 4
	}
	if cfg.Routers == 0 {
		cfg.Routers = 2
	}
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Cells < 2 || cfg.Cells > 64 || cfg.Routers < 1 || cfg.Routers > 8 {
		return nil, fmt.Errorf("a fleet of %d cells and %d routers: give 2 to 64 cells and 1 to 8 routers: %w", cfg.Cells, cfg.Routers, cellway.ErrInvalid)
	}
	if cfg.Workers < handSize || cfg.Workers > 32 || cfg.Cells*cfg.Workers > maxWorkers {
		return nil, fmt.Errorf("%d workers in each of %d cells: give %d to 32, and at most %d in all: %w", cfg.Workers, cfg.Cells, handSize, maxWorkers, cellway.ErrInvalid)
	}
	f := &Fleet{
		cfg:   cfg,
		admit: make(map[cellway.CellID]uint8),
		probe: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	f.group = proc.New(proc.Config{Dir: cfg.Dir, Log: cfg.Log, Changed: cfg.Changed})
	free, err := freeAddresses(cfg.Cells*(cfg.Workers+2) + 2*cfg.Routers + 3)
	if err != nil {
		return nil, err
	}
	take := func() (addr string) {
		addr, free = free[0], free[1:]
		return addr
	}
	if err := f.addControl(take(), take()); err != nil {
		return nil, err
	}
	for i := range cfg.Cells {
		c, err := f.addCell(cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), take)
		if err != nil {
			return nil, err
		}
		f.cells = append(f.cells, c)
	}
	dir, err := f.folder(string(SharedName))
	if err != nil {
		return nil, err
	}
	f.shared = f.addWorker(SharedName, "", dir, take())
	for i := range cfg.Routers {
		p, err := f.addRouter(fmt.Sprintf("router-%d", i+1), take(), take())
		if err != nil {
			return nil, err
		}
		f.routers = append(f.routers, p)
	}
	return f, nil
}

// quick is how soon a process that died starts again, unless it is a worker: these
// are to stay down long enough to be missed.
var quick = proc.BackOff{First: 50 * time.Millisecond, Most: time.Second}

// child adds a process that plays a role and is ready when url answers 200.
func (f *Fleet) child(name, role string, args []string, url string, again proc.BackOff) *proc.Process {
	return f.group.Add(proc.Spec{
		Name: name, Path: f.cfg.Path, Args: append([]string{role}, args...),
		Ready:   func(ctx context.Context) error { return f.ok(ctx, url) },
		StopIn:  5 * time.Second,
		BackOff: again,
	})
}

// ok returns nil if a GET is answered 200.
func (f *Fleet) ok(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := f.probe.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return nil
}

func (f *Fleet) folder(name string) (string, error) {
	dir := filepath.Join(f.cfg.Dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("folder of %s: %w", name, err)
	}
	return dir, nil
}

// Run keeps the fleet's processes until ctx ends; then it ends them and
// returns. Up brings them up.
func (f *Fleet) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.group.Run(ctx) })
	g.Go(func() error { return f.mirror.Run(ctx) })
	err := g.Wait()
	f.api.Close()
	return err
}

// Up brings up control plane, cells and routers, registers cells and
// tenants, and returns when every cell answers through every router.
func (f *Fleet) Up(ctx context.Context) error {
	g, starting := errgroup.WithContext(ctx)
	for _, c := range f.cells {
		g.Go(func() error { return c.start(starting) })
	}
	g.Go(func() error { return f.control.Start(starting) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("start the fleet: %w", err)
	}
	if err := f.register(ctx); err != nil {
		return fmt.Errorf("register the fleet: %w", err)
	}
	g, starting = errgroup.WithContext(ctx)
	for _, r := range f.routers {
		g.Go(func() error { return r.Process.Start(starting) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("start the fleet: %w", err)
	}
	if _, err := f.Owners(ctx); err != nil {
		return err
	}
	return f.Settle(ctx)
}

// Cells returns the ids of the fleet's cells.
func (f *Fleet) Cells() []cellway.CellID {
	var ids []cellway.CellID
	for _, c := range f.cells {
		ids = append(ids, c.id)
	}
	return ids
}

// Home returns what the load goes to: the routers.
func (f *Fleet) Home() load.Stack {
	var s load.Stack
	for _, r := range f.routers {
		s.Endpoints = append(s.Endpoints, r.url)
	}
	return s
}

// ControlURL returns the address of the control plane's API.
func (f *Fleet) ControlURL() string { return f.api.URL() }

// Statuses returns how each cell is, and how each other process: routers, then the
// control plane.
func (f *Fleet) Statuses() (cells []CellStatus, others []proc.Status) {
	for _, c := range f.cells {
		cells = append(cells, c.status())
	}
	for _, r := range f.routers {
		others = append(others, r.Status())
	}
	return cells, append(others, f.control.Status())
}

// Admit returns the share of a cell's keys, in percent, that routers let
// through, as far as it was set here.
func (f *Fleet) Admit(id cellway.CellID) uint8 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if admit, set := f.admit[id]; set {
		return admit
	}
	return 100
}

// RestartRouters implements act.Routers.
func (f *Fleet) RestartRouters(ctx context.Context) error {
	for _, r := range f.routers {
		if err := errors.Join(r.Stop(ctx), r.Process.Start(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// StartShared implements act.Shared.
func (f *Fleet) StartShared(ctx context.Context) (string, cellway.CellID, error) {
	return f.shared.url, SharedName, f.shared.Process.Start(ctx)
}

// KillShared implements act.Shared.
func (f *Fleet) KillShared(ctx context.Context) error { return f.shared.Kill(ctx) }
