package hand

import (
	"sync"
	"sync/atomic"
	"time"
)

// token is one retry or hedge, in the unit in which buckets count.
const token = 1000

// A Rule says how buckets of a kind fill. The zero Rule never does.
type Rule struct {
	deposit int64 // for each success, in thousandths of a token; so are the others
	most    int64 // that a bucket holds
	floor   int64 // for each second, successes or none
}

// NewRule returns the rule by which a bucket gets deposit tokens for each success
// and floor tokens a second, and holds burst of them at most. A token is one retry.
// Negative numbers count as zero.
func NewRule(deposit, burst, floor float64) Rule {
	t := func(f float64) int64 { return int64(max(f, 0) * token) }
	return Rule{deposit: t(deposit), most: t(burst), floor: t(floor)}
}

// A Bucket holds the tokens for retries and hedges of one tenant or one cell. The
// zero Bucket is empty.
//
// It is filled by successes, not by what is in flight: a snapshot of requests
// in flight shrinks as they fail, just when retries are wanted. And it is paid
// from when a retry is decided on, so that those that wait are counted.
type Bucket struct {
	held atomic.Int64

	mu sync.Mutex
	at int64 // up to when the floor was paid, in nanoseconds of the cell's clock
}

// Fill fills b, whose floor is paid from now on.
func (b *Bucket) Fill(r Rule, now int64) {
	b.held.Store(r.most)
	b.at = now
}

// Put puts a number of tokens in, as far as there is room.
func (b *Bucket) Put(r Rule, tokens float64) { b.add(r, int64(tokens*token)) }

// Earn puts in what a success pays.
func (b *Bucket) Earn(r Rule) { b.add(r, r.deposit) }

// Give returns a token that was taken and not used.
func (b *Bucket) Give(r Rule) { b.add(r, token) }

// Held returns how many tokens there are, the floor not counted that is due since
// one was last taken.
func (b *Bucket) Held() float64 { return float64(b.held.Load()) / token }

// add puts n in, up to the most. A full bucket is only read.
func (b *Bucket) add(r Rule, n int64) {
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

// Take takes one token and reports whether there was one. now is the cell's time.
func (b *Bucket) Take(r Rule, now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.floor > 0 && now > b.at {
		// Whole thousandths only, so that nothing is lost to rounding.
		step := int64(time.Second) / r.floor
		if n := (now - b.at) / max(step, 1); n > 0 {
			b.add(r, min(n, r.most))
			b.at += n * max(step, 1)
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

// A Budget is what a call may spend from: its tenant's bucket and the cell's.
type Budget struct {
	Tenant, Cell         *Bucket
	TenantRule, CellRule Rule
}

// Reserve takes a token from both, or from neither.
func (b Budget) Reserve(now int64) bool {
	if !b.Tenant.Take(b.TenantRule, now) {
		return false
	}
	if !b.Cell.Take(b.CellRule, now) {
		b.Tenant.Give(b.TenantRule)
		return false
	}
	return true
}

// Give returns a token that was reserved: it was not used, or what it bought
// was a success.
func (b Budget) Give() {
	b.Tenant.Give(b.TenantRule)
	b.Cell.Give(b.CellRule)
}

// Half reports whether both are at least half full, the floor not counted that is
// due.
func (b Budget) Half() bool {
	return b.Tenant.held.Load() >= b.TenantRule.most/2 && b.Cell.held.Load() >= b.CellRule.most/2
}
