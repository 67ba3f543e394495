package shuffle

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// A Cache keeps the hands of tenants that come often. Any number of goroutines
// may use it. It holds at most as many hands as [NewCache] says; one tenant may
// displace another, which costs time only. Only NewCache makes useful ones.
type Cache struct {
	seed maphash.Seed // differs from process to process, so nobody can aim at another's place
	sets []cacheSet
}

// A cacheSet is the places that a tenant's hand may be in.
type cacheSet [4]atomic.Pointer[cached]

// A cached hand never changes. It is good for its own snapshot only, so a cache
// that several versions share answers each with its own hands.
type cached struct {
	snapshot *Snapshot
	tenant   string
	hand     []Worker
}

// NewCache returns a cache for at least as many hands as given, rounded up to a
// power of two; if entries is not positive, for 1,024.
func NewCache(entries int) *Cache {
	if entries <= 0 {
		entries = 1024
	}
	sets := (entries + len(cacheSet{}) - 1) / len(cacheSet{})
	return &Cache{seed: maphash.MakeSeed(), sets: make([]cacheSet, 1<<bits.Len(uint(sets-1)))}
}

// Hand returns what s.AppendHand deals to tenant. Others hold the same slice:
// don't change it.
func (c *Cache) Hand(s *Snapshot, tenant string) []Worker {
	hash := maphash.String(c.seed, tenant)
	set := &c.sets[hash&uint64(len(c.sets)-1)]
	put := int(hash >> 62) // if all places are taken
	for i := range set {
		switch got := set[i].Load(); {
		case got == nil:
			put = i
		case got.tenant != tenant:
		case got.snapshot == s:
			return got.hand
		default:
			put = i // of another version, perhaps an older one
		}
	}
	hand := s.AppendHand(make([]Worker, 0, s.Size(tenant)), tenant)
	set[put].Store(&cached{s, tenant, hand})
	return hand
}
