package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/cellway/cellway/internal/looks"
)

// A Source has the list of a cell's workers. Its methods may be called at any time
// from any goroutine.
type Source interface {
	// Current returns the list in use, the last good one; nil as long as there
	// was none.
	Current() *Workers
	// Changed returns a channel that is closed when Current may return another
	// list than at the time of this call.
	Changed() <-chan struct{}
	// Failure returns since when looks for a list have brought none that is good,
	// and why; the zero time and nil if the last one did.
	Failure() (since time.Time, err error)
	// Run keeps the list current until ctx ends, and returns nil then. It is
	// called once; [Gateway.Run] does.
	Run(ctx context.Context) error
}

// A kept is the list of a source. Its zero value has none.
type kept struct {
	mu      sync.Mutex
	workers *Workers
	changed chan struct{} // nil: nobody has asked

	look looks.Last // for a list
}

// Failure is [Source].Failure.
func (k *kept) Failure() (since time.Time, err error) { return k.look.Failure() }

// Current is [Source].Current.
func (k *kept) Current() *Workers {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.workers
}

// Changed is [Source].Changed.
func (k *kept) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed == nil {
		k.changed = make(chan struct{})
	}
	return k.changed
}

// put makes w the list.
func (k *kept) put(w *Workers) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers = w
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

// Static is a source whose list never changes. Only [NewStatic] makes useful ones.
type Static struct{ kept }

// NewStatic returns a source that has w for ever.
func NewStatic(w *Workers) *Static {
	s := &Static{}
	s.put(w)
	return s
}

// Run waits until ctx ends.
func (s *Static) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
