package sim

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Run says how a simulation is carried out. It changes nothing about what
// comes out. The zero Run uses one core and tells nobody.
type Run struct {
	// Cores is how many goroutines work at once; below 1 means 1.
	Cores int
	// Progress, if set, is told what is done of the whole, from 0 to 1. It is
	// called often, by one goroutine at a time, and never with less than before.
	Progress func(part float64)
}

// chunk is how many items a goroutine takes at once.
const chunk = 2048

// A gauge counts the work of one simulation.
type gauge struct {
	run   Run
	total int64
	done  atomic.Int64
	mu    sync.Mutex
	told  float64
}

func (r Run) gauge(total int) *gauge { return &gauge{run: r, total: int64(max(total, 1))} }

func (g *gauge) add(n int) {
	done := g.done.Add(int64(n))
	if g.run.Progress == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if part := min(1, float64(done)/float64(g.total)); part > g.told {
		g.told = part
		g.run.Progress(part)
	}
}

// each calls f for the numbers below n, in chunks [from, to). Chunks are the
// same on any number of cores; which goroutine has one is not, so f may only
// write to what belongs to its chunk. cost is the work of one number.
func (g *gauge) each(ctx context.Context, n, size, cost int, f func(from, to int)) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, g.run.Cores) {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(size))) - size
				if from >= n {
					return
				}
				to := min(from+size, n)
				f(from, to)
				g.add((to - from) * cost)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
