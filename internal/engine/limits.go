package engine

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// errFull says that a cell, in this router, is at its limit.
var errFull = errors.New("the cell is at its limit in this router")

// A gate lets a bounded number in and lets a bounded number wait, in turn and
// for a bounded time.
type gate struct {
	limit, pending int
	wait           time.Duration

	mu    sync.Mutex
	in    int
	queue list.List // of chan struct{}, closed when its owner is let in
}

// tryEnter lets the caller in if there is room and nobody waits. It must leave
// then.
func (g *gate) tryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.in >= g.limit || g.queue.Len() > 0 {
		return false
	}
	g.in++
	return true
}

// enter returns nil when the caller is in and must leave; errFull when there
// is no room, or none in time, which is at most most if that is not zero; the cause
// of ctx's end otherwise.
func (g *gate) enter(ctx context.Context, most time.Duration) error {
	g.mu.Lock()
	if g.in < g.limit && g.queue.Len() == 0 {
		g.in++
		g.mu.Unlock()
		return nil
	}
	if g.queue.Len() >= g.pending {
		g.mu.Unlock()
		return errFull
	}
	turn := make(chan struct{})
	place := g.queue.PushBack(turn)
	g.mu.Unlock()

	wait := g.wait
	if most > 0 {
		wait = min(wait, most)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	err := errFull
	select {
	case <-turn:
		if ctx.Err() == nil {
			return nil
		}
		g.leave()
		return context.Cause(ctx)
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	g.mu.Lock()
	select {
	case <-turn: // let in at the last moment
		g.mu.Unlock()
		g.leave()
	default:
		g.queue.Remove(place)
		g.mu.Unlock()
	}
	return err
}

// leave makes room for the next.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.queue.Front(); first != nil && g.in <= g.limit {
		close(g.queue.Remove(first).(chan struct{}))
		return
	}
	g.in--
}

// load returns how many are in and how many wait.
func (g *gate) load() (in, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.in, g.queue.Len()
}
