package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/routemap"
)

// fleetName is the name of the fleet that is measured.
const fleetName = "isolation"

// cells is how many there are; the last of them is the one that goes bad.
const cells = 4

// A fleet is a router and cells, each a process.
type fleet struct {
	router *proc.Process
	url    string // of the router
	cells  []*proc.Process
	probe  *http.Client
}

// tenants is how many each cell has: a breaker opens only for the trouble of
// more than one.
const tenants = 8

// tenant returns the n-th tenant of cell i, whatever n is.
func tenant(i, n int) string { return fmt.Sprintf("tenant-%d-%d", i+1, n%tenants+1) }

// startFleet starts the processes of a fleet in group, with files in dir.
func startFleet(ctx context.Context, group *proc.Group, dir string) (*fleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	free, err := freeAddresses(cells + 2)
	if err != nil {
		return nil, err
	}
	f := &fleet{url: "http://" + free[cells], probe: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	child := func(name string, args []string, ready string) *proc.Process {
		return group.Add(proc.Spec{
			Name: name, Path: self, Args: args, ReadyIn: 30 * time.Second,
			Ready: func(ctx context.Context) error { return f.ok(ctx, ready, "") },
		})
	}
	for i := range cells {
		f.cells = append(f.cells, child(fmt.Sprintf("cell-%d", i+1), []string{"cell", "-listen", free[i]}, "http://"+free[i]))
	}
	settings, err := writeMap(dir, free[:cells])
	if err != nil {
		return nil, err
	}
	admin := free[cells+1]
	// All that a bad cell goes through fits into a window: its requests pile up
	// to the limit, wait for a place, come too late, and the breaker opens.
	args := append([]string{"router", "--listen", free[cells], "--admin", admin, "--log-level", "warn", "--drain-wait", "0s",
		"--cell-in-flight", "64", "--cell-first-byte-timeout", "500ms", "--breaker-max-backoff", "1s"}, settings...)
	f.router = child("router", args, "http://"+admin+"/readyz")
	for _, p := range append(f.cells, f.router) {
		if err := p.Start(ctx); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// ok returns nil if a GET, as a tenant unless that is "", is answered 200.
func (f *fleet) ok(ctx context.Context, url, tenant string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if tenant != "" {
		req.Header.Set("X-Tenant-Id", tenant)
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

// healthy waits until every cell has answered through the router for a moment.
func (f *fleet) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not within 30 seconds"))
	defer cancel()
	for well := 0; well < 5; {
		well++
		for i := range cells {
			if err := f.ok(ctx, f.url, tenant(i, well)); err != nil {
				well = 0
				if ctx.Err() != nil {
					return fmt.Errorf("cell %d does not answer: %w (%w)", i+1, err, context.Cause(ctx))
				}
			}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeMap writes a signed map that gives each cell its tenants, and returns the
// router's settings for it.
func writeMap(dir string, addrs []string) (settings []string, err error) {
	c := routemap.Content{Settings: routemap.Settings{
		Fleet: fleetName, Mapping: routemap.Full, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}},
	}}
	for i, addr := range addrs {
		id := cellway.CellID(fmt.Sprintf("cell-%03d", i+1))
		c.Cells = append(c.Cells, cellway.Cell{ID: id, Endpoints: []string{"http://" + addr}, State: cellway.CellActive, Admit: 100})
		for n := range tenants {
			c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(tenant(i, n)), Cell: id})
		}
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	_, v, err := routemap.Publish(m, routemap.Publication{Version: 1, CreatedAt: time.Now(), Signers: []routemap.Signer{routemap.LocalSigner(private)}})
	if err != nil {
		return nil, err
	}
	file, keyring, state := filepath.Join(dir, "fleet.map"), filepath.Join(dir, "keyring"), filepath.Join(dir, "state")
	if err := errors.Join(os.WriteFile(file, v.Archive(), 0o600), os.WriteFile(keyring, routemap.Keyring{{Key: public}}.Format(), 0o600), os.Mkdir(state, 0o700)); err != nil {
		return nil, err
	}
	return []string{"--fleet", fleetName, "--source", file, "--keyring", keyring, "--state-dir", state}, nil
}

// serveCell answers all requests alike until ctx ends.
func serveCell(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("cell", flag.ContinueOnError)
	addr := fs.String("listen", "", "`address`")
	if err := fs.Parse(args); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	answer := []byte("an answer of some hundred bytes, as services give them when all is well and there is not much to say\n")
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(answer) // a client that is gone needs none
	})}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// freeAddresses returns n loopback addresses where nobody listens, with ports
// below those of outgoing connections: one of these could otherwise take the
// port of a cell that is down.
func freeAddresses(n int) (found []string, err error) {
	const low, high = 10_000, 12_000
	for _, offset := range rand.Perm(high - low) {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(low+offset))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // in use
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if found = append(found, addr); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("found %d free ports from %d to %d, of %d needed", len(found), low, high, n)
}
