package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// ErrStopping is in the error of what was under way when the program had no more
// time.
var ErrStopping = errors.New("stopping")

// A Server serves requests, and can be told to end. An http.Server is one.
type Server interface {
	// Shutdown accepts no more and waits until ctx ends for what there is.
	Shutdown(ctx context.Context) error
	// Close breaks off what is left.
	Close() error
}

// The phases of a program's life.
const (
	serving  int32 = iota
	leaving        // not ready any more, but serving as ever
	stopping       // connections are being closed
)

// A Desk knows what is under way in a program that serves. The zero Desk is ready
// to use.
type Desk struct {
	InFlight atomic.Int64 // requests served now, tunnels excepted
	Tunnels  atomic.Int64 // upgraded connections now

	phase    atomic.Int32   // one of the above
	requests engine.Flights // of net/http, tunnels excepted
	upgraded engine.Flights // tunnels of net/http

	mu      sync.Mutex // held by whoever replaces servers
	servers atomic.Pointer[[]*engine.Server]
}

// Add makes the calls of a server known.
func (d *Desk) Add(s *engine.Server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []*engine.Server
	if old := d.servers.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, s)
	d.servers.Store(&all)
}

func (d *Desk) all() []*engine.Server {
	if all := d.servers.Load(); all != nil {
		return *all
	}
	return nil
}

// Ready reports whether Stop has not been called.
func (d *Desk) Ready() bool { return d.phase.Load() == serving }

// Stopping reports whether connections are being closed.
func (d *Desk) Stopping() bool { return d.phase.Load() == stopping }

// Sweep ends, with cause, every request, tunnels excepted, for which keep is
// false, and returns how many it ended.
func (d *Desk) Sweep(keep func(cellway.Key, cellway.CellID) bool, cause error) int {
	n := d.requests.Sweep(keep, cause)
	for _, s := range d.all() {
		n += s.Sweep(false, keep, cause)
	}
	return n
}

// SweepTunnels is Sweep for tunnels.
func (d *Desk) SweepTunnels(keep func(cellway.Key, cellway.CellID) bool, cause error) int {
	n := d.upgraded.Sweep(keep, cause)
	for _, s := range d.all() {
		n += s.Sweep(true, keep, cause)
	}
	return n
}

// tunnelsLeft returns how many tunnels there are.
func (d *Desk) tunnelsLeft() int {
	n := d.upgraded.Len()
	for _, s := range d.all() {
		n += s.Tunnels()
	}
	return n
}

// underWay reports whether anything is.
func (d *Desk) underWay() bool { return d.InFlight.Load()+d.Tunnels.Load() > 0 }

// A Leave says how a program is taken out of service.
type Leave struct {
	Wait   time.Duration // how long it serves on when it is not ready any more
	Spread time.Duration // over how long tunnels are ended
	Name   string        // of the program, for the log
	Log    *slog.Logger
}

// Stop takes the program out of service. Ready fails at once, while it serves on
// for a while. Then servers are shut down: they accept no more, HTTP/2
// connections are told to go, HTTP/1 answers close theirs, and tunnels are ended a
// few at a time. What is under way may end by itself until ctx ends; then it is
// cut off.
//
// Stop returns when nothing is under way: nil if nothing had to be cut off.
// It is called once.
func (d *Desk) Stop(ctx context.Context, how Leave, servers ...Server) error {
	d.phase.Store(leaving)
	how.Log.Info(how.Name+" not ready any more", "in_flight", d.InFlight.Load(), "tunnels", d.Tunnels.Load())
	Sleep(ctx, how.Wait)
	d.phase.Store(stopping)

	var down sync.WaitGroup
	for _, s := range servers {
		down.Go(func() {
			// Its error is that of ctx, or of a listener that is closed anyway.
			_ = s.Shutdown(ctx)
		})
	}
	cause := fmt.Errorf("the %s is %w", how.Name, ErrStopping)
	d.endTunnels(ctx, how.Spread, cause)
	all := func(cellway.Key, cellway.CellID) bool { return false }
	for d.underWay() && Sleep(ctx, 10*time.Millisecond) {
		d.SweepTunnels(all, cause) // what has become a tunnel since
	}
	cut := 0
	if ctx.Err() != nil {
		cut = d.Sweep(all, cause) + d.SweepTunnels(all, cause)
		// Those who are cut off still have an answer to write, or to break off.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		for d.underWay() && Sleep(last, 10*time.Millisecond) {
		}
		cancel()
	}
	down.Wait()
	for _, s := range servers {
		// It closes what Shutdown has left, and nobody is left to tell.
		_ = s.Close()
	}
	how.Log.Info(how.Name+" stopped", "cut_off", cut)
	if cut > 0 {
		return fmt.Errorf("%d requests were cut off: %w", cut, context.Cause(ctx))
	}
	return nil
}

// endTunnels ends all tunnels, with cause, in turns over spread, but within half of the time
// that ctx leaves.
func (d *Desk) endTunnels(ctx context.Context, spread time.Duration, cause error) {
	const turns = 20
	if end, ok := ctx.Deadline(); ok {
		spread = min(spread, time.Until(end)/2)
	}
	for turn := turns; turn > 0; turn-- {
		left := d.tunnelsLeft()
		if left == 0 && d.Tunnels.Load() == 0 {
			return
		}
		end := (left + turn - 1) / turn
		d.SweepTunnels(func(cellway.Key, cellway.CellID) bool { end--; return end < 0 }, cause)
		if turn > 1 && !Sleep(ctx, spread/turns) {
			return
		}
	}
}

// Sleep waits for d and reports true, or false as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
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
