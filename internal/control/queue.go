package control

import (
	"slices"
	"sync"
	"time"
)

// queued is an accepted change that waits to be published. What it does is in
// the log of changes; only the newest accepted map is kept in memory, however
// many wait.
type queued struct {
	seq       uint64
	at        time.Time // accepted
	urgent    bool
	confirmed bool
	drain     bool
}

func (c changeEntry) queued(seq uint64) queued {
	return queued{seq, c.At, c.Urgent, c.Confirmed, c.Drain}
}

// A queue holds what waits to be published, in the order of acceptance.
type queue struct {
	wake chan struct{} // has room for one
	fold chan struct{} // has room for one

	mu      sync.Mutex
	waiting []queued
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), fold: make(chan struct{}, 1)}
}

func (q *queue) add(c ...queued) {
	if len(c) == 0 {
		return
	}
	q.mu.Lock()
	for _, c := range c {
		if n := len(q.waiting); n == 0 || q.waiting[n-1].seq < c.seq {
			q.waiting = append(q.waiting, c)
		}
	}
	q.mu.Unlock()
	q.look()
}

// reset replaces what waits.
func (q *queue) reset(c []queued) {
	q.mu.Lock()
	q.waiting = slices.Clone(c)
	q.mu.Unlock()
	q.look()
}

// look wakes the publisher and the folder.
func (q *queue) look() {
	for _, c := range []chan struct{}{q.wake, q.fold} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// any reports whether something for which is holds waits up to seq.
func (q *queue) any(seq uint64, is func(queued) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.waiting, func(c queued) bool { return c.seq <= seq && is(c) })
}

// urgent reports whether something waits that must not.
func (q *queue) urgent() bool {
	return q.any(^uint64(0), func(c queued) bool { return c.urgent })
}

// take removes what p contains and returns it.
func (q *queue) take(p *Published) (gone []queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(c queued) bool {
		if !p.Contains(c.seq) {
			return false
		}
		gone = append(gone, c)
		return true
	})
	return gone
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
