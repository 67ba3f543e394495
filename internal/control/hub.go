package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Published is a version that is durable and may be served.
type Published struct {
	Map     *routemap.Map
	Version routemap.Version
	Seq     uint64 // the last change of which it contains all that went before
	At      time.Time

	// Of the changes after HeldFrom up to HeldTo it contains the drains, and there
	// was nothing else: so it was while something waited for a person. HeldTo is
	// 0 in any other version.
	HeldFrom, HeldTo uint64

	chain   routemap.Digest // of the log up to Seq
	partial bool            // it is not what the log of changes makes up to Seq
}

// Contains reports whether p contains the change with that number.
func (p *Published) Contains(seq uint64) bool {
	return seq <= p.Seq || p.HeldFrom < seq && seq <= p.HeldTo
}

// keepParts is how many versions' parts are kept in memory for routers that
// are still fetching them.
const keepParts = 8

// A hub tells everybody who waits of each new version at once: one channel is
// closed, however many listen.
type hub struct {
	mu     sync.Mutex
	now    *Published
	recent []*Published  // replaced, never changed
	next   chan struct{} // closed when now changes
}

func newHub() *hub { return &hub{next: make(chan struct{})} }

func (h *hub) newest() *Published {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// published reports whether a version with that digest was announced lately.
func (h *hub) published(v cellway.Version, digest routemap.Digest) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.recent, func(p *Published) bool {
		return p.Map.Version() == v && (digest == routemap.Digest{} || p.Version.Manifest.Digest() == digest)
	})
}

func (h *hub) announce(p *Published) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil && p.Map.Version() <= h.now.Map.Version() {
		return
	}
	recent := h.recent[max(0, len(h.recent)-keepParts+1):]
	h.recent = append(slices.Clone(recent), p)
	h.set(p)
}

// set is called while holding h.mu.
func (h *hub) set(p *Published) {
	h.now = p
	close(h.next)
	h.next = make(chan struct{})
}

// disown keeps the newest version, and forgets which changes it contains: the
// store has lost them, and numbers others like them.
func (h *hub) disown() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		p := *h.now
		p.Seq, p.HeldFrom, p.HeldTo, p.chain, p.partial = 0, 0, 0, routemap.Digest{}, true
		h.set(&p)
	}
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
	return s.blob(ctx, digest)
}
