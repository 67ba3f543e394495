//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway/bench/internal/openload"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/routerd"
)

// The test binary plays the parts, and the router, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (parts()[os.Args[1]] != nil || os.Args[1] == "as" || os.Args[1] == "router") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := 0
		if os.Args[1] == "router" {
			ctx, end := proc.Parent(ctx, os.Stdin)
			code = routerd.Main(ctx, os.Args[2:], os.Stdout, os.Stderr)
			end()
		} else {
			code = start(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		}
		stop()
		os.Exit(code)
	}
	// Otherwise the race detector has each of many children sleep for a second.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A short run says nothing about the bounds of time, but every fault must be one,
// the cells that are well must not fail, and the router must live.
func TestAShortRunPlaysFaults(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out, said bytes.Buffer
	args := []string{"-rounds", "1", "-window", "300ms", "-rate", "60", "-bad-rate", "50", "-clients", "300", "-readers", "20", "-idle", "50", "-rest", "50ms", "-elsewhere", "19", "-o", "json"}
	played := []string{modeHangs, modeFull, modeFields, "silent-crowd", "slow-readers", "no-descriptors"}
	args = append(args, "-faults", strings.Join(played, ","))
	if err := run(ctx, args, []string{self, "router"}, &out, &said); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(rep.Results) != len(played) {
		t.Errorf("%d results, want %d", len(rep.Results), len(played))
	}
	for _, v := range rep.Results {
		f := faults()[slices.IndexFunc(faults(), func(f fault) bool { return f.name == v.Name })]
		if f.front == frontPlain && len(v.Failed) > 0 || v.Lost > 0 {
			t.Errorf("%s: requests of the other cells failed: %v, and %d without the fault", v.Name, v.Failed, v.Lost)
		}
		if f.spoils && f.front == frontPlain && v.Fourth[openload.OK] > 0 || len(v.Fourth) == 0 {
			t.Errorf("%s: requests of the fourth cell: %v", v.Name, v.Fourth)
		}
		if v.WithCPUMS <= 0 || v.WithoutCPUMS <= 0 {
			t.Errorf("%s: CPU time %v and %v", v.Name, v.WithoutCPUMS, v.WithCPUMS)
		}
		if b := v.Beside; findPeer(nginxName) != "" && f.front == frontPlain && (b == nil || b.WithCPUMS <= 0 || b.P99Ratio <= 0) {
			t.Errorf("%s: beside nginx %+v", v.Name, b)
		}
		if v.Before.MiB <= 0 || v.During.Descriptors == 0 || v.After.Descriptors > v.Before.Descriptors+spareDescriptors {
			t.Errorf("%s: held %v, %v, %v", v.Name, v.Before, v.During, v.After)
		}
		if v.Name == "silent-crowd" && (v.During.Descriptors < 300 || !strings.HasPrefix(v.Seen, "300 connections stood")) {
			t.Errorf("%s: %d descriptors; %s", v.Name, v.During.Descriptors, v.Seen)
		}
	}
	if len(rep.Idle) != len(idleKinds()) {
		t.Errorf("idle connections: %+v", rep.Idle)
	}
	for _, v := range rep.Idle {
		if v.Connections != 50 || v.WithMiB <= 0 {
			t.Errorf("idle connections: %+v", v)
		}
	}
	var table bytes.Buffer
	if err := rep.table(&table); err != nil || !strings.Contains(table.String(), "never-accepts") || !strings.Contains(table.String(), "cleartext") {
		t.Errorf("%v: %s", err, table.String())
	}
}

// Each mode of the fourth cell does to a request what it says.
func TestFourthCellHasTheFaultsItIsToldToHave(t *testing.T) {
	for mode, want := range map[string]string{
		modeWell: "HTTP/1.1 200 OK\r\nContent-Length: 101", modeHangs: "", modeDripsHead: "H", modeDripsBody: headOfHundred + "x", modeResets: "reset",
		modeBreaks: headOfHundred + "half", modeFields: "HTTP/1.1 200 OK\r\nX-More: xxx", modeInterim: "HTTP/1.1 103 Early", modeGarbage: garbage, modeFull: "refused",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c := &fourthCell{listener: l.(*net.TCPListener), mode: modeWell, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer context.AfterFunc(ctx, func() { l.Close() })()
			accepting := make(chan error, 1)
			go func() { accepting <- c.accept(ctx) }()
			if err := c.set(mode); err != nil {
				t.Fatal(err)
			}
			if got := askRaw(t, l.Addr().String()); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("it said %.60q, want %q", got, want)
			}
			if err := c.set(modeWell); err != nil {
				t.Fatal(err)
			}
			if got := askRaw(t, l.Addr().String()); !strings.HasSuffix(got, answered) {
				t.Errorf("when it is well again, it says %.60q", got)
			}
			cancel()
			l.Close()
			if err := <-accepting; err != nil {
				t.Error(err)
			}
		})
	}
}

