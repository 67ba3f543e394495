//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/routerd"
)

// The test binary plays the cells, the generator and the router, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"cells", "load", "--config", "-version"}, os.Args[1]) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := 0
		if os.Args[1] == "cells" || os.Args[1] == "load" {
			code = start(ctx, os.Args[1:], os.Stdout, os.Stderr)
		} else {
			code = routerd.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
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

// A short run says nothing about the budgets, but every workload must go well
// through the router, and through those peers that are installed.
func TestAShortRunMeasuresEveryWorkload(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("the proxy needs a core for itself")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, said bytes.Buffer
	if code := start(ctx, []string{
		"-router", self, "-router-args", "second: --max-fields 100", "-subjects", "router,nginx,haproxy", "-workloads", "small+log,large,body,tls,http2,websocket",
		"-connections", "3", "-rounds", "1", "-seconds", "0.05", "-warm-seconds", "0.02", "-keys", "50", "-sizes", "8", "-o", "json",
	}, &out, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if want := 6 * len(rep.Subjects); len(rep.Results) != want || len(rep.Subjects)+len(rep.Skipped) != 6 {
		t.Fatalf("%d results of %+v, skipped %v", len(rep.Results), rep.Subjects, rep.Skipped)
	}
	for _, r := range rep.Results {
		m := r.Median
		if len(r.Runs) != 1 || m.CPUMicros <= 0 || m.PerSecond <= 0 || m.P50Millis <= 0 || m.P99Millis < m.P50Millis || m.PeakMiB < 1 || r.Ratios[routerName] <= 0 {
			t.Errorf("%+v", r)
		}
		if r.Workload == "small+log" && m.LoggedShare == 0 {
			t.Errorf("%s wrote no access log", r.Subject)
		}
	}
}

// A router that refuses what it is sent fails the run.
func TestAnErrorFailsTheRun(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("the proxy needs a core for itself")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := start(t.Context(), []string{
		"-router", self, "-router-args", "broken: --max-body 1KiB", "-subjects", "", "-workloads", "body",
		"-connections", "2", "-rounds", "1", "-seconds", "0.05", "-warm-seconds", "0", "-keys", "50",
	}, io.Discard, &said); code != 1 || !bytes.Contains(said.Bytes(), []byte("broken, body, 2 connections")) {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-workloads", "tiny"},
		{"-connections", "0"},
		{"-connections", "8,many"},
		{"-subjects", "envoy"},
		{"-sizes", "100,100"},
		{"-router-args", "--no-name"},
		{"-router-args", "nginx: --x"},
		{"-rounds", "0"},
		{"-seconds", "0"},
		{"-core", "4096"},
		{"-nice", "20"},
		{"-o", "xml"},
		{"more"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestCPUTimeCountsWhatIsSpent(t *testing.T) {
	pids := []int{os.Getpid()}
	before, err := cpuTime(pids)
	if err != nil {
		t.Fatal(err)
	}
	var own syscall.Rusage
	for used := time.Duration(0); used < 20*time.Millisecond; {
		for range 10_000 {
			runtime.KeepAlive(pids)
		}
		after, err := cpuTime(pids)
		if err != nil {
			t.Fatal(err)
		}
		used = after - before
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	all := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if now, err := cpuTime(pids); err != nil || now < all/2 || now > all*2+50*time.Millisecond {
		t.Errorf("the clock says %v, getrusage %v (%v)", now, all, err)
	}
}

func TestAPeerThatCannotBeHadSaysWhy(t *testing.T) {
	if path, err := (workshop{stderr: io.Discard}).peer(t.Context(), "no-such-proxy"); err == nil || err.Error() != "it is not installed" {
		t.Errorf("%q, %v", path, err)
	}
}
