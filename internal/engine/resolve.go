package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lookupTimeout bounds one look-up of a name.
const lookupTimeout = 10 * time.Second

// A Resolver finds the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// names keeps the addresses of hosts. They are looked up by run, never by a
// request, and the last ones found are kept for as long as the process lives.
type names struct {
	resolver Resolver
	every    time.Duration
	log      *slog.Logger
	changed  func(host string) // called when a host's addresses have changed

	kick chan struct{} // a host was added

	mu    sync.Mutex
	hosts map[string]*host
}

// A host is a name and its addresses.
type host struct {
	name  string
	addrs atomic.Pointer[[]netip.Addr]
	known chan struct{} // closed with the first addresses

	// These are guarded by names.mu.
	users   int       // endpoints that name it
	fresh   bool      // looked up since the start
	busy    bool      // being looked up
	next    time.Time // when to look it up again
	failing int       // look-ups failed in a row
}

func newNames(r Resolver, every time.Duration, log *slog.Logger, changed func(string)) *names {
	if r == nil {
		r = net.DefaultResolver
	}
	return &names{resolver: r, every: every, log: log, changed: changed, kick: make(chan struct{}, 1), hosts: make(map[string]*host)}
}

// use returns the host called name and counts one more user of it.
func (n *names) use(name string) *host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hostLocked(name)
	if h.users++; h.users == 1 {
		h.next = time.Time{}
		select {
		case n.kick <- struct{}{}:
		default:
		}
	}
	return h
}

// drop counts one user less. The addresses stay.
func (n *names) drop(h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h.users--
}

func (n *names) hostLocked(name string) *host {
	h := n.hosts[name]
	if h == nil {
		h = &host{name: name, known: make(chan struct{})}
		n.hosts[name] = h
	}
	return h
}

// addresses returns h's addresses, waiting for the first ones until ctx ends.
func (h *host) addresses(ctx context.Context) ([]netip.Addr, error) {
	if a := h.addrs.Load(); a != nil {
		return *a, nil
	}
	select {
	case <-h.known:
		return *h.addrs.Load(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the name %s has no known address yet: %w", h.name, context.Cause(ctx))
	}
}

// setLocked stores addresses and reports whether they differ from the last.
func (h *host) setLocked(a []netip.Addr) bool {
	old := h.addrs.Load()
	if old != nil && slices.Equal(*old, a) {
		return false
	}
	h.addrs.Store(&a)
	if old == nil {
		close(h.known)
	}
	return old != nil
}

// run looks names up until ctx ends.
func (n *names) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, 16)
	for {
		due, wake := n.due(time.Now())
		for _, h := range due {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			wg.Go(func() {
				n.look(ctx, h)
				<-room
			})
		}
		timer := time.NewTimer(time.Until(wake))
		select {
		case <-timer.C:
		case <-n.kick:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}

// due returns the hosts to look up now, marked busy, and when to ask again.
func (n *names) due(now time.Time) (due []*host, wake time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wake = now.Add(n.every)
	for _, h := range n.hosts {
		switch {
		case h.users == 0 || h.busy:
		case !h.next.After(now):
			h.busy = true
			due = append(due, h)
		case h.next.Before(wake):
			wake = h.next
		}
	}
	return due, wake
}

// look looks one host up. What can't be found leaves the last addresses.
func (n *names) look(ctx context.Context, h *host) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := n.resolver.LookupNetIP(ctx, "ip", h.name)
	if err == nil && len(found) == 0 {
		err = errors.New("the name has no addresses")
	}
	found = slices.Clone(found) // it may be the resolver's own
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)

	n.mu.Lock()
	h.busy = false
	wait := n.every
	if err != nil {
		wait = min(n.every, time.Second<<min(h.failing, 10))
		h.failing++
	} else {
		h.failing, h.fresh = 0, true
	}
	h.next = time.Now().Add(jitter(wait))
	first := h.failing == 1
	changed := err == nil && h.setLocked(found)
	n.mu.Unlock()
	select {
	case n.kick <- struct{}{}: // run has to reckon with h.next
	default:
	}

	switch {
	case err != nil && first && ctx.Err() != context.Canceled:
		n.log.Warn("name not found; the last addresses stay", "name", h.name, "error", err)
	case changed:
		n.log.Info("addresses changed", "name", h.name, "addresses", found)
		n.changed(h.name)
	}
}

// export returns the addresses of all hosts in use.
func (n *names) export() map[string][]netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string][]netip.Addr)
	for name, h := range n.hosts {
		if a := h.addrs.Load(); a != nil && h.users > 0 {
			m[name] = slices.Clone(*a)
		}
	}
	return m
}

// load gives addresses to hosts that were not looked up yet.
func (n *names) load(m map[string][]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, addrs := range m {
		if h := n.hostLocked(name); !h.fresh && len(addrs) > 0 {
			h.setLocked(slices.Clone(addrs))
		}
	}
}

// jitter returns d give or take a tenth.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
