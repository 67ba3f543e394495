package shuffle

import "sync/atomic"

// RegistryStats are counts since the registry was made, fit for a metric each.
// They are of this process; the store's are those of [Registry.Usage].
type RegistryStats struct {
	Dealt     uint64 // hands given, redealt ones included
	Tried     uint64 // candidates offered to the store for them
	Searched  uint64 // searches, since no candidate would do
	Exhausted uint64 // hands refused since it is proved that none is left
	Cut       uint64 // hands refused since the search was cut short
	Failed    uint64 // calls that failed for the store
}

// registryCounts are the numbers behind [RegistryStats].
type registryCounts struct {
	dealt, tried, searched, exhausted, cut, failed atomic.Uint64
}

// Stats returns the counts.
func (r *Registry) Stats() RegistryStats {
	c := &r.counts
	return RegistryStats{
		Dealt: c.dealt.Load(), Tried: c.tried.Load(), Searched: c.searched.Load(),
		Exhausted: c.exhausted.Load(), Cut: c.cut.Load(), Failed: c.failed.Load(),
	}
}
