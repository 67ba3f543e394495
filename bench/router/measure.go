//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// A plan says what is measured, and how.
type plan struct {
	workloads   []workload
	connections []int
	rounds      int
	warm        time.Duration // before each window
	window      time.Duration
	keys        int   // in the map
	sizes       []int // of other maps, of the router alone
	core        int   // of the proxy
	others      []int // of the generator and the cells
	nice        int   // of all of them
}

// A bench has what all measurements share: the cells, the map, the certificate.
type bench struct {
	plan   plan
	dir    string
	maps   map[int]mapping // by how many keys they have
	cells  *process
	stderr io.Writer
}

// A run is what one measurement gave.
type run struct {
	Round       int     `json:"round,omitempty"`
	CPUMicros   float64 `json:"cpu_us_per_request"`
	PerSecond   float64 `json:"requests_per_second"`
	P50Millis   float64 `json:"p50_ms"`
	P99Millis   float64 `json:"p99_ms"`
	PeakMiB     float64 `json:"peak_mib"`
	Busy        float64 `json:"busy"`      // share of the window in which the proxy ran
	Others      float64 `json:"others"`    // share in which something else had its core
	Strangers   float64 `json:"strangers"` // share of all cores' time that neither the proxy nor the generator nor the cells took, but something else
	LoggedShare float64 `json:"logged_share,omitempty"`
}

// newBench writes the files that all proxies read, and starts the cells.
func newBench(ctx context.Context, p plan, dir string, stderr io.Writer) (*bench, error) {
	addrs, err := fleet.FreeAddresses(cells)
	if err != nil {
		return nil, err
	}
	b := &bench{plan: p, dir: dir, maps: map[int]mapping{}, stderr: stderr}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := writeCertificate(in("cert.pem"), in("key.pem"), in("both.pem")); err != nil {
		return nil, err
	}
	for _, keys := range append(p.sizes, p.keys) {
		m := mapping{tenants(keys), addrs}
		if err := m.write(b.mapDir(keys)); err != nil {
			return nil, err
		}
		b.maps[keys] = m
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if b.cells, err = launch("cells", place{p.others, p.nice}, in("cells.out"), nil, append([]string{self, "cells"}, addrs...)...); err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		all := b.maps[p.keys].tenants
		t := all[slices.IndexFunc(all, func(t tenantNumber) bool { return t.cell() == i })]
		if err := b.cells.awaitAnswers(ctx, addr, []tenantNumber{t}); err != nil {
			b.cells.stop()
			return nil, err
		}
	}
	return b, nil
}

// mapDir is the folder of a map with so many keys.
func (b *bench) mapDir(keys int) string { return filepath.Join(b.dir, fmt.Sprintf("map-%d", keys)) }

// measure starts a proxy, puts load on it, and stops it.
func (b *bench) measure(ctx context.Context, s subject, w workload, connections, round int) (r run, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %s, %d connections: %w", s.Name, w.Name, connections, err)
		}
	}()
	scratch, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(scratch)
	addrs, err := fleet.FreeAddresses(3)
	if err != nil {
		return r, err
	}
	in := func(name string) string { return filepath.Join(b.dir, name) }
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return r, err
	}
	most := slices.Max(b.plan.connections)
	set := settings{
		Fleet: fleetName, Dir: scratch, Plain: addrs[0], TLS: addrs[1], Admin: addrs[2],
		Idle: most, Clients: 2 * (most + 64), Sockets: 4 * (most + 64), Files: min(files.Max, 65536),
		Cert: in("cert.pem"), Key: in("key.pem"), Both: in("both.pem"), Root: os.Geteuid() == 0, Fields: s.fields,
	}
	if w.Logged {
		set.AccessLog = s.logOf(scratch)
	}
	all := b.maps[s.Keys]
	for i, addr := range all.cells {
		set.Cells = append(set.Cells, namedCell{cellName(i), addr})
	}
	set.Map = b.mapDir(s.Keys)
	if err := os.Mkdir(filepath.Join(scratch, "state"), 0o700); err != nil {
		return r, err
	}
	p, err := s.start(place{[]int{b.plan.core}, b.plan.nice}, set, scratch)
	if err != nil {
		return r, err
	}
	defer p.stop()
	if err := p.awaitAnswers(ctx, set.Plain, all.tenants); err != nil {
		return r, err
	}
	pids, err := family(p.cmd.Process.Pid)
	if err != nil {
		return r, err
	}
	spec := loadSpec{Workload: w.Name, Addr: set.Plain, Connections: connections, Keys: s.Keys, Warm: b.plan.warm, Window: b.plan.window, Processes: pids, Core: b.plan.core, Beside: []int{b.cells.cmd.Process.Pid}}
	if w.tls {
		spec.Addr, spec.Roots = set.TLS, set.Cert
	}
	got, err := b.load(ctx, spec)
	if err != nil {
		return r, fmt.Errorf("%w\nit said: %s\nthe cells said: %s", err, p.said(), b.cells.said())
	}
	peak, err := peakMemory(pids)
	if err != nil {
		return r, err
	}
	p.stop()
	r = run{
		Round:     round,
		CPUMicros: float64(got.CPU.Nanoseconds()) / 1000 / float64(got.Requests),
		PerSecond: float64(got.Requests) / got.Window.Seconds(),
		P50Millis: float64(got.P50.Microseconds()) / 1000,
		P99Millis: float64(got.P99.Microseconds()) / 1000,
		PeakMiB:   float64(peak) / (1 << 20),
		Busy:      got.CPU.Seconds() / got.Window.Seconds(),
		Others:    max(got.Core-got.CPU, 0).Seconds() / got.Window.Seconds(),
		Strangers: max(got.Machine-got.Ours, 0).Seconds() / got.Window.Seconds() / float64(runtime.NumCPU()),
	}
	if w.Logged && !w.socket { // of a WebSocket there is one line, when it ends
		text, err := os.ReadFile(set.AccessLog)
		if err != nil {
			return r, err
		}
		r.LoggedShare = min(float64(bytes.Count(text, []byte("\n")))/float64(got.All), 1)
	}
	return r, nil
}

// load runs a generator as a process of its own.
func (b *bench) load(ctx context.Context, spec loadSpec) (got loadResult, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, spec.Warm+spec.Window+30*time.Second, errors.New("the generator did not end in time"))
	defer cancel()
	text, err := json.Marshal(spec)
	if err != nil {
		return got, err
	}
	self, err := os.Executable()
	if err != nil {
		return got, err
	}
	cmd := exec.CommandContext(ctx, self, "load", string(text))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := (place{b.plan.others, b.plan.nice}).start(cmd); err != nil {
		cancel()
		if cmd.Process != nil {
			_ = cmd.Wait() // it was ended
		}
		return got, fmt.Errorf("start the generator: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return got, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return got, json.Unmarshal(out.Bytes(), &got)
}
