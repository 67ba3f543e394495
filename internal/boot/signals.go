package boot

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// WithSignals returns a context that ends at the first interrupt or SIGTERM,
// with its name as the cause. At the second one the process exits at once,
// with the status that shells give to a process that died of it. Between the
// two there is no moment in which a signal is lost.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case s := <-signals:
				if n > 1 {
					os.Exit(statusOf(s))
				}
				cancel(fmt.Errorf("%v: %w", s, context.Canceled))
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
