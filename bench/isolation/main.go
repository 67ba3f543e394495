// Command isolation measures what one bad cell does to the requests of others.
//
// One router, the real program as a process of its own, stands in front of four
// cells, each a process too. Requests for three of them come at a fixed rate,
// whatever becomes of those before them, while the fourth is healthy, hangs with
// its connections open, or refuses connections; requests for it keep coming all
// the time. Windows with the fourth cell bad alternate with windows with it
// healthy, and each such pair gives one ratio. Pairs of two healthy windows say
// how far ratios of nothing at all are from 1 on this machine.
//
// A request's time begins when it was due, not when it was sent.
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
	"strings"
	"syscall"
	"time"

	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/routerd"
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
	case len(args) > 0 && args[0] == "router":
		ctx, end := proc.Parent(ctx, stdin)
		defer end()
		err = routerd.Run(ctx, args[1:], stdout, stderr)
	case len(args) > 0 && args[0] == "cell":
		ctx, end := proc.Parent(ctx, stdin)
		defer end()
		err = serveCell(ctx, args[1:])
	default:
		err = run(ctx, args, stdout, stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "isolation:", err)
		return 1
	}
	return 0
}

// A report is what is printed.
type report struct {
	Pairs    int       `json:"pairs"` // of each kind
	WindowMS int64     `json:"window_ms"`
	Rate     int       `json:"rate"`     // requests a second for the three good cells together
	BadRate  int       `json:"bad_rate"` // for the fourth
	CPUs     int       `json:"cpus"`
	Load     string    `json:"load_average,omitempty"` // of the machine, before
	Results  []verdict `json:"results"`

	Conclusive bool `json:"conclusive"` // the pairs of two healthy windows are alike
	Meets      bool `json:"meets"`      // both kinds of bad cell do
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("isolation", flag.ContinueOnError)
	fs.SetOutput(stderr)
	p := plan{}
	fs.IntVar(&p.pairs, "pairs", 7, "pairs of each kind; the budget asks for 7 or more")
	fs.DurationVar(&p.window, "window", 2500*time.Millisecond, "how long each half of a pair is measured")
	fs.IntVar(&p.rate, "rate", 900, "requests a second for the three good cells together")
	fs.IntVar(&p.badRate, "bad-rate", 200, "requests a second for the fourth")
	output := fs.String("o", "table", "table or json")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if p.pairs < 1 || p.window < 100*time.Millisecond || p.rate < 30 || p.badRate < 1 || *output != "table" && *output != "json" {
		return fmt.Errorf("give at least 1 pair, a window of 100ms, a rate of 30 and a bad-rate of 1, and -o table or json")
	}
	rep, err := measure(ctx, p, stderr)
	if err != nil {
		return err
	}
	if *output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	}
	return rep.table(stdout)
}

func (r report) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pairs of %v, %d requests a second for three cells and %d for the fourth, on %d CPUs", r.Pairs, time.Duration(r.WindowMS)*time.Millisecond, r.Rate, r.BadRate, r.CPUs)
	if r.Load != "" {
		fmt.Fprintf(&b, ", load average before %s", r.Load)
	}
	fmt.Fprintf(&b, "\n\n%-10s %10s %10s %10s %10s %10s %10s %10s %8s  %s\n", "the fourth", "p50 ms", "with it", "ratio", "p99 ms", "with it", "ratio", "added ms", "failures", "meets <= 1.1 x or + 0.5 ms")
	for _, v := range r.Results {
		meets := "yes"
		switch {
		case v.Name == same && r.Conclusive:
			meets = "(two healthy windows are alike)"
		case v.Name == same:
			meets = "(two healthy windows are not: too noisy to tell)"
		case !v.Meets:
			meets = "NO"
		}
		fmt.Fprintf(&b, "%-10s %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f %8d  %s\n",
			v.Name, v.Healthy.P50MS, v.Bad.P50MS, v.P50Ratio, v.Healthy.P99MS, v.Bad.P99MS, v.P99Ratio, v.P99AddedMS, v.Failures, meets)
	}
	b.WriteString("\nmedians over the pairs; requests for the fourth cell meanwhile:\n")
	for _, v := range r.Results {
		fmt.Fprintf(&b, "%-10s %s\n", v.Name, v.Fourth)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
