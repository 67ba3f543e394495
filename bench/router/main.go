//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start plays a part, if one is named, or measures.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == "cells":
		err = serveCells(ctx, args[1:], stderr)
	case len(args) == 2 && args[0] == "load":
		err = playLoad(ctx, args[1], stdout)
	default:
		err = measureAll(ctx, args, stdout, stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "router:", err)
		return 1
	}
	return 0
}

func playLoad(ctx context.Context, text string, stdout io.Writer) error {
	var spec loadSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	got, err := generate(ctx, spec)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(got)
}

// An options value is the command line.
type options struct {
	plan       plan
	subjects   []string
	variants   map[string][]string // routers with more arguments, by name
	names      []string            // of the variants, as given
	routerPath string
	install    bool
	enforce    bool
	output     string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("router", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.variants = map[string][]string{}
	subjects := fs.String("subjects", "router,nginx,haproxy,caddy", "proxies to measure, with commas")
	fs.Func("router-args", "`\"NAME: ARGUMENTS\"` measure the router with more arguments too, under that name; may be given more than once", func(s string) error {
		name, args, err := parseRouterArgs(s)
		if err == nil && !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
		o.variants[name] = args
		return err
	})
	fs.StringVar(&o.routerPath, "router", "", "`program` to measure as the router, instead of building the checkout's")
	loads := fs.String("workloads", "small,small+log,large,body,tls,http2,websocket", "workloads, with commas; each may end in +log for one with an access log; all is every one, both ways")
	connections := fs.String("connections", "8,64,512", "numbers of connections, with commas")
	fs.IntVar(&o.plan.rounds, "rounds", 5, "rounds, in each of which every proxy has its turn")
	seconds := fs.Float64("seconds", 1.5, "length of a window")
	warm := fs.Float64("warm-seconds", 0.5, "load before each window")
	fs.IntVar(&o.plan.keys, "keys", 10_000, "keys in the map")
	sizes := fs.String("sizes", "", "numbers of keys, with commas: measure the router with maps of these sizes too")
	fs.IntVar(&o.plan.core, "core", 0, "the proxy's core; the generator and the cells have the others")
	fs.IntVar(&o.plan.nice, "nice", 0, "nice value of the proxy, the generator and the cells, as -15 on a machine that others use too; below 0 takes root")
	fs.BoolVar(&o.install, "install", false, "install Debian's packages of nginx and HAProxy if they are missing, as root with apt-get")
	fs.BoolVar(&o.enforce, "enforce", false, "exit with code 1 if a budget is missed, or can't be called met as the machine was busy")
	fs.StringVar(&o.output, "o", "table", "table or json")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if o.plan.workloads, err = parseWorkloads(*loads); err != nil {
		return o, err
	}
	if o.plan.connections, err = numbers(*connections, 1, 4096); err != nil {
		return o, fmt.Errorf("-connections: %w", err)
	}
	if *sizes != "" {
		if o.plan.sizes, err = numbers(*sizes, cells, mostKeys); err != nil {
			return o, fmt.Errorf("-sizes: %w", err)
		}
		o.plan.sizes = slices.DeleteFunc(o.plan.sizes, func(n int) bool { return n == o.plan.keys })
	}
	for name := range strings.SplitSeq(*subjects, ",") {
		name = strings.TrimSpace(name)
		if name != "" && !slices.Contains(known(), name) {
			return o, fmt.Errorf("proxy %q is not known; known are %s", name, strings.Join(known(), ", "))
		}
		if name != "" && !slices.Contains(o.subjects, name) {
			o.subjects = append(o.subjects, name)
		}
	}
	for _, name := range o.names {
		if slices.Contains(known(), name) {
			return o, fmt.Errorf("a router with more arguments needs a name of its own; %q is taken", name)
		}
	}
	o.plan.window, o.plan.warm = time.Duration(*seconds*float64(time.Second)), time.Duration(*warm*float64(time.Second))
	if o.plan.rounds < 1 || o.plan.window < 50*time.Millisecond || o.plan.warm < 0 || o.plan.keys < cells || o.plan.keys > mostKeys || o.plan.nice < -20 || o.plan.nice > 19 || fs.NArg() > 0 || o.output != "table" && o.output != "json" {
		return o, fmt.Errorf("give at least 1 round, 0.05 seconds, %d to %d keys, a nice value from -20 to 19, -o table or json, and nothing after the flags", cells, mostKeys)
	}
	for i := range runtime.NumCPU() {
		if i != o.plan.core {
			o.plan.others = append(o.plan.others, i)
		}
	}
	if len(o.plan.others) == 0 || o.plan.core < 0 || o.plan.core >= runtime.NumCPU() {
		return o, fmt.Errorf("the proxy needs a core for itself: give -core 0 to %d, on a machine with two or more", runtime.NumCPU()-1)
	}
	return o, nil
}

// mostKeys is how many keys a map may have here.
const mostKeys = 5_000_000

// numbers reads different numbers with commas between them.
func numbers(s string, least, most int) (all []int, err error) {
	for one := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(one))
		if err != nil || n < least || n > most || slices.Contains(all, n) {
			return nil, fmt.Errorf("%q: give different numbers from %d to %d, with commas", s, least, most)
		}
		all = append(all, n)
	}
	return all, nil
}

