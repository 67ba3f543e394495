//go:build unix

// Command shuffle measures dealers of hands side by side.
//
// Beside package shuffle stand the dealer of Kubernetes' API server, the ring of
// Grafana's dskit, and a port of a Python snippet that is often quoted. All run
// in one process and in turns, so that what disturbs one disturbs all; figures are
// medians of CPU time over the rounds.
//
// Beside these stand ours that promise an overlap, which nobody else does: algebraic hands, and a
// registry in memory and in a file.
//
// It also counts how even the hands are, and what one worker more does to them.
// The exit code is 1 if a budget is missed.
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
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "shuffle:", err)
		stop()
		os.Exit(1)
	}
}

// A shape is of what a cell is and how large its hands are.
type shape struct {
	Workers int `json:"workers"`
	Zones   int `json:"zones"`
	Hand    int `json:"hand"`
}

func (s shape) String() string {
	text := fmt.Sprintf("%d of %d workers", s.Hand, s.Workers)
	if s.Zones > 1 {
		text += fmt.Sprintf(" in %d zones", s.Zones)
	}
	return text
}

// shapes are those of the table; the budgets are for the first.
var shapes = []shape{{100, 1, 5}, {100, 3, 5}, {1000, 1, 5}, {2048, 1, 4}}

// A report is all that is printed.
type report struct {
	CPUs     int        `json:"cpus"`
	Go       string     `json:"go"`
	Rounds   int        `json:"rounds"`
	Speeds   []speed    `json:"speeds"`
	Promised []promised `json:"promised"`
	Evens    []even     `json:"evenness"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("shuffle", flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 9, "windows of each dealer")
	window := fs.Duration("window", 30*time.Millisecond, "length of a window, in CPU time")
	tenants := fs.Int("tenants", 20_000, "tenants to count the hands of")
	output := fs.String("o", "table", "table or json")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *window <= 0 || *tenants < 1000 || *output != "table" && *output != "json" {
		return errors.New("want -rounds of at least 1, a positive -window, -tenants of at least 1000, -o table or json")
	}
	r := report{CPUs: runtime.NumCPU(), Go: runtime.Version(), Rounds: *rounds}
	for _, s := range shapes {
		speeds, err := race(ctx, s, *rounds, *window)
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		r.Speeds = append(r.Speeds, speeds...)
	}
	var err error
	if r.Promised, err = promise(ctx, *rounds, *window); err != nil {
		return err
	}
	for _, p := range peers {
		if p.likeAnother {
			continue
		}
		e, err := count(ctx, p, shapes[0], *tenants)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.Evens = append(r.Evens, e)
	}
	if *output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return err
		}
	} else if err := r.print(stdout); err != nil {
		return err
	}
	var missed []string
	for _, s := range r.Speeds {
		if !s.Meets {
			missed = append(missed, fmt.Sprintf("%s takes %.0f ns and %.0f allocations", s.Dealer, s.NS, s.Allocs))
		}
	}
	for _, p := range r.Promised {
		if !p.Meets {
			missed = append(missed, fmt.Sprintf("%s takes %.0f ns and %.0f allocations", p.Way, p.NS, p.Allocs))
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("over budget: %s", strings.Join(missed, "; "))
	}
	return nil
}

// print writes r as tables.
func (r report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d CPUs, %s, CPU time, medians over %d rounds\n", r.CPUs, r.Go, r.Rounds)
	for i, s := range r.Speeds {
		if i == 0 || s.shape != r.Speeds[i-1].shape {
			fmt.Fprintf(t, "\nhand of %v\tns\tleast\tmost\tallocations\tx first\tbudget\n", s.shape)
		}
		budget := ""
		if s.BudgetNS > 0 {
			budget = fmt.Sprintf("%.0f ns, 0 allocations: %s", s.BudgetNS, verdict(s.Meets))
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%s\n", s.Dealer, s.NS, s.Least, s.Most, s.Allocs, s.Ratio, budget)
	}
	printPromised(t, r.Promised)
	fmt.Fprintf(t, "\nhands of %v\tworkers' counts\t\tpairs' counts\t\tmembers that change with one worker more\n", shapes[0])
	fmt.Fprintf(t, "\tchi-square, of %d\tdeviations\tchi-square, of %d\tdeviations\tat 100\tat 127\n", shapes[0].Workers-1, pairsDF(shapes[0].Workers))
	for _, e := range r.Evens {
		fmt.Fprintf(t, "%s\t%.0f\t%+.1f\t%.0f\t%+.1f\t%.3f\t%.3f\n", e.Dealer, e.Workers, e.WorkersZ, e.Pairs, e.PairsZ, e.ChangeAt100, e.ChangeAt127)
	}
	fmt.Fprintln(t, "\ndeviations: how many standard deviations from what chance gives; beyond 4 is bias")
	return t.Flush()
}

// median returns the middle of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
