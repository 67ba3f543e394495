package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// publishEvery is the least time between two versions, unless one is urgent.
const publishEvery = 200 * time.Millisecond

// lookEvery is how often the publisher looks for changes of other nodes, and
// for those whose answer was lost.
const lookEvery = time.Second

// runPublisher publishes what is accepted until ctx ends.
func (s *Service) runPublisher(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var last time.Time
	for {
		p, err := s.publish(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errAwaitsConfirmation):
			s.health.end(AlarmPublishing, "map") // the halt is an alarm of its own
		case err != nil:
			s.stats.publishErrors.Add(1)
			s.health.fail(AlarmPublishing, "map", err)
		default:
			s.health.end(AlarmPublishing, "map")
		}
		if p != nil {
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.queue.wake:
		case <-look.C:
		}
		// Others' changes gather for a moment; drains, holds and flips don't wait.
		for wait := time.Until(last.Add(publishEvery)); wait > 0 && !s.queue.urgent(); wait = time.Until(last.Add(publishEvery)) {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-s.queue.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// standing is what the store says of publishing.
type standing struct {
	head    headRecord
	pointer pointerRecord
}

// look reads where the store stands and brings memory up to it. Only the
// publisher calls it.
func (s *Service) look(ctx context.Context) (st standing, err error) {
	seen, journal, waits, left := s.head.Load(), s.journal.Load(), s.restored.Load(), s.aftermath.Load()
	parent := s.hub.newest()
	var foreign *versionRecord
	var end uint64
	if err := s.view(ctx, func(tx store.Tx) (err error) {
		foreign = nil
		if st.head, _, err = getHead(tx); err != nil {
			return err
		}
		if st.pointer, _, err = getPointer(tx); err != nil {
			return err
		}
		if end, err = tx.LogEnd(logJournal); err != nil {
			return err
		}
		if v := st.pointer.Version; v != 0 && (parent == nil || v > parent.Map.Version()) {
			r, err := getVersion(tx, v)
			foreign = &r
			return err
		}
		return nil
	}); err != nil {
		return st, err
	}
	if foreign != nil {
		if err := s.adopt(ctx, *foreign); err != nil {
			return st, err
		}
	} else if err := st.lost(parent); err != nil {
		return st, s.loseInTurn(ctx, err)
	}
	// What is read here may be older than memory by now, never older than seen.
	if st.head.Seq != seen.seq || st.head.Chain != seen.chain || end < journal {
		return st, s.catchUp(ctx)
	}
	s.restored.CompareAndSwap(waits, st.head.Restored) // whoever has changed it knows better
	after := st.head.aftermath()
	s.aftermath.CompareAndSwap(left, &after)
	return st, nil
}

// lost reports a store whose newest version is not what this process has
// published or found there.
func (st standing) lost(newest *Published) error {
	if newest == nil {
		return nil
	}
	switch v := newest.Map.Version(); {
	case v <= st.head.Highest.Version && st.pointer.Version < v:
		return nil // that is known, and a person is asked or was
	case st.pointer.Version < v:
		return fmt.Errorf("%w: its newest map is %v, it had %v", errHistory, st.pointer.Version, v)
	case st.pointer.Version == v && st.pointer.Digest != newest.Version.Manifest.Digest():
		return fmt.Errorf("%w: its map %v is another one than it had", errHistory, v)
	}
	return nil
}

// catchUp takes over changes that the store has and this process does not know
// of.
func (s *Service) catchUp(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	err := s.view(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if rev == 0 {
			return fmt.Errorf("%w: it is empty", errHistory)
		}
		return s.follow(tx, h)
	})
	if errors.Is(err, errHistory) {
		return errors.Join(err, s.lose(ctx, err))
	}
	return err
}

// adopt announces the newest version of the store, which another node has
// published or which we gave up, and goes on from its base, so that two nodes
// don't send routers a new one in turns.
func (s *Service) adopt(ctx context.Context, r versionRecord) error {
	p, err := s.readVersion(ctx, r, s.hub.newest())
	if err != nil {
		return err
	}
	s.announce(p)
	if p.partial {
		return nil
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	at := s.head.Load()
	if at.seq < p.Seq || at.m != nil && at.m.Base() == p.Map.Base() {
		return nil
	}
	return s.rebase(ctx, head{p.Seq, p.chain, p.Map})
}

// rebase replaces the accepted map by one that answers alike: what the log of
// changes makes of from. The caller has the turn.
func (s *Service) rebase(ctx context.Context, from head) error {
	at := s.head.Load()
	if from.seq > at.seq {
		return nil // the store was lost meanwhile
	}
	next := from
	if from.seq < at.seq {
		if err := s.view(ctx, func(tx store.Tx) (err error) {
			next, err = from.replay(tx, at.seq, nil)
			return err
		}); err != nil {
			return err
		}
	}
	if next.chain == at.chain {
		s.head.Store(&next)
	}
	return nil
}

// announce tells everybody of a durable version.
func (s *Service) announce(p *Published) {
	s.hub.announce(p)
	now := time.Now()
	for _, c := range s.queue.take(p) {
		s.stats.latency.observe(now.Sub(c.at))
	}
}

// publish makes a version of what waits, and returns it. If that is nothing, it
// returns nil.
func (s *Service) publish(ctx context.Context) (*Published, error) {
	st, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	parent, at := s.hub.newest(), *s.head.Load()
	next := &Published{Map: at.m, Seq: at.seq, chain: at.chain}
	confirmed := false
	switch {
	case st.head.Restored != nil:
		if next, err = s.drained(ctx, parent, st.head); err != nil {
			return nil, err
		}
	case at.m == nil || parent != nil && at.seq <= parent.Seq && !(at.seq == parent.Seq && s.unsigned(parent)):
		return nil, nil
	case parent == nil:
	case parent.partial || s.queue.any(at.seq, func(c queued) bool { return c.confirmed }):
		// A partial version was published while something waited for a person, who
		// has confirmed all that is accepted.
		confirmed = true
	case len(routemap.Compare(parent.Map, at.m).Exceeded()) > 0:
		if next, err = s.farthest(ctx, parent, at.seq); err != nil {
			return nil, err
		}
	}
	p, err := s.publishOne(ctx, st, parent, next, confirmed)
	if errors.Is(err, cellway.ErrConflict) {
		s.queue.look() // another node was quicker: look again
		s.log.InfoContext(ctx, "another node published", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.announce(p)
	s.stats.versions.Add(1)
	s.log.InfoContext(ctx, "map published", "version", p.Version.Manifest.Version, "seq", p.Seq, "waiting", s.queue.len())
	if p.Seq < at.seq {
		s.queue.look()
	}
	return p, nil
}

// unsigned reports whether the newest version, as this process found it, lacks
// the signature of one of its keys. It is then published again, so that routers
// which will trust only the new key have a map that it signed, though nothing
// else changes. Versions that others publish later are left to them: two nodes
// with different keys must not answer each other for ever.
func (s *Service) unsigned(p *Published) bool {
	if p.Map.Version() != s.foundVersion {
		return false
	}
	return slices.ContainsFunc(s.signers, func(k routemap.Signer) bool {
		id := routemap.KeyIDOf(k.Public())
		return !slices.ContainsFunc(p.Version.Manifest.Signatures, func(sig routemap.Signature) bool { return sig.Key == id })
	})
}

// farthest goes on from parent as far as a router will follow in one version.
// Each change alone passed the gate, but the sum of two need not against their
// common parent: then the later one makes a version of its own.
func (s *Service) farthest(ctx context.Context, parent *Published, to uint64) (*Published, error) {
	at := head{parent.Seq, parent.chain, parent.Map}
	err := s.view(ctx, func(tx store.Tx) (err error) {
		first := true
		at, err = head{parent.Seq, parent.chain, parent.Map}.replay(tx, to, func(h head, _ changeEntry) error {
			if !first && len(routemap.Compare(parent.Map, h.m).Exceeded()) > 0 {
				return errStop
			}
			first = false
			return nil
		})
		return err
	})
	return &Published{Map: at.m, Seq: at.seq, chain: at.chain}, err
}

// publishOne makes next durable as a version that follows parent: first its
// parts, then its record, which only one publisher can write.
func (s *Service) publishOne(ctx context.Context, st standing, parent, next *Published, confirmed bool) (*Published, error) {
	pub := routemap.Publication{Version: cellway.NewVersion(st.head.Incarnation, 1), CreatedAt: time.Now(), Signers: s.signers}
	pub.Verdict.Confirmed = confirmed
	if parent != nil {
		pub.Parent = parent.Map
		pub.Version = max(pub.Version, parent.Map.Version()+1)
	}
	if high := st.head.Highest; pub.Version <= high.Version {
		return nil, fmt.Errorf("map %v would not be above %v, which %s has: %w", pub.Version, high.Version, high.Router, cellway.ErrNotReady)
	}
	p := *next
	p.At = time.Now().UTC()
	var err error
	if p.Map, p.Version, err = routemap.Publish(next.Map, pub); err != nil {
		return nil, err
	}
	// While a router has a newer map than the store, as after a loss, that map is
	// the parent, and the store gets it back.
	lacking := parent != nil && parent.Map.Version() > st.pointer.Version
	if err := s.putParts(ctx, &p, parent, lacking); err != nil {
		return nil, fmt.Errorf("map %v: %w", pub.Version, err)
	}
	write := func(tx store.Tx) error {
		h, _, err := getHead(tx)
		if err != nil {
			return err
		}
		if h.Incarnation != st.head.Incarnation || (h.Restored == nil) != (st.head.Restored == nil) || h.Highest != st.head.Highest {
			return fmt.Errorf("map %v: the state of the store changed meanwhile: %w", pub.Version, cellway.ErrConflict)
		}
		pointer, rev, err := getPointer(tx)
		if err != nil {
			return err
		}
		if pointer.Version == pub.Version && pointer.Digest == p.Version.Manifest.Digest() {
			return nil // the answer of an earlier try was lost
		}
		if pointer != st.pointer {
			return fmt.Errorf("map %v: the newest in the store is %v: %w", pub.Version, pointer.Version, cellway.ErrConflict)
		}
		if lacking {
			lost := *parent
			lost.partial = true
			if err := putVersion(tx, &lost); err != nil {
				return err
			}
		}
		if err := putVersion(tx, &p); err != nil {
			return err
		}
		pointer.Version, pointer.Digest = pub.Version, p.Version.Manifest.Digest()
		if !p.partial {
			pointer.Whole = pub.Version
		}
		_, err = put(tx, kindPointer, newestID, rev, pointer)
		return err
	}
	err = s.update(ctx, write)
	for try := 0; try < 5 && errors.Is(err, cellway.ErrStoreDown) && sleep(ctx, 50*time.Millisecond<<try); try++ {
		// It is not known whether the version is there: ask again, as the same one.
		err = s.update(ctx, write)
	}
	if err != nil {
		return nil, fmt.Errorf("map %v: %w", pub.Version, err)
	}
	return &p, nil
}

// putParts makes the parts of p durable, and those of its parent if the store
// lacks it.
func (s *Service) putParts(ctx context.Context, p, parent *Published, lacking bool) error {
	type blob struct {
		digest routemap.Digest
		bytes  []byte
	}
	man := p.Version.Manifest
	blobs := []blob{{man.Overlay.Digest, p.Version.Overlay}}
	switch {
	case lacking:
		m := parent.Version.Manifest
		blobs = append(blobs, blob{man.Base.Digest, p.Version.Base}, blob{m.Base.Digest, parent.Version.Base}, blob{m.Overlay.Digest, parent.Version.Overlay})
	case parent != nil && parent.Version.Manifest.Base.Digest == man.Base.Digest:
		// It is there for the parent's sake.
	case s.kept.has(p.Map.Base()):
	default:
		blobs = append(blobs, blob{man.Base.Digest, p.Version.Base})
	}
	for _, b := range blobs {
		if err := s.putBlob(ctx, b.digest, b.bytes); err != nil {
			return err
		}
	}
	return nil
}
