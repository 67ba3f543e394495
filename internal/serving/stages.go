package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// Stages are the parts of a program in the order in which they were started.
// The zero Stages have none. They are for one goroutine.
type Stages struct {
	steps []step
}

// A step is how to stop what was started.
type step struct {
	name string
	stop func() error
}

// Push notes how to stop a part that was started.
func (s *Stages) Push(name string, stop func() error) { s.steps = append(s.steps, step{name, stop}) }

// Start runs a part until it is stopped. If it ends before, fail is told.
func (s *Stages) Start(ctx context.Context, fail context.CancelCauseFunc, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); ctx.Err() == nil {
			fail(fmt.Errorf("%s ended: %w", name, err))
		}
	}()
	s.Push(name, func() error { cancel(); <-done; return nil })
}

// Stop stops all parts, the last first, whatever fails.
func (s *Stages) Stop(log *slog.Logger) (err error) {
	for _, one := range slices.Backward(s.steps) {
		begun := time.Now()
		serr := one.stop()
		log.Debug("stopped", "what", one.name, "took", time.Since(begun))
		if serr != nil {
			log.Error("not stopped cleanly", "what", one.name, "error", serr)
			err = errors.Join(err, fmt.Errorf("stop %s: %w", one.name, serr))
		}
	}
	s.steps = nil
	return err
}

// Closing closes a listener that may be closed already.
func Closing(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
