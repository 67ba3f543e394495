//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
	"github.com/cellway/cellway/internal/demo/proc"
)

// fleetName is the name of the fleet that is measured.
const fleetName = "faults"

// cells is how many there are; the last of them is the one that has faults.
const cells = 4

// keptConnections is how many unused connections to each cell a router keeps.
const keptConnections = 16

// fewDescriptors is what a router has that is to run out of them.
const fewDescriptors = 512

// A rig is the cells and what starts routers before them, each a process.
type rig struct {
	group  *proc.Group
	dir    string
	self   string
	router []string // the program, and arguments that come first
	cells  []string // addresses
	fourth string   // URL where its mode is set
	crowds string   // URL where crowds are called
	client *http.Client
}

// newRig starts the cells in group, with files in dir.
// What would be on other machines runs as elsewhere says: see runAs.
func newRig(ctx context.Context, group *proc.Group, dir string, router []string, elsewhere string) (*rig, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	free, err := fleet.FreeAddresses(cells + 2)
	if err != nil {
		return nil, err
	}
	r := &rig{
		group: group, dir: dir, self: self, router: router, cells: free[:cells], fourth: "http://" + free[cells], crowds: "http://" + free[cells+1],
		client: &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	for i, addr := range r.cells[:cells-1] {
		if err := r.child(fmt.Sprintf("cell-%d", i+1), []string{self, "cell", "-listen", addr}, "http://"+addr).Start(ctx); err != nil {
			return nil, err
		}
	}
	// What goes wrong would be elsewhere, so it goes without a processor where
	// others need it.
	fourth := []string{self, "as", "0", elsewhere, self, "fourth", "-listen", r.cells[cells-1], "-control", free[cells]}
	if err := r.child("fourth", fourth, r.fourth).Start(ctx); err != nil {
		return nil, err
	}
	crowd := []string{self, "as", "0", elsewhere, self, "crowd", "-control", free[cells+1]}
	return r, r.child("crowd", crowd, r.crowds).Start(ctx)
}

func (r *rig) child(name string, command []string, ready string) *proc.Process {
	return r.group.Add(r.spec(name, command, func(ctx context.Context) error { return fleet.OK(ctx, r.client, ready, "") }))
}

func (r *rig) spec(name string, command []string, ready func(context.Context) error) proc.Spec {
	return proc.Spec{Name: name, Path: command[0], Args: command[1:], ReadyIn: 30 * time.Second, Ready: ready}
}

// become has the fourth cell do what mode says from now on.
func (r *rig) become(ctx context.Context, mode string) error {
	_, err := r.tell(ctx, r.fourth+"/"+mode, "")
	return err
}

// tell makes a PUT and returns what the answer says.
func (r *rig) tell(ctx context.Context, url, body string) (said string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("PUT %s: %s: %s", url, res.Status, text)
	}
	return string(text), err
}

// A front is a router of the rig.
type front struct {
	process   *proc.Process
	pid       int // of its first and, hopefully, only run
	addr, tls string
	url       string
}

// start starts a router with more settings. It has at most so many descriptors,
// if that isn't 0.
func (r *rig) start(ctx context.Context, name string, descriptors int, more ...string) (*front, error) {
	free, err := fleet.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	settings, err := fleet.WriteMap(dir, fleetName, r.cells)
	if err != nil {
		return nil, err
	}
	cert, key, err := fleet.Certificate()
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := os.WriteFile(certFile, cert, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		return nil, err
	}
	args := append(r.router[1:len(r.router):len(r.router)], settings...)
	args = append(args, "--listen", free[0], "--listen-tls", free[1], "--tls-cert", certFile, "--tls-key", keyFile, "--admin", free[2],
		"--log-level", "error", "--drain-wait", "0s", "--drain-timeout", "1s")
	args = append(args, more...)
	args = append([]string{r.self, "as", strconv.Itoa(descriptors), "", r.router[0]}, args...)
	f := &front{process: r.child(name, args, "http://"+free[2]+"/readyz"), addr: free[0], tls: free[1], url: "http://" + free[0]}
	if err := f.process.Start(ctx); err != nil {
		return nil, err
	}
	f.pid = f.process.Status().Pid
	return f, fleet.Healthy(ctx, r.client, f.url, cells)
}

// bounded are the settings by which all that a faulty cell goes through fits into
// a window: its requests pile up to the limit, wait for a place, come too late,
// and the breaker opens.
func bounded() []string {
	return []string{
		"--cell-in-flight", "64", "--cell-idle-connections", strconv.Itoa(keptConnections), "--cell-connect-timeout", "500ms", "--cell-first-byte-timeout", "500ms", "--breaker-max-backoff", "1s",
		"--stream-idle-timeout", "1s", "--request-timeout", "3s",
	}
}
