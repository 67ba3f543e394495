package shuffle

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

var _ RegistryStore = (*MemRegistry)(nil)

// A MemRegistry is a [RegistryStore] in memory. Its zero value is empty and
// ready. It keeps nothing beyond the process.
//
// Each claim is an entry of a hash table, so that to accept a hand costs the same
// with ten tenants as with a million. A tenant with four claims takes 400 bytes.
type MemRegistry struct {
	mu       sync.RWMutex
	rules    *Rules
	last     uint64 // the newest revision
	holdings map[string]*held
	claims   map[Claim]uint64 // the revision of the holding that has it; no pointers, for the collector's sake
}

// A held is a holding in memory with its claims. It never changes.
type held struct {
	Holding
	claims []Claim
}

// Bind implements [RegistryStore].
func (m *MemRegistry) Bind(ctx context.Context, rules Rules) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rules == nil {
		m.rules = &rules
	}
	if *m.rules != rules {
		return fmt.Errorf("registry in memory has overlap %d, not %d: %w", m.rules.Overlap, rules.Overlap, ErrRules)
	}
	return nil
}

// Holding implements [RegistryStore].
func (m *MemRegistry) Holding(ctx context.Context, tenant string) (Holding, error) {
	if ctx.Err() != nil {
		return Holding{}, context.Cause(ctx)
	}
	m.mu.RLock()
	h := m.holdings[tenant]
	m.mu.RUnlock()
	if h == nil {
		return Holding{}, ErrNoHand
	}
	return h.copied(), nil
}

func (h *held) copied() Holding {
	c := h.Holding
	c.Members = slices.Clone(c.Members)
	return c
}

// Reserve implements [RegistryStore].
func (m *MemRegistry) Reserve(ctx context.Context, h Holding, claims []Claim) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.holdings[h.Tenant]
	if revision(old) != h.Revision {
		return 0, ErrChanged
	}
	for _, c := range claims {
		if other := m.claims[c]; other != 0 && other != revision(old) {
			return 0, ErrOverlap
		}
	}
	if m.holdings == nil {
		m.holdings, m.claims = map[string]*held{}, map[Claim]uint64{}
	}
	m.last++
	fresh := &held{Holding: h, claims: slices.Clone(claims)}
	fresh.Members = slices.Clone(h.Members)
	fresh.Revision = m.last
	m.free(old)
	m.holdings[h.Tenant] = fresh
	for _, c := range claims {
		m.claims[c] = m.last
	}
	return m.last, nil
}

// Release implements [RegistryStore].
func (m *MemRegistry) Release(ctx context.Context, tenant string, at uint64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.holdings[tenant]
	switch {
	case old == nil:
		return ErrNoHand
	case old.Revision != at:
		return ErrChanged
	}
	m.last++
	m.free(old)
	delete(m.holdings, tenant)
	return nil
}

// free gives back the claims of h, which may be nil. It is called with m.mu held.
func (m *MemRegistry) free(h *held) {
	if h == nil {
		return
	}
	for _, c := range h.claims {
		delete(m.claims, c)
	}
}

// revision is 0 for a holding that is not there.
func revision(h *held) uint64 {
	if h == nil {
		return 0
	}
	return h.Revision
}

// Holdings implements [RegistryStore].
func (m *MemRegistry) Holdings(ctx context.Context) iter.Seq2[Holding, error] {
	return func(yield func(Holding, error) bool) {
		m.mu.RLock()
		all := make([]*held, 0, len(m.holdings))
		for _, h := range m.holdings {
			all = append(all, h)
		}
		m.mu.RUnlock()
		slices.SortFunc(all, func(a, b *held) int { return strings.Compare(a.Tenant, b.Tenant) })
		for _, h := range all {
			if ctx.Err() != nil {
				yield(Holding{}, context.Cause(ctx))
				return
			}
			if !yield(h.copied(), nil) {
				return
			}
		}
	}
}

// Count implements [RegistryStore].
func (m *MemRegistry) Count(ctx context.Context) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.holdings), nil
}
