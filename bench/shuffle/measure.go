//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// hot is how many tenants take turns while dealers are timed.
const hot = 512

// A speed is what one dealer takes for one shape.
type speed struct {
	shape
	Dealer   string  `json:"dealer"`
	NS       float64 `json:"ns"` // for a hand; the median
	Least    float64 `json:"least_ns"`
	Most     float64 `json:"most_ns"`
	Allocs   float64 `json:"allocations"` // for a hand
	Ratio    float64 `json:"x_first"`     // the median of the ratios within a round
	BudgetNS float64 `json:"budget_ns,omitempty"`
	Meets    bool    `json:"meets"`
}

// race times all peers for shape s, in another order each round.
func race(ctx context.Context, s shape, rounds int, window time.Duration) ([]speed, error) {
	tenants := make([]string, hot)
	for i := range tenants {
		tenants[i] = fmt.Sprint("tenant-", i)
	}
	dealers := make([]dealer, len(peers))
	for i, p := range peers {
		d, end, err := p.start(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		defer end()
		for _, tenant := range tenants { // warm up, and fill caches
			d.deal(tenant)
		}
		dealers[i] = d
	}
	r := rand.New(rand.NewPCG(1, 1))
	all := make([][]float64, len(peers))
	ratios := make([][]float64, len(peers))
	for range rounds {
		took := make([]float64, len(peers))
		for _, i := range r.Perm(len(peers)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var err error
			if took[i], err = timed(dealers[i], tenants, window); err != nil {
				return nil, err
			}
		}
		for i := range peers {
			all[i] = append(all[i], took[i])
			ratios[i] = append(ratios[i], took[i]/took[0])
		}
	}
	var speeds []speed
	for i, p := range peers {
		sp := speed{
			shape: s, Dealer: p.name, NS: median(all[i]), Least: slices.Min(all[i]), Most: slices.Max(all[i]),
			Allocs: allocations(dealers[i], tenants), Ratio: median(ratios[i]), Meets: true,
		}
		if s == shapes[0] && p.budget > 0 {
			sp.BudgetNS, sp.Meets = p.budget, sp.NS <= p.budget && sp.Allocs == 0
		}
		speeds = append(speeds, sp)
	}
	return speeds, nil
}

// timed returns the nanoseconds of CPU time that a hand takes, over a window of
// it. The collector's work for the dealer is in it; what else the machine does is
// not.
func timed(d dealer, tenants []string, window time.Duration) (float64, error) {
	begin, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for n := 0; ; {
		for range 8 { // asking for the time takes some
			for _, tenant := range tenants {
				d.deal(tenant)
			}
			n += len(tenants)
		}
		now, err := cpuTime()
		if err != nil {
			return 0, err
		}
		if took := now - begin; took >= window {
			return float64(took.Nanoseconds()) / float64(n), nil
		}
	}
}

// cpuTime returns what this process has used so far.
func cpuTime() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// allocations returns how many a hand takes.
func allocations(d dealer, tenants []string) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, tenant := range tenants {
		d.deal(tenant)
	}
	runtime.ReadMemStats(&after)
	return math.Floor(float64(after.Mallocs-before.Mallocs) / float64(len(tenants)))
}

// An even tells how evenly a dealer deals. A chi-square of n degrees of freedom is about n,
// give or take the square root of 2n.
type even struct {
	Dealer      string  `json:"dealer"`
	Workers     float64 `json:"workers_chi_square"`
	WorkersZ    float64 `json:"workers_deviations"`
	Pairs       float64 `json:"pairs_chi_square"`
	PairsZ      float64 `json:"pairs_deviations"`
	ChangeAt100 float64 `json:"members_changed_100_to_101"` // the mean
	ChangeAt127 float64 `json:"members_changed_127_to_128"`
}

// count counts the hands of many tenants, which are of shape s.
func count(ctx context.Context, p peer, s shape, tenants int) (even, error) {
	d, end, err := p.start(ctx, s)
	if err != nil {
		return even{}, err
	}
	defer end()
	singles := make([]float64, s.Workers)
	pairs := make([][]float64, s.Workers)
	for i := range pairs {
		pairs[i] = make([]float64, s.Workers)
	}
	for i := range tenants {
		hand := d.hand(fmt.Sprint("tenant-", i))
		for a, x := range hand {
			singles[x]++
			for _, y := range hand[:a] {
				pairs[min(x, y)][max(x, y)]++
			}
		}
	}
	e := even{Dealer: p.name}
	e.Workers, e.Pairs = chiSquares(singles, pairs, float64(s.Hand), float64(tenants))
	deviations := func(x float64, df int) float64 { return (x - float64(df)) / math.Sqrt(2*float64(df)) }
	e.WorkersZ, e.PairsZ = deviations(e.Workers, s.Workers-1), deviations(e.Pairs, pairsDF(s.Workers))
	if e.ChangeAt100, err = change(ctx, p, 100); err != nil {
		return even{}, err
	}
	if e.ChangeAt127, err = change(ctx, p, 127); err != nil {
		return even{}, err
	}
	return e, nil
}

// pairsDF is how many degrees of freedom the counts of pairs have beside those of
// single workers.
func pairsDF(workers int) int { return workers * (workers - 3) / 2 }

// chiSquares returns the chi-square of the counts of single workers, and of what is
// left of those of pairs without what single workers explain. Members of a
// hand are not independent; both are scaled for that.
func chiSquares(singles []float64, pairs [][]float64, k, hands float64) (ofSingles, ofPairs float64) {
	n := float64(len(singles))
	mean := hands * k / n
	for _, c := range singles {
		ofSingles += (c - mean) * (c - mean)
	}
	ofSingles /= mean * (n - k) / (n - 1)

	two := k * (k - 1) / n / (n - 1) // that two workers are in one hand
	three := two * (k - 2) / (n - 2)
	four := three * (k - 3) / (n - 3)
	row := make([]float64, len(singles))
	for i, c := range singles {
		row[i] = (k-1)*c - (n-1)*hands*two
	}
	for i := range pairs {
		for j := i + 1; j < len(pairs); j++ {
			d := pairs[i][j] - hands*two - (row[i]+row[j])/(n-2)
			ofPairs += d * d
		}
	}
	return ofSingles, ofPairs / (hands * (two - 2*three + four))
}

// change returns how many members of a hand of 5 change when one worker is added
// to n.
func change(ctx context.Context, p peer, n int) (float64, error) {
	const tenants = 3000
	before, end, err := p.start(ctx, shape{n, 1, 5})
	if err != nil {
		return 0, err
	}
	defer end()
	after, end, err := p.start(ctx, shape{n + 1, 1, 5})
	if err != nil {
		return 0, err
	}
	defer end()
	gone := 0
	for i := range tenants {
		tenant := fmt.Sprint("tenant-", i)
		old, now := slices.Clone(before.hand(tenant)), after.hand(tenant)
		for _, x := range old {
			if !slices.Contains(now, x) {
				gone++
			}
		}
	}
	return float64(gone) / tenants, nil
}
