package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway"
)

// Flights knows the requests and tunnels that are under way, so that after a
// change of the map those that no longer belong where they go can be ended.
// The zero Flights is ready to use.
type Flights struct {
	count atomic.Uint64 // of those that ever were

	mu sync.Mutex
	m  map[*Flight]struct{}
}

// A Flight is one request or tunnel that [Flights.Add] entered. Its methods
// belong to the goroutine that serves it.
type Flight struct {
	in   *Flights
	key  cellway.Key
	cell cellway.CellID
	end  context.CancelCauseFunc
	turn uint64 // the one that came last has the highest
}

// Add enters a request for key that goes to cell. Forward it under the
// returned context, and call Done when it has ended.
func (f *Flights) Add(ctx context.Context, key cellway.Key, cell cellway.CellID) (context.Context, *Flight) {
	ctx, end := context.WithCancelCause(ctx)
	fl := &Flight{in: f, key: key, cell: cell, end: end, turn: f.count.Add(1)}
	f.put(fl)
	return ctx, fl
}

func (f *Flights) put(fl *Flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = make(map[*Flight]struct{})
	}
	f.m[fl] = struct{}{}
}

func (f *Flights) remove(fl *Flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.m, fl)
}

// Move takes the flight over to other Flights. At no time is it in neither.
func (fl *Flight) Move(to *Flights) {
	from := fl.in
	if from == to {
		return
	}
	fl.in = to
	to.put(fl)
	from.remove(fl)
}

// Done takes the flight out and ends its context.
func (fl *Flight) Done() {
	fl.in.remove(fl)
	fl.end(nil)
}

// Sweep ends, with cause, every request for which keep is false, and returns
// how many it ended. It looks at those that are under way when it is called;
// meanwhile others come and go unhindered. Those that came last end first: they may wait
// for a place in the cell that an earlier one gives back when it ends.
func (f *Flights) Sweep(keep func(key cellway.Key, cell cellway.CellID) bool, cause error) int {
	f.mu.Lock()
	all := make([]*Flight, 0, len(f.m))
	for fl := range f.m {
		all = append(all, fl)
	}
	slices.SortFunc(all, func(a, b *Flight) int { return cmp.Compare(b.turn, a.turn) })
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
