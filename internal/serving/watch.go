package serving

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"
)

// hangups returns hang-up signals, which would otherwise end the process, until
// stop is called.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	if len(hangup) > 0 {
		signal.Notify(c, hangup...)
	}
	return c, func() { signal.Stop(c) }
}

// A Watched is something that is read again: now and then until ctx ends, and
// whenever hup says so.
type Watched interface {
	Watch(ctx context.Context, hup <-chan struct{}) error
}

// LookAgain calls look until ctx ends: each time that so long has passed, and
// whenever hup says so, which is what told says. It returns ctx's cause.
func LookAgain(ctx context.Context, every time.Duration, hup <-chan struct{}, look func(told bool)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			look(false)
		case <-hup:
			look(true)
		}
	}
}

// watchFiles has all be read again when they change, and on a signal, on which it
// also opens the access log again. It returns when ctx ends, with its cause.
func watchFiles(ctx context.Context, signals <-chan os.Signal, access *AccessLog, log *slog.Logger, all ...Watched) error {
	var watching sync.WaitGroup
	var looks []chan struct{}
	for _, one := range all {
		look := make(chan struct{}, 1)
		looks = append(looks, look)
		watching.Go(func() { _ = one.Watch(ctx, look) }) // it ends with ctx
	}
	defer watching.Wait()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-signals:
			for _, look := range looks {
				select {
				case look <- struct{}{}:
				default:
				}
			}
			if err := access.Reopen(); err != nil {
				log.Error("access log not opened again; its lines go on to the old file, and it is tried again each second", "error", err)
			}
			log.Info("told to read files again")
		}
	}
}

// Feed tells the supervisor three times in its time that the program lives, and
// how it is, until ctx ends. alive must return: it takes the program's locks.
func (s Supervisor) Feed(ctx context.Context, log *slog.Logger, alive func() (status string)) error {
	tick := time.NewTicker(s.Watchdog / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			s.TellOrWarn(log, "WATCHDOG=1", "STATUS="+alive())
		}
	}
}

// TellOrWarn is Tell with a warning in the log instead of an error.
func (s Supervisor) TellOrWarn(log *slog.Logger, state ...string) {
	if err := s.Tell(state...); err != nil {
		log.Warn("supervisor not told", "error", err)
	}
}
