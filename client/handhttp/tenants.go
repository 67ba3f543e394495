package handhttp

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway/shuffle/hand"
)

// A tenant is what a transport knows of one.
type tenant struct {
	hand.Tenant
	dealt atomic.Pointer[dealt]
	ask   atomic.Int64 // not before, for a hand of the newest source: it failed to tell
}

// A dealt hand is a tenant's as source has it.
type dealt struct {
	source    *source
	endpoints []*endpoint
	members   []*hand.Member // the same
}

// A source is hands in use. Its address is their identity.
type source struct{ Hands }

// endpoints are the workers that hands name, by id and address.
type endpoints struct {
	mu  sync.Mutex
	now map[string]*endpoint
	old map[string]*endpoint // of the source before
}

// turn begins a new layer: what no hand of the new source names is forgotten
// with the next one.
func (e *endpoints) turn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.old, e.now = e.now, nil
}

// get returns m's endpoint.
func (e *endpoints) get(m Member) (*endpoint, error) {
	key := m.ID + "\x00" + m.Zone + "\x00" + m.URL
	e.mu.Lock()
	defer e.mu.Unlock()
	ep := e.now[key]
	if ep != nil {
		return ep, nil
	}
	if ep = e.old[key]; ep == nil {
		u, err := m.parse()
		if err != nil {
			return nil, err
		}
		ep = &endpoint{url: u}
		ep.ID, ep.Zone = m.ID, m.Zone
	}
	if e.now == nil {
		e.now = map[string]*endpoint{}
	}
	e.now[key] = ep
	return ep, nil
}

// members gives those in use.
func (e *endpoints) members() iter.Seq[*hand.Member] {
	return func(yield func(*hand.Member) bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, ep := range e.now {
			if !yield(&ep.Member) {
				return
			}
		}
	}
}