// askRaw makes a request and returns what comes within a moment.
func askRaw(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 300*time.Millisecond)
	if err != nil {
		return "refused"
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, fourthRequest("/")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.LimitReader(conn, 4096))
	if errors.Is(err, syscall.ECONNRESET) && len(got) == 0 {
		return "reset"
	}
	return string(got)
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "0"}, {"-window", "1ms"}, {"-rate", "1"}, {"-bad-rate", "0"}, {"-clients", "0"}, {"-readers", "0"}, {"-idle", "-1"},
		{"-faults", "earthquake"}, {"-o", "xml"}, {"more"}, {"-none"}, {"-beside", "haproxy"}, {"-elsewhere", "20"}, {"-elsewhere", "far"},
	} {
		var said bytes.Buffer
		if code := start(t.Context(), args, nil, &said, &said); code != 1 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

func TestVerdictSaysWhichBoundsAreMissed(t *testing.T) {
	well := func(p99 float64) window {
		return window{openload.Quantiles{P50MS: 1, P99MS: p99}, 100, openload.Tally{}, openload.Tally{"cell_timeout": 1}, 10}
	}
	good := func() trial {
		return trial{first: well(10), with: well(10.9), last: well(10), before: holding{20, 30}, during: holding{40, 90}, after: holding{30, 40}}
	}
	f := fault{name: "hangs", front: frontPlain, spoils: true, moreMiB: 32}
	for _, tt := range []struct {
		name   string
		change func(*trial)
		missed string // part of what is said; "": nothing
	}{
		{"all is well", func(*trial) {}, ""},
		{"more than a tenth", func(r *trial) { r.with.P99MS = 11.2 }, "p99 of the other cells is 1.12 x"},
		{"more than a tenth, which is little", func(r *trial) { r.first, r.with, r.last = well(1), well(1.4), well(1) }, ""},
		{"a failure", func(r *trial) { r.with.failed = openload.Tally{openload.NoAnswer: 1} }, "3 of 300 requests of the other cells failed"},
		{"a failure without the fault", func(r *trial) { r.last.failed = openload.Tally{openload.NoAnswer: 1} }, "3 requests failed without"},
		{"no fault", func(r *trial) { r.with.fourth = openload.Tally{openload.OK: 2} }, "6 requests of the fourth cell went well"},
		{"memory", func(r *trial) { r.during.MiB = 53 }, "memory grew by more than 32"},
		{"memory afterwards", func(r *trial) { r.after.MiB = 53 }, "memory stayed 33 MiB higher"},
		{"descriptors", func(r *trial) { r.settled = settleIn + time.Second }, "descriptors were not free"},
	} {
		var all []trial
		for range 3 {
			one := good()
			tt.change(&one)
			all = append(all, one)
		}
		v := judge(f, all)
		if got := strings.Join(v.Missed, "; "); tt.missed == "" && got != "" || !strings.Contains(got, tt.missed) || !v.Conclusive {
			t.Errorf("%s: missed %q; %+v", tt.name, got, v)
		}
		if math.Abs(v.WithoutP99MS-all[0].first.P99MS) > 1e-9 || v.Asked != 300 {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
	noisy := good()
	noisy.last = well(12)
	if v := judge(f, []trial{noisy}); v.Conclusive {
		t.Errorf("windows without the fault differ: %+v", v)
	}
	refusing := good()
	refusing.with.failed, refusing.with.P99MS = openload.Tally{openload.NoAnswer: 5}, 100
	if v := judge(fault{front: frontFew, refused: 0.05, moreMiB: 32}, []trial{refusing}); len(v.Missed) > 0 {
		t.Errorf("refused connections: %v", v.Missed)
	}
	if missed := (report{Results: []verdict{{Missed: []string{"x"}}, {}}, Idle: []idleness{{Meets: true}, {}}}).missed(); missed != 2 {
		t.Errorf("%d missed, want 2", missed)
	}
}
