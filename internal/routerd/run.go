package routerd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/routemap"
	"github.com/cellway/cellway/router"
)

// A readySink is the router, and knows when it got its first map.
type readySink struct {
	rt    *router.Router
	once  sync.Once
	first chan struct{} // closed when a map is in use
}

func (s *readySink) Swap(m *routemap.Map) error    { return s.done(s.rt.Swap(m)) }
func (s *readySink) Replace(m *routemap.Map) error { return s.done(s.rt.Replace(m)) }

func (s *readySink) done(err error) error {
	if err == nil {
		s.once.Do(func() { close(s.first) })
	}
	return err
}

// refresh is how the router asks for a newer map.
func (d *daemon) refresh(ctx context.Context) error { return d.feed.Ask(ctx) }

// run serves until ctx ends, and then stops in order.
func (d *daemon) run(ctx context.Context) error {
	parts := []serving.Part{{Name: "router", Run: d.rt.Run}, {Name: "feed", Run: d.feed.Run}, {Name: "addresses", Run: d.keepAddresses}}
	if d.reporter != nil {
		parts = append(parts, serving.Part{Name: "reports", Run: d.reporter.Run})
	}
	d.rt.SetAddresses(d.store.Addresses())
	return d.Run(ctx, serving.Work{
		Handler: d.rt, TurnAway: d.rt.TurnAway(), Admin: d.adminHandler, Parts: parts,
		Ready: d.ready.first, Await: true, Status: d.oneLine, Alive: d.alive, Leave: d.leave,
	})
}

// leave takes in that the router is to stop: whatever happens from now on, no map is
// to blame.
func (d *daemon) leave() {
	d.feed.Leave()
	if d.reporter != nil {
		d.reporter.Leave()
	}
}

// alive takes the daemon's locks and returns its state in one line.
func (d *daemon) alive() string {
	d.rt.Stats()
	d.feed.Status()
	return d.oneLine()
}

// oneLine is the router's state for systemctl status.
func (d *daemon) oneLine() string {
	if m := d.rt.Map(); m != nil {
		return fmt.Sprintf("map %v of fleet %s", m.Version(), m.Settings().Fleet)
	}
	return "no map yet"
}

// How often the last addresses of names are looked at, and how long there is at
// least between two writes of them: a name may have others each time.
const (
	addressesEvery = time.Second
	addressesPause = 10 * time.Second
)

// keepAddresses writes the addresses of cells' names when they are first known,
// when they change, and at the end.
func (d *daemon) keepAddresses(ctx context.Context) error {
	tick := time.NewTicker(addressesEvery)
	defer tick.Stop()
	last, earliest := sorted(d.store.Addresses()), time.Time{}
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		now := sorted(d.rt.Addresses())
		if len(now) == 0 || maps.EqualFunc(now, last, slices.Equal[[]netip.Addr]) {
			continue
		}
		if !ended && len(now) == len(last) && time.Now().Before(earliest) {
			continue
		}
		d.store.SaveAddresses(now)
		last, earliest = now, time.Now().Add(addressesPause)
	}
	return context.Cause(ctx)
}

// sorted returns a copy with each name's addresses in order, as name servers
// give them in another one each time.
func sorted(names map[string][]netip.Addr) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr, len(names))
	for name, addrs := range names {
		out[name] = slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare)
	}
	return out
}
