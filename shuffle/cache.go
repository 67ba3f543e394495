package shuffle

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
)

// A Cache keeps the hands of tenants that come often. Any number of goroutines
// may use it. It holds at most as many hands as [NewCache] says; one tenant may
// displace another, which costs time only. Only NewCache makes useful ones.
type Cache struct {
	seed    maphash.Seed // differs from process to process, so nobody can aim at another's place
	entries []atomic.Pointer[cached]
}

// A cached hand never changes. It is good for its own snapshot only, so a cache
// that several versions share answers each with its own hands.
type cached struct {
	snapshot *Snapshot
	tenant   string
	hand     []Worker
}

// NewCache returns a cache for at least as many hands as given, rounded up to a power of
// two; if entries is not positive, for 1,024.
func NewCache(entries int) *Cache {
	if entries <= 0 {
		entries = 1024
	}
	size := 1 << bits.Len(uint(entries-1))
	return &Cache{seed: maphash.MakeSeed(), entries: make([]atomic.Pointer[cached], size)}
}

// Hand returns what s.AppendHand deals to tenant. Others hold the same slice:
// don't change it.
func (c *Cache) Hand(s *Snapshot, tenant string) []Worker {
	entry := &c.entries[maphash.String(c.seed, tenant)&uint64(len(c.entries)-1)]
	if got := entry.Load(); got != nil && got.snapshot == s && got.tenant == tenant {
		return got.hand
	}
	hand := slices.Clip(s.AppendHand(make([]Worker, 0, s.Size(tenant)), tenant))
	entry.Store(&cached{s, tenant, hand})
	return hand
}
