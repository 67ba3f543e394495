//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed" // for the peer's settings
	"os"
	"os/exec"
	"path/filepath"
	"text/template"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// nginxName is the peer that faults are played on beside the router: what they
// cost there is what they cost the machine.
const nginxName = "nginx"

//go:embed nginx.conf
var nginxSettings string

// findPeer returns the program of a peer, "" if it isn't here.
func findPeer(name string) string {
	for _, one := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(one); err == nil {
			return path
		}
	}
	return ""
}

// A peerPlan is what the template of a peer's settings is given.
type peerPlan struct {
	Dir, Listen string
	Root        bool
	Idle, Most  int
	Cells       []peerCell
	Tenants     []peerTenant
}

type peerCell struct{ Name, Addr string }

type peerTenant struct{ Name, Cell string }

// startPeer starts nginx, with the router's map and limits as far as it has such,
// in front of the rig's cells.
func (r *rig) startPeer(ctx context.Context, path string) (*front, error) {
	free, err := fleet.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.dir, nginxName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	p := peerPlan{Dir: dir, Listen: free[0], Root: os.Geteuid() == 0, Idle: keptConnections, Most: 16_384}
	for i, addr := range r.cells {
		cell := string(fleet.CellID(i))
		p.Cells = append(p.Cells, peerCell{cell, addr})
		for n := range fleet.Tenants {
			p.Tenants = append(p.Tenants, peerTenant{fleet.Tenant(i, n), cell})
		}
	}
	text, err := template.New(nginxName).Parse(nginxSettings)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := text.Execute(&b, p); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return nil, err
	}
	f := &front{addr: free[0], url: "http://" + free[0], process: r.group.Add(r.spec(nginxName, []string{path, "-c", file, "-p", dir}, func(ctx context.Context) error {
		return fleet.OK(ctx, r.client, "http://"+free[0], fleet.Tenant(0, 0))
	}))}
	if err := f.process.Start(ctx); err != nil {
		return nil, err
	}
	f.pid = f.process.Status().Pid
	return f, fleet.Healthy(ctx, r.client, f.url, cells)
}
