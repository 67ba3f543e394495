//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/shuffle"
)

// A promised is what it takes to deal a hand of which two share no more than so
// many workers. No peer promises that.
type promised struct {
	Way      string  `json:"way"`
	NS       float64 `json:"ns"` // for a hand; the median
	Least    float64 `json:"least_ns"`
	Most     float64 `json:"most_ns"`
	Allocs   float64 `json:"allocations"`
	BudgetNS float64 `json:"budget_ns,omitempty"`
	Meets    bool    `json:"meets"`
}

// registered is how many tenants hold a hand before a registry is timed.
const registered = 100_000

// synced is how many hands are dealt into a file.
const synced = 200

// promise times the ways that keep a limit of two shared workers.
func promise(ctx context.Context, rounds int, window time.Duration) ([]promised, error) {
	var all []promised
	for _, d := range []struct {
		name string
		make func() (shuffle.Design, error)
	}{
		{"Steiner quadruples, 4 of 2048", func() (shuffle.Design, error) { return shuffle.NewQuadruples(2048) }},
		{"Reed-Solomon, 4 of 2048 in 4 zones", func() (shuffle.Design, error) { return shuffle.NewReedSolomon(4, 512, 2) }},
		{"Reed-Solomon, 5 of 505 in 5 zones", func() (shuffle.Design, error) { return shuffle.NewReedSolomon(5, 101, 2) }},
	} {
		design, err := d.make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		seats, i, hands := make([]int, 0, 8), uint64(0), design.Hands()
		p, err := alone(ctx, d.name, 50, rounds, window, func(string) {
			i = (i + 0x9e3779b97f4a7c15) % hands
			seats = design.AppendSeats(seats[:0], i)
		})
		if err != nil {
			return nil, err
		}
		p.Meets = p.Meets && p.Allocs == 0
		all = append(all, p)
	}
	snap, err := snapshot(shape{2048, 1, 4})
	if err != nil {
		return nil, err
	}
	p, err := inMemory(ctx, snap, rounds, window)
	if err != nil {
		return nil, err
	}
	all = append(all, p)
	if p, err = onDisk(ctx, snap); err != nil {
		return nil, err
	}
	return append(all, p), nil
}

// alone times one way by itself.
func alone(ctx context.Context, name string, budget float64, rounds int, window time.Duration, deal func(tenant string)) (promised, error) {
	names := make([]string, hot)
	d := dealer{deal: deal}
	var took []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return promised{}, err
		}
		ns, err := timed(d, names, window)
		if err != nil {
			return promised{}, err
		}
		took = append(took, ns)
	}
	p := promised{Way: name, NS: median(took), Least: slices.Min(took), Most: slices.Max(took), Allocs: allocations(d, names), BudgetNS: budget}
	p.Meets = p.NS <= budget
	return p, nil
}

// inMemory deals to tenants after the first hundred thousand.
func inMemory(ctx context.Context, s *shuffle.Snapshot, rounds int, window time.Duration) (promised, error) {
	r, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: new(shuffle.MemRegistry), Overlap: 2})
	if err != nil {
		return promised{}, err
	}
	n, failed := 0, error(nil)
	deal := func(string) {
		if _, err := r.Deal(ctx, s, "tenant-"+strconv.Itoa(n)); err != nil {
			failed = err
		}
		n++
	}
	for range registered {
		deal("")
	}
	p, err := alone(ctx, "registry in memory, 4 of 2048, from 100,000 tenants on", 10_000, rounds, window, deal)
	if failed != nil {
		return promised{}, failed
	}
	return p, err
}

// onDisk deals into a file, by the clock on the wall: most of it is waiting for
// the disk.
func onDisk(ctx context.Context, s *shuffle.Snapshot) (_ promised, err error) {
	dir, err := os.MkdirTemp("", "cellway-bench-")
	if err != nil {
		return promised{}, err
	}
	defer os.RemoveAll(dir)
	store, err := sqlitestore.OpenRegistry(ctx, filepath.Join(dir, "hands.db"), sqlitestore.Options{Create: true})
	if err != nil {
		return promised{}, err
	}
	defer func() {
		if e := store.Close(); err == nil {
			err = e
		}
	}()
	r, err := shuffle.NewRegistry(ctx, shuffle.RegistryConfig{Store: store, Overlap: 2})
	if err != nil {
		return promised{}, err
	}
	took := make([]float64, synced)
	for i := range took {
		began := time.Now()
		if _, err := r.Deal(ctx, s, "tenant-"+strconv.Itoa(i)); err != nil {
			return promised{}, err
		}
		took[i] = float64(time.Since(began).Nanoseconds())
	}
	return promised{Way: "registry in SQLite, synced, by the wall clock", NS: median(took), Least: slices.Min(took), Most: slices.Max(took), Meets: true}, nil
}

// printPromised writes the table.
func printPromised(t *tabwriter.Writer, all []promised) {
	fmt.Fprintf(t, "\nno two share more than 2\tns\tleast\tmost\tallocations\tbudget\n")
	for _, p := range all {
		budget, allocations := "", "-"
		if p.BudgetNS > 0 {
			budget, allocations = fmt.Sprintf("%.0f ns: %s", p.BudgetNS, verdict(p.Meets)), fmt.Sprintf("%.0f", p.Allocs)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%s\t%s\n", p.Way, p.NS, p.Least, p.Most, allocations, budget)
	}
}

func verdict(meets bool) string {
	if meets {
		return "yes"
	}
	return "NO"
}
