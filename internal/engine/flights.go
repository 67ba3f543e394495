package engine

import (
	"context"
	"sync"

	"github.com/cellway/cellway"
)

// Flights knows the requests and tunnels that are under way, so that after a
// change of the map those that no longer belong where they go can be ended.
// The zero Flights is ready to use.
type Flights struct {
	mu sync.Mutex
	m  map[*flight]struct{}
}

type flight struct {
	key  cellway.Key
	cell cellway.CellID
	end  context.CancelCauseFunc
}

// Add enters a request for key that goes to cell. Forward it under the
// returned context, and call done when it has ended.
func (f *Flights) Add(ctx context.Context, key cellway.Key, cell cellway.CellID) (_ context.Context, done func()) {
	ctx, end := context.WithCancelCause(ctx)
	fl := &flight{key, cell, end}
	f.mu.Lock()
	if f.m == nil {
		f.m = make(map[*flight]struct{})
	}
	f.m[fl] = struct{}{}
	f.mu.Unlock()
	return ctx, func() {
		f.mu.Lock()
		delete(f.m, fl)
		f.mu.Unlock()
		end(nil)
	}
}

// Sweep ends, with cause, every request for which keep is false, and returns
// how many it ended. It looks at those that are under way when it is called;
// meanwhile others come and go unhindered.
func (f *Flights) Sweep(keep func(key cellway.Key, cell cellway.CellID) bool, cause error) int {
	f.mu.Lock()
	all := make([]*flight, 0, len(f.m))
	for fl := range f.m {
		all = append(all, fl)
	}
	f.mu.Unlock()
	n := 0
	for _, fl := range all {
		if !keep(fl.key, fl.cell) {
			fl.end(cause)
			n++
		}
	}
	return n
}

// Len returns how many requests and tunnels are under way.
func (f *Flights) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.m)
}
