package handhttp

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// A tenant is what a transport knows of one.
type tenant struct {
	name    string
	bucket  bucket
	dossier dossier
	hand    atomic.Pointer[hand]
	ask     atomic.Int64 // not before, for a hand of the newest source: it failed to tell
}

// A hand is a tenant's hand as it was dealt by source.
type hand struct {
	source  *source
	members []*endpoint
}

// A source is hands in use. Its address is their identity.
type source struct{ Hands }

// shelves is the number of parts of the table of tenants, so that callers
// don't wait for one lock.
const shelves = 64

// tenants keeps the tenants that came lately: at least as many as half of what
// it may hold, and forgets others. A shelf has two layers; when the new one is
// full it becomes the old one, and what was old is gone unless it was asked for.
type tenants struct {
	seed  maphash.Seed
	most  int // in a layer of a shelf
	shelf [shelves]shelf
}

type shelf struct {
	mu       sync.RWMutex
	now, old map[string]*tenant
}

// get returns the tenant, which make makes if there is none.
func (t *tenants) get(name string, make func(string) *tenant) *tenant {
	s := &t.shelf[maphash.String(t.seed, name)%shelves]
	s.mu.RLock()
	ten := s.now[name]
	s.mu.RUnlock()
	if ten != nil {
		return ten
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ten = s.now[name]; ten != nil {
		return ten
	}
	if ten = s.old[name]; ten == nil {
		ten = make(name)
	}
	if s.now == nil || len(s.now) >= t.most {
		s.old, s.now = s.now, map[string]*tenant{}
	}
	s.now[name] = ten
	return ten
}

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
		ep = &endpoint{id: m.ID, zone: m.Zone, url: u}
	}
	if e.now == nil {
		e.now = map[string]*endpoint{}
	}
	e.now[key] = ep
	return ep, nil
}

// all calls f for each endpoint in use.
func (e *endpoints) all(f func(*endpoint)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ep := range e.now {
		f(ep)
	}
}
