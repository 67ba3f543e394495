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
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cellway/cellway/internal/demo/proc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := start(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start plays a part, if one is named, or measures.
func start(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var err error
	switch {
	case len(args) > 0 && parts()[args[0]] != nil:
		ctx, end := proc.Parent(ctx, stdin)
		defer end()
		err = parts()[args[0]](ctx, args[1:])
	case len(args) > 3 && args[0] == "as":
		err = runAs(args[1], args[2], args[3:])
	default:
		err = run(ctx, args, nil, stdout, stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "faults:", err)
		return 1
	}
	return 0
}

// parts are what this program plays in processes of their own.
func parts() map[string]func(ctx context.Context, args []string) error {
	return map[string]func(context.Context, []string) error{"cell": serveCell, "fourth": serveFourth, "crowd": serveCrowd}
}

// A plan says how much is measured.
type plan struct {
	rounds        int
	window        time.Duration
	rate, badRate int
	clients       int           // of a crowd that says nothing
	readers       int           // that don't read
	idle          int           // connections whose memory is measured
	rest          time.Duration // before it is
	faults        []fault
	router        []string // the program, and arguments that come first
	peer          string   // the program that faults are played on, too; "": none
	elsewhere     string   // how runs what would be on other machines
}

// ranFirst is set in the environment of a process that -first has become.
const ranFirst = "CELLWAY_FAULTS_FIRST"

// run measures as args say. The router is the given one, or that of -router, or
// is built.
func run(ctx context.Context, args, router []string, stdout, stderr io.Writer) (err error) {
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	fs.SetOutput(stderr)
	p := plan{router: router}
	fs.IntVar(&p.rounds, "rounds", 5, "rounds, in each of which every fault has its turn; the budget asks for 7 or more")
	fs.DurationVar(&p.window, "window", 2*time.Second, "length of each window; each fault has one, between two without it")
	fs.IntVar(&p.rate, "rate", 600, "requests a second for the three cells that are well together")
	fs.IntVar(&p.badRate, "bad-rate", 100, "requests a second for the fourth")
	fs.IntVar(&p.clients, "clients", 10_000, "connections of a crowd of clients")
	fs.IntVar(&p.readers, "readers", 200, "clients that don't read their answers")
	fs.IntVar(&p.idle, "idle", 10_000, "idle connections whose memory is measured; 0 leaves it out")
	fs.DurationVar(&p.rest, "rest", 2*time.Second, "how long these rest before")
	beside := fs.String("beside", nginxName, "nginx, or none: what is played the same faults in the same rounds")
	fs.StringVar(&p.elsewhere, "elsewhere", idly, "how runs what would be on other machines: idle, with what processors have left over, or a `nice` value")
	before := fs.Bool("first", false, "run before all else that the machine does, as root, but for what -elsewhere says: for a machine that others use, too")
	only := fs.String("faults", "", "names of faults, with commas; empty: all; none: only -idle")
	path := fs.String("router", "", "`program` to measure as the router, instead of building the checkout's")
	enforce := fs.Bool("enforce", false, "exit with code 1 if a bound is missed")
	output := fs.String("o", "table", "table or json")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if p.rounds < 1 || p.window < 100*time.Millisecond || p.rate < 30 || p.badRate < 1 || p.clients < 1 || p.readers < 1 || p.idle < 0 || fs.NArg() > 0 || *output != "table" && *output != "json" {
		return errors.New("give at least 1 round, a window of 100ms, a rate of 30, a bad-rate of 1, 1 of clients and readers, no negative idle, -o table or json, and nothing after the flags")
	}
	if p.faults, err = chooseFaults(*only); err != nil {
		return err
	}
	if *before && os.Getenv(ranFirst) == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return errors.Join(os.Setenv(ranFirst, "1"), runAs("0", first, append([]string{self}, args...)))
	}
	switch *beside {
	case nginxName:
		if p.peer = findPeer(nginxName); p.peer == "" {
			fmt.Fprintln(stderr, "nginx is not here, so nothing says what faults cost the machine whatever is in front")
		}
	case "none":
	default:
		return fmt.Errorf("-beside %q is neither nginx nor none", *beside)
	}
	if n, err := strconv.Atoi(p.elsewhere); p.elsewhere != idly && (err != nil || n < 0 || n > 19) {
		return fmt.Errorf("-elsewhere %q is neither idle nor a nice value from 0 to 19", p.elsewhere)
	}
	dir, err := os.MkdirTemp("", "cellway-faults-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	switch {
	case p.router != nil:
	case *path != "":
		p.router = []string{*path}
	default:
		built := filepath.Join(dir, "cellway-router")
		if err := build(ctx, built); err != nil {
			return err
		}
		p.router = []string{built}
	}
	rep, failed := measure(ctx, p, dir, stderr)
	if failed != nil && len(rep.Results) == 0 {
		return failed
	}
	if *output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(rep)
	} else {
		err = rep.table(stdout)
	}
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if missed := rep.missed(); *enforce && missed > 0 {
		return fmt.Errorf("%d bounds are missed", missed)
	}
	return nil
}

// build builds the router of the checkout that this runs in.
func build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/cellway/cellway/cmd/cellway-router")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the router: %w; run this inside the checkout\n%s", err, out)
	}
	return nil
}

// chooseFaults returns the faults with these names.
func chooseFaults(names string) (chosen []fault, err error) {
	all := faults()
	switch names {
	case "":
		return all, nil
	case "none":
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == strings.TrimSpace(name) })
		if i < 0 {
			var known []string
			for _, f := range all {
				known = append(known, f.name)
			}
			return nil, fmt.Errorf("fault %q is not known; give some of %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
