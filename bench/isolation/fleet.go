package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
	"github.com/cellway/cellway/internal/demo/proc"
)

// fleetName is the name of the fleet that is measured.
const fleetName = "isolation"

// cells is how many there are; the last of them is the one that goes bad.
const cells = 4

// A rig is a router and cells, each a process.
type rig struct {
	router *proc.Process
	url    string // of the router
	cells  []*proc.Process
	probe  *http.Client
}

// startRig starts the processes of a fleet in group, with files in dir.
func startRig(ctx context.Context, group *proc.Group, dir string) (*rig, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	free, err := fleet.FreeAddresses(cells + 2)
	if err != nil {
		return nil, err
	}
	f := &rig{url: "http://" + free[cells], probe: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	child := func(name string, args []string, ready string) *proc.Process {
		return group.Add(proc.Spec{
			Name: name, Path: self, Args: args, ReadyIn: 30 * time.Second,
			Ready: func(ctx context.Context) error { return fleet.OK(ctx, f.probe, ready, "") },
		})
	}
	for i := range cells {
		f.cells = append(f.cells, child(fmt.Sprintf("cell-%d", i+1), []string{"cell", "-listen", free[i]}, "http://"+free[i]))
	}
	settings, err := fleet.WriteMap(dir, fleetName, free[:cells])
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

// healthy waits until every cell has answered through the router for a moment.
func (f *rig) healthy(ctx context.Context) error { return fleet.Healthy(ctx, f.probe, f.url, cells) }

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
