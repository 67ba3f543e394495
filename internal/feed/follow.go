package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// follow asks one source for as long as ctx lasts: for its newest at the start,
// everything again on a fixed timer, and between, for whatever is newer than
// what is in use.
func (f *Feed) follow(ctx context.Context, s *source) {
	if f.cfg.StartJitter > 0 && !sleep(ctx, rand.N(f.cfg.StartJitter)) {
		return
	}
	wholeAt := time.Now().Add(jitter(f.cfg.Every))
	err := f.ask(ctx, s, 0, wholeAt, false)
	s.once.Do(func() { close(s.asked) })
	for failed := 0; ctx.Err() == nil; {
		switch {
		case errors.Is(err, errEnough):
		case err != nil:
			failed++
			if !sleep(ctx, doubling(failed, sourceFirst, sourceMost)) {
				return
			}
		default:
			failed = 0
		}
		now := time.Now()
		if now.Before(wholeAt) {
			after, until := f.nextAsk(s, now, wholeAt)
			err = f.ask(ctx, s, after, until, false)
			continue
		}
		next := now.Add(jitter(f.cfg.Every))
		if err = f.ask(ctx, s, 0, next, true); err == nil {
			wholeAt = next
		}
	}
}

// nextAsk returns the version above which s is asked for something, and for how
// long at most.
func (f *Feed) nextAsk(s *source, now, wholeAt time.Time) (after cellway.Version, until time.Time) {
	after, until = f.version(), wholeAt
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.pass == 0 {
		return after, until
	}
	if !s.passUntil.IsZero() {
		if !now.Before(s.passUntil) {
			s.pass, s.passUntil = 0, time.Time{}
			return 0, until
		}
		if s.passUntil.Before(until) {
			until = s.passUntil
		}
	}
	return max(after, s.pass), until
}

// ask asks s once, and waits for the manifest until then at most. An error
// means that s could not be asked, or answered nonsense; what is refused for
// another reason is not an error of the source.
func (f *Feed) ask(ctx context.Context, s *source, after cellway.Version, until time.Time, whole bool) error {
	limited, cancel := context.WithDeadlineCause(ctx, until, errEnough)
	raw, err := s.Manifest(limited, after)
	cancel()
	if err == nil && raw == nil && after == 0 {
		err = fmt.Errorf("%s has no map: %w", s, cellway.ErrNotReady)
	}
	if err == nil && raw == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		s.answer()
		if f.inUse != nil && after <= f.inUse.m.Version() {
			s.confirmed = s.answered
		}
		return nil
	}
	if err == nil {
		err = f.take(ctx, s, raw, whole)
	} else if reason, ok := reasonOf(err); ok {
		f.refuse(s, 0, routemap.Digest{}, reason, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		s.answer()
		return nil
	}
	if errors.Is(err, errEnough) || ctx.Err() != nil {
		return err // we had enough, not the source
	}
	s.failures++
	if s.err == "" {
		f.log.Warn("source of maps fails", "source", s.String(), "error", err)
	}
	s.err, s.errAt = err.Error(), time.Now()
	return err
}

// answer notes that s could be asked. The feed's mu is held.
func (s *source) answer() {
	s.answers++
	s.answered = time.Now()
	s.err = ""
}

// refreshEvery is how often a source is asked at most because of [Feed.Refresh].
const refreshEvery = time.Second

// refreshWait is how long a refresh waits for a source.
const refreshWait = 10 * time.Second

// answerWakes asks s whenever a refresh was called for.
func (f *Feed) answerWakes(ctx context.Context, s *source) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		begun := time.Now()
		f.mu.Lock()
		waiting := s.waiting
		s.waiting = nil
		f.mu.Unlock()
		_ = f.ask(ctx, s, 0, begun.Add(refreshWait), false) // counted in the source's status
		for _, done := range waiting {
			close(done)
		}
		if !sleep(ctx, refreshEvery-time.Since(begun)) {
			return
		}
	}
}
