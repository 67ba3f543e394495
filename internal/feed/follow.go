package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// follow asks one source for as long as ctx lasts: for its newest at the start,
// and then for whatever is newer than what is in use.
func (f *Feed) follow(ctx context.Context, s *source) {
	if f.cfg.StartJitter > 0 && !sleep(ctx, rand.N(f.cfg.StartJitter)) {
		return
	}
	q, begun, before := newest(f.cfg.Every), time.Now(), f.progress(s)
	err := f.ask(ctx, s, q)
	s.once.Do(func() { close(s.asked) })
	for p, failed := (patience{}), false; ctx.Err() == nil; {
		switch idle := q.after != 0 && time.Since(begun) < heldLeast && f.progress(s) == before; {
		case errors.Is(err, errEnough):
		case err != nil || idle:
			failed = err != nil
			if !sleep(ctx, p.pause(err, f.cuts(s))) {
				return
			}
		default:
			p, failed = patience{}, false
			f.whole(s)
		}
		enough := make(chan struct{})
		f.mu.Lock()
		s.enough = enough
		f.mu.Unlock()
		q, begun, before = f.nextAsk(s), time.Now(), f.progress(s)
		if q.enough = enough; failed {
			q.after = 0 // it need not wait to say that it is back
		}
		err = f.ask(ctx, s, q)
	}
}

// heldLeast is how long a source that has nothing new is expected to hold its
// answer. One that does not, such as a cache in front of a control plane, is not
// asked again at once.
const heldLeast = time.Second

// A progress is what changes when a source says something new.
type progress struct{ inUse, passed cellway.Version }

func (f *Feed) progress(s *source) progress {
	v := f.version()
	f.mu.Lock()
	defer f.mu.Unlock()
	return progress{v, s.pass}
}

// pullAll pulls everything that s has on a fixed timer, whether it changed or
// not. It does so beside [Feed.follow]: a source that lost a part, or is slow
// with it, may be the first to have a map that needs none of it.
func (f *Feed) pullAll(ctx context.Context, s *source) {
	for failed := 0; ; {
		pause := jitter(f.cfg.Every)
		if failed > 0 {
			pause = min(pause, doubling(failed, sourceFirst, f.cfg.Every))
		}
		if !sleep(ctx, pause) {
			return
		}
		q := newest(refreshWait)
		q.whole = true
		if err := f.ask(ctx, s, q); err != nil {
			failed++
		} else {
			failed = 0
		}
	}
}

// A question is what a source is asked for.
type question struct {
	after  cellway.Version // for something above it; 0: for the newest
	until  time.Time       // when it is no longer waited for
	enough <-chan struct{} // closed when something else is to be asked; may be nil
	whole  bool            // for all parts, those that are known too
}

// newest asks for what a source has now.
func newest(wait time.Duration) question { return question{until: time.Now().Add(wait)} }

// nextAsk returns what s is asked for next: a version above the one in use and
// the one that is passed over.
func (f *Feed) nextAsk(s *source) question {
	now := time.Now()
	q := question{after: f.version(), until: now.Add(jitter(f.cfg.Every))}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.pass == 0 {
		return q
	}
	if !s.passUntil.IsZero() {
		if !now.Before(s.passUntil) {
			s.pass, s.passUntil = 0, time.Time{}
			q.after = 0
			return q
		}
		if s.passUntil.Before(q.until) {
			q.until = s.passUntil
		}
	}
	q.after = max(q.after, s.pass)
	return q
}

// passNothing has s asked for whatever is newer than the map in use, from now
// on. The feed's mu is held.
func (s *source) passNothing() {
	if s.pass == 0 {
		return
	}
	s.pass, s.passUntil = 0, time.Time{}
	if s.enough != nil {
		close(s.enough)
		s.enough = nil
	}
}

// ask asks s once. An error means that s could not be asked, or answered
// nonsense; what is refused for another reason is not an error of the source.
func (f *Feed) ask(ctx context.Context, s *source, q question) error {
	raw, err := manifest(ctx, s, q)
	if err == nil && raw == nil && q.after == 0 {
		err = fmt.Errorf("%s has no map: %w", s, cellway.ErrNotReady)
	}
	if err == nil && raw == nil {
		f.mu.Lock()
		over := s.causes.over()
		s.answer()
		if f.inUse != nil && q.after <= f.inUse.m.Version() {
			s.confirmed = s.answered
		}
		f.mu.Unlock()
		if over {
			f.well(s, false)
		}
		return nil
	}
	if err == nil {
		err = f.take(ctx, s, raw, q.whole)
	} else if errors.Is(err, ErrCut) {
		f.cut(s)
	} else if reason, ok := reasonOf(err); ok {
		f.refuse(s, 0, routemap.Digest{}, reason, err)
	}
	switch fails, over := f.fares(ctx, s, q, err); {
	case over:
		f.well(s, q.whole)
	case fails:
		f.log.Warn("source of maps fails", "source", s.String(), "pull_of_everything", q.whole, "error", err)
	}
	return err
}

// well tells the log that a source fails no longer.
func (f *Feed) well(s *source, whole bool) {
	f.log.Info("source of maps answers again", "source", s.String(), "pull_of_everything", whole)
}

// fares notes how s answered a question, and reports whether it has just begun to
// fail, or does so for another reason than before; or whether that is over.
func (f *Feed) fares(ctx context.Context, s *source, q question, err error) (fails, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	trouble, causes := &s.err, &s.causes
	if q.whole {
		trouble, causes = &s.lacks, &s.lacking
	}
	if err == nil {
		*trouble = ""
		s.answer()
		return false, causes.over()
	}
	if errors.Is(err, errEnough) || ctx.Err() != nil {
		return false, false // we had enough, not the source
	}
	s.failures++
	s.none = errors.Is(err, cellway.ErrNotReady)
	*trouble, s.errAt = err.Error(), time.Now()
	return causes.failed(s.errAt, causeOf(err)), false
}

// manifest asks s for a manifest, for as long as the question lasts.
func manifest(ctx context.Context, s *source, q question) ([]byte, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, q.until, errEnough)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if q.enough == nil {
		return s.Manifest(ctx, q.after)
	}
	answered := make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer close(answered)
	watching.Go(func() {
		select {
		case <-q.enough:
			stop(errEnough)
		case <-answered:
		}
	})
	return s.Manifest(ctx, q.after)
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
		_ = f.ask(ctx, s, newest(refreshWait)) // counted in the source's status
		for _, done := range waiting {
			close(done)
		}
		if !sleep(ctx, refreshEvery-time.Since(begun)) {
			return
		}
	}
}
