package feed

import (
	"context"
	"fmt"
	"sync"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A memSource is a source in memory that counts what it is asked for.
type memSource struct {
	name string

	mu        sync.Mutex
	changed   chan struct{}
	manifest  []byte
	version   cellway.Version
	parts     map[routemap.Digest][]byte
	err       error           // of everything, if not nil
	hung      chan struct{}   // everything waits for it, if not nil
	hangPart  routemap.Digest // never given
	slowPart  chan struct{}   // parts wait for it, if not nil
	manifests int             // asked for
	fetched   []routemap.Digest
}

func newMemSource(name string) *memSource {
	return &memSource{name: name, changed: make(chan struct{}), parts: map[routemap.Digest][]byte{}}
}

// set makes v the newest.
func (s *memSource) set(v routemap.Version) {
	s.mu.Lock()
	s.parts[v.Manifest.Base.Digest] = v.Base
	s.parts[v.Manifest.Overlay.Digest] = v.Overlay
	s.mu.Unlock()
	s.setRaw(v.Manifest.Encode(), v.Manifest.Version)
}

// setSpoiled makes v the newest, but has these bytes in the place of a part.
func (s *memSource) setSpoiled(v routemap.Version, part routemap.Part, b []byte) {
	s.mu.Lock()
	s.parts[v.Manifest.Base.Digest] = v.Base
	s.parts[v.Manifest.Overlay.Digest] = v.Overlay
	s.parts[part.Digest] = b
	s.mu.Unlock()
	s.setRaw(v.Manifest.Encode(), v.Manifest.Version)
}

// setRaw makes the source say that raw is the manifest of a version.
func (s *memSource) setRaw(raw []byte, v cellway.Version) {
	s.do(func() { s.manifest, s.version = raw, v })
}

// do changes the source and wakes who waits.
func (s *memSource) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *memSource) fail(err error) { s.do(func() { s.err = err }) }

// asked returns how many manifests and parts it was asked for.
func (s *memSource) asked() (manifests, parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifests, len(s.fetched)
}

func (s *memSource) String() string { return s.name }

func (s *memSource) Manifest(ctx context.Context, after cellway.Version) ([]byte, error) {
	s.mu.Lock()
	s.manifests++
	s.mu.Unlock()
	for {
		s.mu.Lock()
		raw, v, err, changed, hung := s.manifest, s.version, s.err, s.changed, s.hung
		s.mu.Unlock()
		if hung != nil {
			changed, raw = hung, nil
		} else if err != nil || after == 0 || v > after {
			return raw, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *memSource) Part(ctx context.Context, p routemap.Part) ([]byte, error) {
	s.mu.Lock()
	s.fetched = append(s.fetched, p.Digest)
	b, err, hung, never := s.parts[p.Digest], s.err, s.hung, s.hangPart == p.Digest
	if s.slowPart != nil {
		hung = s.slowPart
	}
	s.mu.Unlock()
	if never {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if hung != nil {
		select {
		case <-hung:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err == nil && b == nil {
		err = fmt.Errorf("part %v: %w", p.Digest, cellway.ErrNotFound)
	}
	return b, err
}
