package routerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/routemap"
)

// check finds all that is wrong with the settings and what they name. What is wrong
// with the content of sources is a doubt, as they hold it today, and so is a source
// without a map.
func (s *settings) check() (faults serving.Faults, doubts []error) {
	invalid := s.validate()
	in, _, unread := s.read(slog.New(slog.DiscardHandler))
	if in.creds != nil {
		defer in.creds.Close()
	}
	faults.Invalid(invalid)
	faults.Note("", unread)
	switch err := feed.CheckStore(s.stateDir); {
	case errors.Is(err, feed.ErrUnwritable):
		// A router with a map on such a disk serves all the same.
		in.doubts = append(in.doubts, fmt.Errorf("state-dir: %w", err))
	case err != nil:
		faults.Note("state-dir", err)
	}
	if invalid == nil {
		s.Resolve(&faults)
	}
	// What may be mended while the router runs is no error of the settings.
	return faults, append(in.doubts, s.withoutMap(in.sources)...)
}

// lookPatience is how long a check waits for sources at most: a start may wait for
// the check.
const lookPatience = 2 * time.Second

// withoutMap asks all sources at once for their newest map, and says of each that has
// none, or one of another fleet. Signatures are not looked at.
func (s *settings) withoutMap(sources []feed.Source) (doubts []error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookPatience, fmt.Errorf("no answer within %v", lookPatience))
	defer cancel()
	found := make([]chan error, len(sources))
	for i, source := range sources {
		found[i] = make(chan error, 1)
		go func() {
			raw, err := source.Manifest(ctx, 0)
			if err == nil {
				var man *routemap.Manifest
				if man, err = routemap.DecodeManifest(raw); err == nil && s.fleet != "" && man.Fleet != s.fleet {
					err = fmt.Errorf("its map is of fleet %q, not of %q", man.Fleet, s.fleet)
				}
			}
			found[i] <- err
		}()
	}
	for i, source := range sources {
		var err error
		select {
		case err = <-found[i]:
		case <-ctx.Done(): // a file system may hang, and is not waited for
			err = context.Cause(ctx)
		}
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			err = file
		}
		if err != nil {
			doubts = append(doubts, fmt.Errorf("source: %s: there is no map to use now: %w", source, err))
		}
	}
	return doubts
}
