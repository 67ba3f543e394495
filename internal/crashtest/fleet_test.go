package crashtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/controld"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/routemap"
)

const (
	fleetName    = "crash"
	tenantHeader = "X-Tenant-Id"
	buckets      = 256
	numCells     = 4
	numRouters   = 2
)

// A fleet is a control plane and routers, each a process, and cells in this
// one.
type fleet struct {
	store   string // the control plane's file
	ring    routemap.Keyring
	control *proc.Process
	routers []*routerProcess
	cells   []cellway.CellID
	api     *client.Client
	group   *proc.Group
	probe   *http.Client
}

type routerProcess struct {
	*proc.Process
	url, admin string
}

// newFleet starts a fleet, registers its cells, and takes it down when the test
// ends.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	dir := t.TempDir()
	f := &fleet{store: filepath.Join(dir, "fleet.db"), probe: &http.Client{Timeout: time.Minute}}
	f.group = proc.New(proc.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- f.group.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		f.probe.CloseIdleConnections()
		if t.Failed() {
			for _, p := range f.group.Children() {
				t.Logf("--- the end of %s\n%s", p.Status().Name, p.Tail(15))
			}
		}
	})
	signing := filepath.Join(dir, "signing.pem")
	must(t, controld.NewKeyFile(signing, rand.Reader))
	signer, err := controld.ReadKeyFile(signing)
	must(t, err)
	f.ring = routemap.Keyring{{Key: signer.Public()}}
	keyring := filepath.Join(dir, "keyring")
	must(t, os.WriteFile(keyring, f.ring.Format(), 0o600))

	addrs := freeAddresses(t, 1+2*numRouters)
	control := addrs[0]
	f.control = f.child("control", []string{"control", "--listen", control, "--store", f.store, "--key", signing, "--init", "--log-level", "warn"}, "http://"+control+"/readyz")
	f.api, err = client.New(client.Config{URL: "http://" + control, UserAgent: "crashtest"})
	must(t, err)
	t.Cleanup(f.api.Close)
	must(t, f.control.Start(t.Context()))
	f.register(t)
	for i := range numRouters {
		name := fmt.Sprintf("router-%d", i+1)
		state := filepath.Join(dir, name)
		must(t, os.Mkdir(state, 0o700))
		listen, admin := addrs[1+2*i], addrs[2+2*i]
		p := f.child(name, []string{"router", "--fleet", fleetName, "--source", "http://" + control, "--keyring", keyring, "--state-dir", state,
			"--router-id", name, "--listen", listen, "--admin", admin, "--explain-headers", "--log-level", "warn", "--drain-wait", "0s"}, "http://"+admin+"/readyz")
		f.routers = append(f.routers, &routerProcess{p, "http://" + listen, "http://" + admin})
		must(t, p.Start(t.Context()))
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// child adds a process that is ready when url answers 200.
func (f *fleet) child(name string, args []string, url string) *proc.Process {
	return f.group.Add(proc.Spec{
		Name: name, Path: os.Args[0], Args: args, ReadyIn: 2 * time.Minute, StopIn: 30 * time.Second,
		Ready: func(ctx context.Context) error { return f.get(ctx, url, nil) },
	})
}

// get asks for url and decodes the answer, unless into is nil.
func (f *fleet) get(ctx context.Context, url string, into any) error {
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
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// status asks a router what it serves.
func (f *fleet) status(ctx context.Context, r *routerProcess) (s feed.Status, err error) {
	return s, f.get(ctx, r.admin+"/map", &s)
}

// register makes a fleet in which owners may change freely: so pins send tenants
// from cell to cell, and a router with a wrong map is found out. It is strict:
// each tenant has an entry.
func (f *fleet) register(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := f.api.PutFleet(ctx, api.FleetSettings{
		Name: fleetName, Mapping: "buckets", Buckets: buckets, Strict: true, Stateless: true,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: tenantHeader}},
	}, client.Write{})
	must(t, err)
	for i := range numCells {
		id := cellway.CellID(fmt.Sprintf("cell-%03d", i+1))
		f.cells = append(f.cells, id)
		_, err := f.api.PutCell(ctx, id, api.CellSettings{Endpoints: []string{startCell(t, id)}, State: cellway.CellActive, Guard: cellway.GuardIdentity}, client.Write{})
		must(t, err)
	}
	_, err = f.api.AssignBuckets(ctx, api.BucketAssignment{}, client.Write{})
	must(t, err)
}

