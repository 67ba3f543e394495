package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// errStopping ends what is under way when the router has no more time.
var errStopping = errors.New("the router is stopping")

// A Server serves requests, and can be told to end. An http.Server is one.
type Server interface {
	// Shutdown accepts no more and waits until ctx ends for what there is.
	Shutdown(ctx context.Context) error
	// Close breaks off what is left.
	Close() error
}

// Stop takes the router out of service. Ready fails at once, while the router
// serves on for Config.StopWait. Then servers, which serve the router's
// requests, are shut down: they accept no more, HTTP/2 connections are told to
// go, HTTP/1 answers close theirs, and tunnels are ended a few at a time. What
// is under way may end by itself until ctx ends; then it is cut off.
//
// Stop returns when nothing is under way: nil if nothing had to be cut off.
// It is called once.
func (rt *Router) Stop(ctx context.Context, servers ...Server) error {
	rt.phase.Store(leaving)
	rt.log.Info("router not ready any more", "in_flight", rt.inFlight.Load(), "tunnels", rt.tunnels.Load())
	sleep(ctx, span(rt.cfg.StopWait, 5*time.Second))
	rt.phase.Store(stopping)

	var down sync.WaitGroup
	for _, s := range servers {
		down.Go(func() {
			// Its error is that of ctx, or of a listener that is closed anyway.
			_ = s.Shutdown(ctx)
		})
	}
	rt.endTunnels(ctx)
	all := func(cellway.Key, cellway.CellID) bool { return false }
	for rt.inFlight.Load()+rt.tunnels.Load() > 0 && sleep(ctx, 10*time.Millisecond) {
		rt.sweepTunnels(all, errStopping) // what has become a tunnel since
	}
	cut := 0
	if ctx.Err() != nil {
		cut = rt.sweepRequests(all, errStopping) + rt.sweepTunnels(all, errStopping)
		// Those who are cut off still have an answer to write, or to break off.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		for rt.inFlight.Load()+rt.tunnels.Load() > 0 && sleep(last, 10*time.Millisecond) {
		}
		cancel()
	}
	down.Wait()
	for _, s := range servers {
		// It closes what Shutdown has left, and nobody is left to tell.
		_ = s.Close()
	}
	rt.log.Info("router stopped", "cut_off", cut)
	if cut > 0 {
		return fmt.Errorf("%d requests were cut off: %w", cut, context.Cause(ctx))
	}
	return nil
}

// endTunnels ends all tunnels in turns over Config.StopSpread, but within half
// of the time that ctx leaves.
func (rt *Router) endTunnels(ctx context.Context) {
	const turns = 20
	spread := span(rt.cfg.StopSpread, 5*time.Second)
	if end, ok := ctx.Deadline(); ok {
		spread = min(spread, time.Until(end)/2)
	}
	for turn := turns; turn > 0; turn-- {
		left := rt.tunnelsLeft()
		if left == 0 && rt.tunnels.Load() == 0 {
			return
		}
		end := (left + turn - 1) / turn
		rt.sweepTunnels(func(cellway.Key, cellway.CellID) bool { end--; return end < 0 }, errStopping)
		if turn > 1 && !sleep(ctx, spread/turns) {
			return
		}
	}
}

// sleep waits for d and reports true, or false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
