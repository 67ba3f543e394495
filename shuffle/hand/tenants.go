package hand

import (
	"hash/maphash"
	"strings"
	"sync"
)

// A Tenant is what is known of a tenant. [Cell.Welcome] makes it useful.
type Tenant struct {
	Name string

	bucket  Bucket
	dossier dossier
}

// Suspected reports whether the tenant's requests are to be sent once only, since
// they are taken for poison. now is the cell's time.
func (t *Tenant) Suspected(now int64) bool { return t.dossier.suspected(now) }

// Budget returns how many retries the tenant could pay for, the floor not counted
// that is due.
func (t *Tenant) Budget() float64 { return t.bucket.Held() }

// shelves is the number of parts of the table of tenants, so that callers
// don't wait for one lock.
const shelves = 64

// Tenants keeps what is known of the tenants that came lately: at least as many as
// half of what it may hold, and forgets others. A shelf has two layers; when the new
// one is full it becomes the old one, and what was old is gone unless it was asked
// for. T is the caller's own, with a [Tenant] in it. Only [NewTenants] makes useful
// ones.
type Tenants[T any] struct {
	seed  maphash.Seed
	most  int // in a layer of a shelf
	make  func(name string) *T
	shelf [shelves]shelf[T]
}

type shelf[T any] struct {
	mu       sync.RWMutex
	now, old map[string]*T
}

// NewTenants returns a table of at most so many tenants, each of which make makes
// when it first comes.
func NewTenants[T any](most int, make func(name string) *T) *Tenants[T] {
	return &Tenants[T]{seed: maphash.MakeSeed(), most: max(most/shelves/2, 1), make: make}
}

// Get returns the tenant of that name, of whose memory nothing is kept.
func (t *Tenants[T]) Get(name string) *T {
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
	name = strings.Clone(name)
	if ten = s.old[name]; ten == nil {
		ten = t.make(name)
	}
	if s.now == nil || len(s.now) >= t.most {
		s.old, s.now = s.now, map[string]*T{}
	}
	s.now[name] = ten
	return ten
}

// Len returns how many tenants are kept, some of them twice.
func (t *Tenants[T]) Len() (n int) {
	for i := range t.shelf {
		s := &t.shelf[i]
		s.mu.RLock()
		n += len(s.now) + len(s.old)
		s.mu.RUnlock()
	}
	return n
}
