package control

import (
	"context"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Published is a version that is durable and may be served.
type Published struct {
	Map     *routemap.Map
	Version routemap.Version
	Seq     uint64 // the last change that it contains
	At      time.Time
}

// keepParts is how many versions' parts are kept in memory for routers that
// are still fetching them.
const keepParts = 8

// A hub tells everybody who waits of each new version at once: one channel is
// closed, however many listen.
type hub struct {
	mu     sync.Mutex
	now    *Published
	recent []*Published
	next   chan struct{} // closed when now changes
}

func newHub() *hub { return &hub{next: make(chan struct{})} }

func (h *hub) newest() *Published {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hub) announce(p *Published) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil && p.Map.Version() <= h.now.Map.Version() {
		return
	}
	h.now = p
	if h.recent = append(h.recent, p); len(h.recent) > keepParts {
		h.recent = h.recent[1:]
	}
	close(h.next)
	h.next = make(chan struct{})
}

func (h *hub) look() (*Published, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.next
}

// await returns the first version that is good, or the cause of ctx's end.
func (h *hub) await(ctx context.Context, good func(*Published) bool) (*Published, error) {
	for {
		p, next := h.look()
		if p != nil && good(p) {
			return p, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return p, context.Cause(ctx)
		}
	}
}

// Newest returns the newest published version, or nil before the first.
func (s *Service) Newest() *Published { return s.hub.newest() }

// Await returns the newest version as soon as it is above after. When ctx ends
// first it returns its cause.
func (s *Service) Await(ctx context.Context, after cellway.Version) (*Published, error) {
	return s.hub.await(ctx, func(p *Published) bool { return p.Map.Version() > after })
}

// Part returns a part of a version by its digest: from memory if the version
// is recent, else from the store.
func (s *Service) Part(ctx context.Context, digest routemap.Digest) ([]byte, error) {
	s.hub.mu.Lock()
	recent := s.hub.recent
	s.hub.mu.Unlock()
	for _, p := range recent {
		switch digest {
		case p.Version.Manifest.Base.Digest:
			return p.Version.Base, nil
		case p.Version.Manifest.Overlay.Digest:
			return p.Version.Overlay, nil
		}
	}
	return s.store.Blob(ctx, digest)
}