func measureAll(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cellway-bench-router-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rep := report{
		Skipped: map[string]string{}, Rounds: o.plan.rounds, WindowMS: o.plan.window.Milliseconds(), Keys: o.plan.keys,
		CPU: processor(), CPUs: runtime.NumCPU(),
	}
	if err := gather(ctx, o, dir, &rep, stderr); err != nil {
		return err
	}
	rep.Load = fleet.LoadAverage()
	b, err := newBench(ctx, o.plan, dir, stderr)
	if err != nil {
		return err
	}
	defer b.cells.stop()
	if rep.Results, err = b.rounds(ctx, rep.Subjects); err != nil {
		return err
	}
	rep.Verdicts = append(judge(rep.Results, rep.routers()), judgeSizes(rep.Results, rep.Subjects)...)
	if o.output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(rep)
	} else {
		err = rep.table(stdout)
	}
	if missed, unclear := rep.missed(); err == nil && o.enforce && missed+unclear > 0 {
		err = fmt.Errorf("%d of %d budgets are missed", missed, len(rep.Verdicts))
		if unclear > 0 {
			err = fmt.Errorf("%w, and %d can't be called met, as the machine was busy", err, unclear)
		}
	}
	return err
}

// gather finds, builds or installs the subjects, and says which are skipped.
func gather(ctx context.Context, o options, dir string, rep *report, stderr io.Writer) error {
	shop, err := newWorkshop(ctx, o.install, stderr)
	if err != nil {
		return err
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	path := o.routerPath
	if path == "" && (slices.Contains(o.subjects, routerName) || len(o.names) > 0) {
		if path, err = shop.router(ctx, dir); err != nil {
			return err
		}
	}
	for _, name := range o.subjects {
		if name == routerName {
			rep.Subjects = append(rep.Subjects, routerSubject(name, path, o.plan.keys, nil))
			for _, keys := range o.plan.sizes {
				rep.Subjects = append(rep.Subjects, routerSubject(fmt.Sprintf("%s/%d", name, keys), path, keys, nil))
			}
			continue
		}
		found, err := shop.peer(ctx, name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			rep.Skipped[name] = err.Error()
			fmt.Fprintf(stderr, "skipped %s: %v\n", name, err)
			continue
		}
		rep.Subjects = append(rep.Subjects, peerSubject(name, found, o.plan.keys, home))
	}
	for _, name := range o.names {
		rep.Subjects = append(rep.Subjects, routerSubject(name, path, o.plan.keys, o.variants[name]))
		for _, keys := range o.plan.sizes {
			rep.Subjects = append(rep.Subjects, routerSubject(fmt.Sprintf("%s/%d", name, keys), path, keys, o.variants[name]))
		}
	}
	if len(rep.Subjects) == 0 {
		return errors.New("there is no proxy to measure")
	}
	return nil
}

func (r report) routers() (names []string) {
	for _, s := range r.Subjects {
		if s.router && s.Keys == r.Keys {
			names = append(names, s.Name)
		}
	}
	return names
}

// rounds measures everything, once in each round. The proxies follow each other
// closely, and a different one is first each time.
func (b *bench) rounds(ctx context.Context, subjects []subject) ([]result, error) {
	type point struct {
		workload, connections, subject int
	}
	runs := map[point][]run{}
	began := time.Now()
	for round := range b.plan.rounds {
		for w, load := range b.plan.workloads {
			for c, connections := range b.plan.connections {
				for i := range subjects {
					s := (i + round) % len(subjects)
					one, err := b.measure(ctx, subjects[s], load, connections, round+1)
					if err != nil {
						return nil, err
					}
					at := point{w, c, s}
					runs[at] = append(runs[at], one)
				}
			}
		}
		fmt.Fprintf(b.stderr, "measured %d of %d rounds in %v\n", round+1, b.plan.rounds, time.Since(began).Round(time.Second))
	}
	var all []result
	for w, load := range b.plan.workloads {
		for c, connections := range b.plan.connections {
			for s := range subjects {
				all = append(all, summarize(load, connections, subjects[s].Name, runs[point{w, c, s}]))
			}
		}
	}
	relate(all)
	return all, nil
}
