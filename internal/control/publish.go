package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// foldAt is the size of an overlay at which a fresh base is made in the
// background, so that no write has to.
const foldAt = routemap.OpenOverlay / 2

// A Sink is a place where each version is written beside the store, and from
// which routers may read it: a directory, a bucket.
type Sink interface {
	// Write stores v durably, so that a reader never finds half of it. Writing
	// the same version again does nothing.
	Write(ctx context.Context, v routemap.Version) error
	String() string
}

// A versionRecord is the record of a published version. Its parts are blobs.
type versionRecord struct {
	At       time.Time       `json:"at"`
	Seq      uint64          `json:"seq"`      // the last change that it contains
	Manifest []byte          `json:"manifest"` // encoded
	Base     routemap.Digest `json:"base"`
	Overlay  routemap.Digest `json:"overlay"`
}

// versionID sorts as the versions do.
func versionID(v cellway.Version) string { return fmt.Sprintf("%020d", uint64(v)) }

// newestID is the id of the pointer to the newest version. Replacing it at its
// revision is what makes a version the only one with its number.
const newestID = "newest"

const kindPointer = "pointer"

type pointerRecord struct {
	Version cellway.Version `json:"version"`
}

func newestVersion(tx store.Tx) (*versionRecord, error) {
	p, err := get(tx, kindPointer, newestID, func(*pointerRecord, cellway.Revision) {})
	if errors.Is(err, cellway.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := getVersion(tx, p.Version)
	return &v, err
}

func getVersion(tx store.Tx, v cellway.Version) (versionRecord, error) {
	return get(tx, kindVersion, versionID(v), func(*versionRecord, cellway.Revision) {})
}

// readVersion reads a version's parts and opens its map.
func (s *Service) readVersion(ctx context.Context, r versionRecord) (*routemap.Map, routemap.Version, error) {
	man, err := routemap.DecodeManifest(r.Manifest)
	if err != nil {
		return nil, routemap.Version{}, err
	}
	v := routemap.Version{Manifest: man}
	if v.Base, err = s.store.Blob(ctx, r.Base); err != nil {
		return nil, v, fmt.Errorf("map %v: base %v: %w", man.Version, r.Base, err)
	}
	if v.Overlay, err = s.store.Blob(ctx, r.Overlay); err != nil {
		return nil, v, fmt.Errorf("map %v: overlay %v: %w", man.Version, r.Overlay, err)
	}
	base, err := routemap.DecodeBase(v.Base)
	if err != nil {
		return nil, v, fmt.Errorf("map %v: %w", man.Version, err)
	}
	m, err := routemap.Open(man, base, v.Overlay)
	return m, v, err
}

// accepted is one change in memory, waiting to be published.
type accepted struct {
	head
	at        time.Time
	urgent    bool
	confirmed bool
	again     bool // publish it though its changes are published
}

// A publisher holds what waits to be published.
type publisher struct {
	mu      sync.Mutex
	waiting []accepted
	wake    chan struct{} // has room for one
}

func newPublisher() publisher { return publisher{wake: make(chan struct{}, 1)} }

func (p *publisher) add(a accepted) {
	p.mu.Lock()
	p.waiting = append(p.waiting, a)
	p.mu.Unlock()
	p.look()
}

// look wakes the publisher.
func (p *publisher) look() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// urgent reports whether something waits that must not.
func (p *publisher) urgent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.waiting {
		if a.urgent {
			return true
		}
	}
	return false
}

