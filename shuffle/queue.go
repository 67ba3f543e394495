package shuffle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// What [Queues] may answer. A caller tells its tenant to come back later when
// ErrTenantFull, and sheds load when ErrFull.
var (
	ErrTenantFull = errors.New("too much of this tenant is waiting") // its own doing
	ErrFull       = errors.New("all queues of the hand are full")    // others' doing
	ErrClosed     = errors.New("queues are closed")                  // nothing more goes in, or nothing more comes out
)

// A QueuesConfig sets up [Queues].
type QueuesConfig struct {
	// Deck deals queues to tenants. If zero, 8 of 64.
	Deck Deck
	// PerQueue is how many items may wait in one queue. If zero, 256.
	PerQueue int
	// PerTenant is how many items of one tenant may wait in one queue of its
	// hand. If zero, a quarter of PerQueue.
	PerTenant int
}

// Queues is a set of queues of which each tenant uses a hand. What a tenant
// sends goes to the queue of its hand with the least work left, counting what
// runs as well as what waits, so whoever has a queue free of the heavy tenants
// does not wait behind them. Of queues with equal work each gets its turn.
//
// Queues share those who take from them fairly: while two queues have something
// waiting, what is taken from them differs in cost by at most the largest item of
// each. Who was idle has neither credit nor debt. Inside a queue the first in is
// the first out.
//
// At most Deck.Of times PerQueue items wait. Any number of goroutines may use
// Queues. Only [NewQueues] makes useful ones.
type Queues[T any] struct {
	cfg QueuesConfig

	mu      sync.Mutex
	queues  []queue[T]
	ready   []*queue[T]     // a heap of those with something waiting, by who is next
	tenants map[inQueue]int // items waiting; no zeros
	takers  []chan *Item[T] // of those in Pop when nothing waits, the first come first
	now     uint64          // virtual: the start of the item that was taken last
	arrived uint64          // items that ever came
	waiting int
	running int
	closed  bool
}

// inQueue is a tenant in one of its queues.
type inQueue struct {
	queue  int
	tenant string
}

// A queue is one of a set. Virtual times wrap around and are compared by their
// difference.
type queue[T any] struct {
	index      int
	head, tail *Item[T]
	waiting    int
	work       uint64 // cost of what waits and what runs
	start      uint64 // virtual time at which its next item starts
	at         int    // its place in Queues.ready; -1 if it has none
}

// An Item is something in a queue, or taken from one.
type Item[T any] struct {
	// Value is what was pushed, and Tenant whose it is.
	Value  T
	Tenant string

	set        *Queues[T]
	queue      *queue[T]
	prev, next *Item[T]
	arrived    uint64
	cost       uint32
	state      itemState
}

// An itemState tells where an item is in its life.
type itemState uint8

const (
	itemWaits itemState = iota
	itemRuns
	itemGone
)

// NewQueues returns empty queues. Its error wraps [ErrInvalid] if cfg can't be.
func NewQueues[T any](cfg QueuesConfig) (*Queues[T], error) {
	if cfg.Deck.Of == 0 && cfg.Deck.Hand == 0 {
		cfg.Deck.Of, cfg.Deck.Hand = 64, 8
	}
	cfg.PerQueue = cmp.Or(cfg.PerQueue, 256)
	cfg.PerTenant = cmp.Or(cfg.PerTenant, max(1, cfg.PerQueue/4))
	if err := cfg.Deck.check("queues"); err != nil {
		return nil, err
	}
	if cfg.PerQueue < 1 || cfg.PerTenant < 1 {
		return nil, fmt.Errorf("queues: %w: %d items may wait in a queue, %d of a tenant, want at least 1", ErrInvalid, cfg.PerQueue, cfg.PerTenant)
	}
	q := &Queues[T]{cfg: cfg, queues: make([]queue[T], cfg.Deck.Of), tenants: map[inQueue]int{}}
	for i := range q.queues {
		q.queues[i].index, q.queues[i].at = i, -1
	}
	return q, nil
}

