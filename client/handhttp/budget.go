package handhttp

import (
	"sync"
	"sync/atomic"
	"time"
)

// token is one retry or hedge, in the unit in which buckets count.
const token = 1000

// A rule says how buckets of a kind fill. All in thousandths of a token.
type rule struct {
	deposit int64 // for each success
	most    int64 // that a bucket holds
	floor   int64 // for each second, successes or none
}

// A bucket holds the tokens for retries and hedges of one tenant or one cell.
//
// It is filled by successes, not by what is in flight: a snapshot of requests
// in flight shrinks as they fail, just when retries are wanted. And it is paid
// from when a retry is decided on, so that those that wait are counted.
type bucket struct {
	held atomic.Int64

	mu sync.Mutex
	at int64 // up to when the floor was paid, in nanoseconds of the transport
}

func (b *bucket) fill(r rule, now int64) {
	b.held.Store(r.most)
	b.at = now
}

// add puts n in, up to the most. A full bucket is only read.
func (b *bucket) add(r rule, n int64) {
	for {
		v := b.held.Load()
		if v >= r.most {
			return
		}
		if b.held.CompareAndSwap(v, min(v+n, r.most)) {
			return
		}
	}
}

// take takes one token and reports whether there was one.
func (b *bucket) take(r rule, now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.floor > 0 && now > b.at {
		// Whole thousandths only, so that nothing is lost to rounding.
		step := int64(time.Second) / r.floor
		if n := (now - b.at) / step; n > 0 {
			b.add(r, min(n, r.most))
			b.at += n * step
		}
	}
	for {
		v := b.held.Load()
		if v < token {
			return false
		}
		if b.held.CompareAndSwap(v, v-token) {
			return true
		}
	}
}

// A budget is what a call may spend from: its tenant's bucket and the cell's.
type budget struct {
	tenant, cell         *bucket
	tenantRule, cellRule rule
}

// reserve takes a token from both, or from neither.
func (b budget) reserve(now int64) bool {
	if !b.tenant.take(b.tenantRule, now) {
		return false
	}
	if !b.cell.take(b.cellRule, now) {
		b.tenant.add(b.tenantRule, token)
		return false
	}
	return true
}

// give returns a token that was reserved: it was not used, or what it bought
// was a success.
func (b budget) give() {
	b.tenant.add(b.tenantRule, token)
	b.cell.add(b.cellRule, token)
}