// A said is what a cell answers.
type said struct {
	Cell  cellway.CellID `json:"cell"`
	Key   cellway.Key    `json:"key"`
	Epoch cellway.Epoch  `json:"epoch"`
}

// startCell serves a cell behind its guard: it says who it is, and what the
// router said of the request.
func startCell(t *testing.T, id cellway.CellID) string {
	t.Helper()
	serve := func(w http.ResponseWriter, r *http.Request) {
		who, ok := guard.FromContext(r.Context())
		if !ok {
			http.Error(w, "no identity", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(said{who.Cell, who.Key, who.Epoch}) // a client that is gone needs no answer
	}
	h, err := guard.Handler(guard.Config{Cell: id, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, http.HandlerFunc(serve))
	must(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// freeAddresses returns n loopback addresses where nobody listens, with ports
// below those of outgoing connections, one of which could otherwise take the
// port of a control plane that is down.
func freeAddresses(t *testing.T, n int) (found []string) {
	t.Helper()
	const low, high = 12_000, 20_000
	taken := map[int]bool{}
	for range 100 * n {
		port := low + mathrand.IntN(high-low)
		if taken[port] {
			continue
		}
		taken[port] = true
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // in use
		}
		l.Close()
		if found = append(found, addr); len(found) == n {
			return found
		}
	}
	t.Fatalf("no %d free ports from %d to %d", n, low, high)
	return nil
}

// A sighting is a version at a router.
type sighting struct {
	router  int
	version cellway.Version
}

// A watcher asks the routers, again and again, which map they serve.
type watcher struct {
	fleet *fleet

	mu      sync.Mutex
	version [numRouters]cellway.Version // served now
	digests map[cellway.Version]routemap.Digest
	first   map[sighting]time.Time // when it was first seen
	faults  []string
}

func newWatcher(f *fleet) *watcher {
	return &watcher{fleet: f, digests: map[cellway.Version]routemap.Digest{}, first: map[sighting]time.Time{}}
}

const watchEvery = 20 * time.Millisecond

func (w *watcher) run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range w.fleet.routers {
		all.Go(func() {
			tick := time.NewTicker(watchEvery)
			defer tick.Stop()
			for {
				s, err := w.fleet.status(ctx, w.fleet.routers[i])
				if ctx.Err() != nil {
					return
				}
				w.note(i, s, err)
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
}

// note keeps what a router said of itself.
func (w *watcher) note(i int, s feed.Status, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fault := func(format string, args ...any) {
		w.faults = append(w.faults, fmt.Sprintf("router-%d: ", i+1)+fmt.Sprintf(format, args...))
	}
	if err != nil {
		fault("%v", err)
		return
	}
	if s.Version < w.version[i] {
		fault("its map fell from %v to %v", w.version[i], s.Version)
	}
	if d, known := w.digests[s.Version]; known && d != s.Digest {
		fault("two maps have the version %v: %v and %v", s.Version, d, s.Digest)
	}
	for reason, n := range s.Refusals {
		if n > 0 {
			fault("it refused %d maps as %s: %v", n, reason, s.Refused)
		}
	}
	w.version[i], w.digests[s.Version] = s.Version, s.Digest
	if at := (sighting{i, s.Version}); w.first[at].IsZero() {
		w.first[at] = time.Now()
	}
}

// reached reports whether every router serves at least v.
func (w *watcher) reached(v cellway.Version) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, served := range w.version {
		if served < v {
			return false
		}
	}
	return true
}
