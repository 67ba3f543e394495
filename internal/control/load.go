package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// load reads the store: the newest published version, the accepted map, the
// routers, and what has been written where routers read maps.
func (s *Service) load(ctx context.Context) error {
	if err := s.found(ctx); err != nil {
		return err
	}
	if err := s.noteIncarnation(ctx); err != nil {
		return err
	}
	var newest *versionRecord
	if err := s.view(ctx, func(tx store.Tx) error {
		newest = nil
		p, _, err := getPointer(tx)
		if err != nil || p.Version == 0 {
			return err
		}
		r, err := getVersion(tx, p.Version)
		newest = &r
		return err
	}); err != nil {
		return err
	}
	if newest != nil {
		p, err := s.readVersion(ctx, *newest, nil)
		if err != nil {
			return fmt.Errorf("the newest map can't be read, so nothing can follow it; restore a backup: %w", err)
		}
		s.hub.announce(p)
		s.foundVersion = p.Map.Version()
	}
	if err := s.reload(ctx); err != nil {
		return err
	}
	if err := s.loadRouters(ctx); err != nil {
		return err
	}
	if err := s.loadBackups(ctx); err != nil {
		return err
	}
	return s.askSinks(ctx)
}

// found starts the memory of a new store.
func (s *Service) found(ctx context.Context) error {
	var rev cellway.Revision
	if err := s.view(ctx, func(tx store.Tx) (err error) { _, rev, err = getHead(tx); return err }); err != nil || rev > 0 {
		return err
	}
	return s.update(ctx, func(tx store.Tx) error {
		_, rev, err := getHead(tx)
		if err != nil || rev > 0 {
			return err
		}
		var h headRecord
		if err := h.raise(ctx, s.store, 0, 0, time.Now()); err != nil {
			return err
		}
		_, err = put(tx, kindHead, only, 0, h)
		return err
	})
}

// noteIncarnation tells the place of the store which incarnation is used here, for
// whatever is restored there later. A store from before places were told has not.
func (s *Service) noteIncarnation(ctx context.Context) error {
	drawn, ok := s.store.(store.Incarnations)
	if !ok {
		return nil
	}
	var h headRecord
	if err := s.view(ctx, func(tx store.Tx) (err error) { h, _, err = getHead(tx); return err }); err != nil {
		return err
	}
	return drawn.UsedIncarnation(ctx, h.Incarnation)
}

// reload makes the accepted map from the store: from the newest version that is
// what the log of changes makes, and the changes since. The caller has the turn,
// or is alone.
func (s *Service) reload(ctx context.Context) error {
	var whole *versionRecord
	if err := s.view(ctx, func(tx store.Tx) error {
		whole = nil
		p, _, err := getPointer(tx)
		if err != nil || p.Whole == 0 {
			return err
		}
		r, err := getVersion(tx, p.Whole)
		whole = &r
		return err
	}); err != nil {
		return err
	}
	var from head
	if whole != nil {
		p := s.hub.newest()
		if p == nil || p.Map.Version() != whole.Version || p.Version.Manifest.Digest() != digestOf(whole.Manifest) {
			var err error
			if p, err = s.readVersion(ctx, *whole, p); err != nil {
				return fmt.Errorf("the accepted map can't be read: %w", err)
			}
		}
		from = head{whole.Seq, whole.Chain, p.Map}
	}
	return s.view(ctx, func(tx store.Tx) error {
		h, _, err := getHead(tx)
		if err != nil {
			return err
		}
		if h.Seq < from.seq {
			return fmt.Errorf("%w: map %v contains changes up to %d, the head record says %d", errHistory, whole.Version, from.seq, h.Seq)
		}
		var waiting []queued
		at, err := from.replay(tx, h.Seq, func(h head, c changeEntry) error {
			waiting = append(waiting, c.queued(h.seq))
			return nil
		})
		if err != nil {
			return err
		}
		if at.chain != h.Chain {
			return fmt.Errorf("%w: the log of changes does not lead to the head record", errHistory)
		}
		end, err := tx.LogEnd(logJournal)
		if err != nil {
			return err
		}
		s.head.Store(&at)
		s.book = nil
		s.journal.Store(end)
		s.queue.reset(waiting)
		if p := s.hub.newest(); p != nil {
			s.queue.take(p)
		}
		s.noteRestored(h)
		return nil
	})
}

// lose deals with a store that has lost what this process has seen in it: memory
// is made anew, and everything but drains is held back until a person has
// confirmed the newest map, which is the one that routers have. Versions and
// epochs go on above all that were used. The caller has the turn.
func (s *Service) lose(ctx context.Context, why error) error {
	s.log.ErrorContext(ctx, "history lost", "error", why)
	newest := s.hub.newest()
	err := s.update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if newest != nil && newest.Map.Version() > h.Highest.Version {
			h.Highest = HighestVersion{newest.Map.Version(), newest.Version.Manifest.Digest(), "this control plane"}
		}
		p, _, err := getPointer(tx)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		h.halt(now, p.Version, "an earlier state", why.Error())
		if err := h.raise(ctx, s.store, 0, 0, now); err != nil {
			return err
		}
		h.Restored.Incarnation = h.Incarnation
		w := &work{tx: tx, now: now, call: Call{Who: "control plane", Reason: why.Error()}}
		w.record("history.lost", "fleet", nil, h.Restored)
		if err := w.writeJournal(0); err != nil {
			return err
		}
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
	if err != nil {
		return fmt.Errorf("after a loss: %w", err)
	}
	s.hub.disown()
	s.kept.set(nil)
	s.served.clear()
	if err := s.reload(ctx); err != nil {
		return fmt.Errorf("after a loss: %w", err)
	}
	return nil
}

// loseInTurn is lose for those who don't have the turn. It returns why, so that
// what they were about ends there.
func (s *Service) loseInTurn(ctx context.Context, why error) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	return errors.Join(why, s.lose(ctx, why))
}
