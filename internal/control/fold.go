package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// foldAt is the size of an overlay at which a fresh base is made in the
// background, so that no write has to.
const foldAt = routemap.OpenOverlay / 2

// runFolder gives the accepted map a fresh base whenever its overlay is half
// full.
func (s *Service) runFolder(ctx context.Context) {
	for {
		if err := s.fold(ctx, foldAt); err != nil && ctx.Err() == nil {
			s.health.fail(AlarmFolding, "map", err)
			if !sleep(ctx, lookEvery) {
				return
			}
			continue
		}
		s.health.end(AlarmFolding, "map")
		select {
		case <-ctx.Done():
			return
		case <-s.queue.fold:
		}
	}
}

// Fold gives the accepted map a fresh base now. That changes no answer: the
// next version has it.
func (s *Service) Fold(ctx context.Context) error {
	if s.Accepted() == nil {
		return fmt.Errorf("the fleet has no map yet: %w", cellway.ErrNotReady)
	}
	return s.fold(ctx, 0)
}

// fold gives the accepted map a fresh base, if its overlay has at least that
// many bytes. The work is done out of turn, and the base is put into the store
// before anything waits for it; what was accepted meanwhile is applied again.
func (s *Service) fold(ctx context.Context, least int) error {
	if err := acquire(ctx, s.folding); err != nil {
		return err
	}
	defer func() { <-s.folding }()
	at := *s.head.Load()
	if at.m == nil || at.m.OverlaySize() < least {
		return nil
	}
	folded, err := at.m.Fold()
	if err != nil {
		return err
	}
	// If the store refuses the base now, it gets it with the version that names it.
	if base := folded.Base(); s.putBlob(ctx, base.Digest(), base.Bytes()) == nil {
		s.kept.set(base)
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	if err := s.rebase(ctx, head{at.seq, at.chain, folded}); err != nil {
		return err
	}
	s.stats.folds.Add(1)
	return nil
}

// A keptBase is the base that this process has put into the store ahead of a
// version that names it.
type keptBase struct {
	mu   sync.Mutex
	base *routemap.Base
	at   time.Time
}

// keepBaseFor is how long such a base is relied on. Retention drops no blob
// that is younger than twice that.
const keepBaseFor = 30 * time.Minute

func (k *keptBase) set(b *routemap.Base) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.base, k.at = b, time.Now()
}

func (k *keptBase) has(b *routemap.Base) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.base == b && time.Since(k.at) < keepBaseFor
}
