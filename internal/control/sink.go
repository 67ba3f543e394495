package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Sink is a place where versions are written beside the store, and from
// which routers may read them: a directory, a bucket.
type Sink interface {
	// Write stores v durably as the newest version, so that a reader never finds
	// half of it. Writing the same version again does nothing. A place that has a
	// higher version, or another one of that number, is an
	// [cellway.ErrConflict], and stays as it is.
	Write(ctx context.Context, v routemap.Version) error

	// Newest returns the manifest of the newest version there, or nil.
	Newest(ctx context.Context) (*routemap.Manifest, error)

	String() string
}

// A sink that fails is tried again after a second, then after twice as long as
// before, up to a limit.
const (
	sinkRetry     = time.Second
	sinkRetryMost = 30 * time.Second

	// sinkWithin bounds one write when the process is to end, and one look at
	// the start.
	sinkWithin = 5 * time.Second

	// sinkStuck is how long one write may take before it is an alarm. What takes
	// longer, and ends, is not written twice: its parts are there by then.
	sinkStuck = time.Minute
)

// errSinkStuck is the cause of a call's end that a sink did not answer.
var errSinkStuck = errors.New("it hangs")

// askSinks looks at what is written already. A place that has a higher version
// than this store tells of another memory of the fleet.
func (s *Service) askSinks(ctx context.Context) error {
	for _, sink := range s.sinks {
		within, cancel := context.WithTimeoutCause(ctx, sinkWithin, errSinkStuck)
		err := s.askSink(within, sink)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, cellway.ErrStoreDown), errors.Is(err, routemap.ErrFleet):
			return err
		case err != nil:
			s.health.fail(AlarmSink, sink.String(), err)
		}
	}
	return nil
}

func (s *Service) askSink(ctx context.Context, sink Sink) error {
	man, err := sink.Newest(ctx)
	if err != nil {
		return err
	}
	if man == nil {
		s.heard.add(sink)
		return nil
	}
	if m := s.Accepted(); m != nil && m.Settings().Fleet != man.Fleet {
		return fmt.Errorf("%v has maps of fleet %s, this is the control plane of %s: %w", sink, man.Fleet, m.Settings().Fleet, routemap.ErrFleet)
	}
	high := HighestVersion{man.Version, man.Digest(), sink.String()}
	if err := errors.Join(s.noteHighest(ctx, sink.String(), high), s.noteUndone(ctx, sink.String(), high)); err != nil {
		return err
	}
	s.heard.add(sink)
	return nil
}

// runSink writes the newest version to a sink until ctx ends: again after each
// start, whether or not it was written before, and again until it succeeds.
// Versions that come while one is being written are not caught up on: each holds
// all that the ones before did.
func (s *Service) runSink(ctx context.Context, sink Sink) {
	wrote := cellway.Version(0)
	wait := sinkRetry
	for {
		p, next := s.hub.look()
		if p == nil || p.Map.Version() <= wrote {
			select {
			case <-next:
				continue
			case <-ctx.Done():
				return
			}
		}
		ended := ctx.Err() != nil
		within, cancel := context.WithTimeoutCause(ctx, sinkStuck, errSinkStuck)
		if ended { // what was announced last is written all the same
			cancel()
			within, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), sinkWithin, errSinkStuck)
		}
		// What could not be looked at when this process started may have a newer map
		// than the store: it is looked at before it is written over.
		var err error
		if !s.heard.has(sink) {
			err = s.askSink(within, sink)
		}
		if err == nil {
			err = sink.Write(within, p.Version)
		}
		cancel()
		if err == nil {
			wrote, wait = p.Map.Version(), sinkRetry
			s.health.end(AlarmSink, sink.String())
			continue
		}
		if ended {
			s.log.Error("map not written", "sink", sink.String(), "version", p.Map.Version(), "error", err)
			return
		}
		if ctx.Err() != nil {
			continue
		}
		s.stats.sinkErrors.Add(1)
		s.health.fail(AlarmSink, sink.String(), err)
		if errors.Is(err, cellway.ErrConflict) {
			within, cancel := context.WithTimeoutCause(ctx, sinkWithin, errSinkStuck)
			if err := s.askSink(within, sink); err != nil && ctx.Err() == nil {
				s.log.ErrorContext(ctx, "sink not read", "sink", sink.String(), "error", err)
			}
			cancel()
		}
		sleep(ctx, wait)
		wait = min(2*wait, sinkRetryMost)
	}
}
