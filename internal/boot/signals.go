package boot

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// echo is how long after a signal another one is taken for the same order.
// timeout(1) signals its child and then the group in which its child is, and
// others who pass an order on do the like.
const echo = 200 * time.Millisecond

// WithSignals returns a context that ends at the first interrupt or SIGTERM,
// with its name as the cause. At the second order the process exits at once,
// with the status that shells give to a process that died of it; a signal that
// comes less than 200 ms after the first is none. Between the two there is no
// moment in which a signal is lost.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	return withSignals(parent, echo)
}

func withSignals(parent context.Context, echo time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case s := <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					cancel(fmt.Errorf("%v: %w", s, context.Canceled))
				case time.Since(first) >= echo:
					os.Exit(statusOf(s))
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// SurvivePipes makes a write to standard output or standard error whose reader
// has gone an error like any other, until restore is called: it would end the
// process, which for one that serves is too much for a log.
func SurvivePipes() (restore func()) {
	// Not ignored: a child would inherit that.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// statusOf is what a shell says of a process that died of s.
func statusOf(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
