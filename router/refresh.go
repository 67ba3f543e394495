package router

import (
	"context"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// refreshEvery is the shortest time between two refreshes for one cell.
const refreshEvery = time.Second

// refreshTimeout bounds one refresh.
const refreshTimeout = 10 * time.Second

// A refresher asks for the newest map when a guard has refused a request.
type refresher struct {
	ask func(context.Context) error // nil: nobody to ask

	mu      sync.Mutex
	cells   map[cellway.CellID]*refresh // the last one that each took part in
	running *refresh                    // the last that began; nil before the first
}

type refresh struct {
	begun time.Time
	done  chan struct{} // closed when it has ended
}

func (r *refresh) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func newRefresher(ask func(context.Context) error) *refresher {
	return &refresher{ask: ask, cells: make(map[cellway.CellID]*refresh)}
}

// wake makes sure that the newest map is asked for because of cell, unless
// that was done within the last second. It returns a channel that is closed
// when the asking is over: it may be already.
func (f *refresher) wake(cell cellway.CellID) (done <-chan struct{}, began bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.cells[cell]; r != nil && (!r.over() || time.Since(r.begun) < refreshEvery) {
		return r.done, false
	}
	if r := f.running; r != nil && !r.over() {
		f.cells[cell] = r // whoever asks, the answer is the same
		return r.done, true
	}
	r := &refresh{time.Now(), make(chan struct{})}
	f.cells[cell], f.running = r, r
	if f.ask == nil {
		close(r.done)
		return r.done, true
	}
	go func() {
		defer close(r.done)
		// No request's context: others wait for the same.
		ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
		defer cancel()
		// Whatever it says, what counts is whether a map came.
		_ = f.ask(ctx)
	}()
	return r.done, true
}