// Push adds value to a queue of tenant's hand. The cost is what running it takes, in
// whatever unit the caller likes, as far as it can tell; 0 counts as 1. If every
// queue of the hand is full the error is [ErrFull], or [ErrTenantFull] if one of them
// would take another tenant's.
func (q *Queues[T]) Push(tenant string, cost uint32, value T) (*Item[T], error) {
	var room [MaxDeck]int
	hand := q.cfg.Deck.deal(&room, Seed(q.cfg.Deck.Salt, tenant))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	c, err := q.leastWork(hand, tenant)
	if err != nil {
		return nil, err
	}
	item := &Item[T]{Value: value, Tenant: tenant, set: q, queue: c, arrived: q.arrived, cost: max(1, cost)}
	q.append(item)
	if len(q.takers) > 0 {
		taker := q.takers[0]
		q.takers = slices.Delete(q.takers, 0, 1)
		taker <- q.take()
	}
	return item, nil
}

// leastWork chooses among the queues of hand one that has room for tenant.
func (q *Queues[T]) leastWork(hand []int, tenant string) (*queue[T], error) {
	var best *queue[T]
	err := ErrFull
	from := int(q.arrived % uint64(len(hand))) // so that equals take turns
	for i := range hand {
		c := &q.queues[hand[(from+i)%len(hand)]]
		switch {
		case c.waiting >= q.cfg.PerQueue:
		case q.tenants[inQueue{c.index, tenant}] >= q.cfg.PerTenant:
			err = ErrTenantFull
		case best == nil || c.work < best.work:
			best = c
		}
	}
	if best == nil {
		return nil, err
	}
	return best, nil
}

// Pop takes the next item, and waits for one. Whoever takes an item calls its
// [Item.Done]. The error is that of ctx, or [ErrClosed] when the queues are closed
// and empty.
func (q *Queues[T]) Pop(ctx context.Context) (*Item[T], error) {
	q.mu.Lock()
	if q.waiting > 0 {
		item := q.take()
		q.mu.Unlock()
		return item, nil
	}
	if q.closed {
		q.mu.Unlock()
		return nil, ErrClosed
	}
	taker := make(chan *Item[T], 1)
	q.takers = append(q.takers, taker)
	q.mu.Unlock()

	select {
	case item := <-taker:
		return given(item)
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.takers, taker); i >= 0 {
		q.takers = slices.Delete(q.takers, i, i+1)
		return nil, context.Cause(ctx)
	}
	return given(<-taker) // it was given an item in the same moment
}

// given is Pop's answer for what its channel gave.
func given[T any](item *Item[T]) (*Item[T], error) {
	if item == nil {
		return nil, ErrClosed
	}
	return item, nil
}

// TryPop takes the next item if there is one.
func (q *Queues[T]) TryPop() (item *Item[T], ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		return nil, false
	}
	return q.take(), true
}

// Close refuses further items. What waits can still be taken.
func (q *Queues[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, taker := range q.takers {
		close(taker)
	}
	q.takers = nil
}

// Len returns how many items wait, and how many were taken and are not done.
func (q *Queues[T]) Len() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.running
}

// Done tells that an item which was taken has run, and what it did cost; 0 stands for
// the cost it was pushed with. If it did cost more or less, its queue's next turn comes later or
// sooner. Done does nothing to an item that waits, or is done.
func (i *Item[T]) Done(cost uint32) {
	q, c := i.set, i.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if i.state != itemRuns {
		return
	}
	i.state = itemGone
	q.running--
	c.work -= uint64(i.cost)
	if cost != 0 && cost != i.cost {
		c.start = later(c.start+uint64(cost)-uint64(i.cost), q.now)
		if c.at >= 0 {
			q.settle(c.at)
		}
	}
}

// Cancel takes an item that still waits out of its queue, and reports whether it
// did.
func (i *Item[T]) Cancel() bool {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	if i.state != itemWaits {
		return false
	}
	i.state = itemGone
	i.queue.work -= uint64(i.cost)
	i.set.remove(i)
	return true
}