// Run publishes what is accepted until ctx ends, and returns its cause.
func (s *Service) Run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var last time.Time
	for {
		if err := s.publish(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "map not published", "error", err)
		} else {
			last = time.Now()
		}
		if err := s.foldInBackground(); err != nil {
			s.log.ErrorContext(ctx, "map not folded", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.publisher.wake:
		case <-look.C:
			s.catchUp(ctx)
		}
		// Others' changes gather for a moment; drains, holds and flips don't wait.
		for wait := time.Until(last.Add(publishEvery)); wait > 0 && !s.publisher.urgent(); wait = time.Until(last.Add(publishEvery)) {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return context.Cause(ctx)
			case <-s.publisher.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// catchUp takes over changes that the store has and this process does not know
// of: another node's, or one whose answer was lost.
func (s *Service) catchUp(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.view(ctx, func(tx store.Tx) error {
		h, _, err := getHead(tx)
		if err != nil {
			return err
		}
		s.head, err = s.head.replay(tx, h.Seq, s.publisher.add)
		return err
	}); err != nil {
		s.log.ErrorContext(ctx, "store not read", "error", err)
	}
}

// publish makes a version of what waits. If that is nothing, or the newest
// version holds it already, it does nothing.
func (s *Service) publish(ctx context.Context) error {
	parent := s.hub.newest()
	s.publisher.mu.Lock()
	waiting := s.publisher.waiting
	s.publisher.mu.Unlock()
	next, taken, confirmed, ok := choose(parent, waiting)
	if !ok {
		s.publisher.drop(taken)
		return nil
	}
	next, why := s.mayPublish(ctx, parent, next)
	if why != nil {
		return why
	}
	p, err := s.publishOne(ctx, parent, next, confirmed)
	if err != nil {
		return err
	}
	s.publisher.drop(taken)
	s.hub.announce(p)
	for _, sink := range s.sinks {
		if err := sink.Write(ctx, p.Version); err != nil {
			s.log.ErrorContext(ctx, "map not written to sink", "sink", sink.String(), "version", p.Version.Manifest.Version, "error", err)
		}
	}
	s.log.InfoContext(ctx, "map published", "version", p.Version.Manifest.Version, "seq", p.Seq, "changes", taken)
	if taken < len(waiting) {
		s.publisher.look()
	}
	return nil
}

// choose picks the newest of waiting whose changes since parent a router will
// accept. Each change alone passed the gate, but the sum of two need not
// against their common parent: then the later one makes a version of its own.
func choose(parent *Published, waiting []accepted) (next accepted, taken int, confirmed, ok bool) {
	for n := len(waiting); n > 0; n-- {
		next = waiting[n-1]
		if parent != nil && next.seq <= parent.Seq && !next.again {
			return next, n, false, false // published already
		}
		confirmed = false
		for _, a := range waiting[:n] {
			confirmed = confirmed || a.confirmed
		}
		if n == 1 || confirmed || parent == nil || len(routemap.Compare(parent.Map, next.m).Exceeded()) == 0 {
			if next.m == nil {
				return next, n, false, false
			}
			return next, n, confirmed, true
		}
	}
	return next, 0, false, false
}

func (p *publisher) drop(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append([]accepted(nil), p.waiting[n:]...)
}

// publishOne makes next durable as a version: first its parts, then its record,
// which only one publisher can write.
func (s *Service) publishOne(ctx context.Context, parent *Published, next accepted, confirmed bool) (*Published, error) {
	var h headRecord
	if err := s.view(ctx, func(tx store.Tx) (err error) { h, _, err = getHead(tx); return err }); err != nil {
		return nil, err
	}
	pub := routemap.Publication{Version: cellway.NewVersion(h.Incarnation, 1), CreatedAt: time.Now(), Signers: s.signers}
	if parent != nil {
		pub.Parent = parent.Map
		if v := parent.Map.Version(); v.Incarnation() == h.Incarnation {
			pub.Version = v + 1
		} else if v > pub.Version {
			return nil, fmt.Errorf("map %v was published by incarnation %d, this one is %d: %w", v, v.Incarnation(), h.Incarnation, cellway.ErrConflict)
		}
		pub.Verdict.Confirmed = confirmed
	}
	m, v, err := routemap.Publish(next.m, pub)
	if err != nil {
		return nil, err
	}
	for digest, blob := range map[routemap.Digest][]byte{v.Manifest.Base.Digest: v.Base, v.Manifest.Overlay.Digest: v.Overlay} {
		if parent != nil && digest == parent.Version.Manifest.Base.Digest {
			continue
		}
		if err := s.store.PutBlob(ctx, digest, blob); err != nil {
			return nil, err
		}
	}
	rec := versionRecord{At: time.Now().UTC(), Seq: next.seq, Manifest: v.Manifest.Encode(), Base: v.Manifest.Base.Digest, Overlay: v.Manifest.Overlay.Digest}
	write := func(tx store.Tx) error {
		p, err := get(tx, kindPointer, newestID, func(*pointerRecord, cellway.Revision) {})
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		if p.Version == pub.Version {
			// Either our own, whose answer was lost, or another node's.
			old, err := getVersion(tx, p.Version)
			if err != nil {
				return err
			}
			if sameManifest(old.Manifest, v.Manifest) {
				return nil
			}
		}
		if p.Version >= pub.Version || parent != nil && p.Version != parent.Map.Version() {
			return fmt.Errorf("map %v: the newest in the store is %v: %w", pub.Version, p.Version, cellway.ErrConflict)
		}
		if _, err := put(tx, kindVersion, versionID(pub.Version), 0, rec); err != nil {
			return err
		}
		at := cellway.Revision(0)
		if r, err := tx.Get(kindPointer, newestID); err == nil {
			at = r.Revision
		}
		_, err = put(tx, kindPointer, newestID, at, pointerRecord{pub.Version})
		return err
	}
	err = s.store.Update(ctx, write)
	for try := 0; try < 5 && errors.Is(err, cellway.ErrStoreDown) && ctx.Err() == nil; try++ {
		// It is not known whether the version is there: ask again, as the same one.
		time.Sleep(50 * time.Millisecond << try)
		err = s.store.Update(ctx, write)
	}
	if errors.Is(err, cellway.ErrConflict) {
		s.adoptNewest(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("map %v: %w", pub.Version, err)
	}
	return &Published{Map: m, Version: v, Seq: next.seq, At: rec.At}, nil
}

func sameManifest(encoded []byte, m *routemap.Manifest) bool {
	old, err := routemap.DecodeManifest(encoded)
	return err == nil && old.Digest() == m.Digest()
}

// adoptNewest announces the newest version of the store, when it is another
// node's or one of ours that we gave up.
func (s *Service) adoptNewest(ctx context.Context) {
	var newest *versionRecord
	err := s.view(ctx, func(tx store.Tx) (err error) { newest, err = newestVersion(tx); return err })
	if err == nil && newest != nil {
		var m *routemap.Map
		var v routemap.Version
		if m, v, err = s.readVersion(ctx, *newest); err == nil {
			s.hub.announce(&Published{Map: m, Version: v, Seq: newest.Seq, At: newest.At})
		}
	}
	if err != nil {
		s.log.ErrorContext(ctx, "newest map not read", "error", err)
	}
}

// foldInBackground gives the accepted map a fresh base when its overlay is half
// full. Folding changes no answer, so nothing is written for it.
func (s *Service) foldInBackground() error {
	s.mu.Lock()
	at := s.head
	s.mu.Unlock()
	if at.m == nil || at.m.OverlaySize() < foldAt {
		return nil
	}
	return s.fold(at)
}

// Fold gives the accepted map a fresh base now.
func (s *Service) Fold(ctx context.Context) error {
	s.mu.Lock()
	at := s.head
	s.mu.Unlock()
	if at.m == nil {
		return fmt.Errorf("the fleet has no map yet: %w", cellway.ErrNotReady)
	}
	return s.fold(at)
}

func (s *Service) fold(at head) error {
	folded, err := at.m.Fold()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := head{at.seq, folded}
	if s.head.seq != at.seq {
		if err := s.view(context.Background(), func(tx store.Tx) (err error) {
			next, err = next.replay(tx, s.head.seq, func(accepted) {})
			return err
		}); err != nil {
			return err
		}
	}
	s.head = next
	return nil
}

// A MapVersion is one published version for people.
type MapVersion struct {
	Manifest *routemap.Manifest
	Seq      uint64
	At       time.Time
}

// Versions lists published versions, the newest first, those below before (0:
// all).
func (s *Service) Versions(ctx context.Context, before cellway.Version, limit int) (out []MapVersion, err error) {
	limit = pageLimit(limit)
	err = s.view(ctx, func(tx store.Tx) error {
		newest, err := newestVersion(tx)
		if err != nil || newest == nil {
			return err
		}
		man, err := routemap.DecodeManifest(newest.Manifest)
		if err != nil {
			return err
		}
		v := man.Version
		if before != 0 && before <= v {
			v = before - 1
		}
		for len(out) < limit && v > 0 {
			r, err := getVersion(tx, v)
			if errors.Is(err, cellway.ErrNotFound) {
				break
			}
			if err != nil {
				return err
			}
			if man, err = routemap.DecodeManifest(r.Manifest); err != nil {
				return err
			}
			out = append(out, MapVersion{man, r.Seq, r.At})
			v = man.Parent
		}
		return nil
	})
	return out, err
}

// OpenVersion reads a published version back.
func (s *Service) OpenVersion(ctx context.Context, version cellway.Version) (m *routemap.Map, v routemap.Version, err error) {
	var r versionRecord
	if err := s.view(ctx, func(tx store.Tx) error { r, err = getVersion(tx, version); return err }); err != nil {
		return nil, v, err
	}
	return s.readVersion(ctx, r)
}
