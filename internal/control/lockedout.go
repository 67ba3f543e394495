package control

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// lockedOutAfter is how many calls of an address are refused before somebody
	// should look. One is a typing error of a person who reads a map.
	lockedOutAfter = 3

	// lockedOutFor is how long an address counts as locked out after its last
	// call. It is longer than a router waits between two.
	lockedOutFor = time.Minute

	// maxLockedOut is how many callers are remembered, and maxLockedOutTold for
	// how many there is an alarm each: strangers may call from as many addresses
	// as they like.
	maxLockedOut     = 256
	maxLockedOutTold = 16

	// maxWhy bounds what is remembered of the reason, in bytes.
	maxWhy = 300
)

// A RefusedCall is a call of a machine that was not let in.
type RefusedCall struct {
	From   netip.Addr
	Router string // the id that it gives itself; "" if it gives none
	Why    string
}

// lockedOut knows the addresses whose machines are not let in: routers that
// have no token, or a wrong one, and so can't report that they have no map.
type lockedOut struct {
	mu   sync.Mutex
	from map[caller]*refusedCalls
	all  uint64 // calls
}

// A caller is who calls from an address. A network of IPv6 is one, as whoever
// has one address of it has all.
type caller netip.Prefix

func callerAt(a netip.Addr) caller {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return caller{} // of a call without an address
	}
	return caller(p)
}

// String returns the address, or the network as in 2001:db8::/64.
func (c caller) String() string {
	p := netip.Prefix(c)
	if p.IsSingleIP() || !p.IsValid() {
		return p.Addr().String()
	}
	return p.String()
}

func (c caller) compare(d caller) int { return netip.Prefix(c).Addr().Compare(netip.Prefix(d).Addr()) }

type refusedCalls struct {
	since, last time.Time
	n           int
	router, why string
}

func newLockedOut() *lockedOut { return &lockedOut{from: map[caller]*refusedCalls{}} }

// note takes in a call. It says whether its caller has just become locked out,
// and how many are.
func (l *lockedOut) note(c RefusedCall, now time.Time) (began bool, addresses int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all++
	who := callerAt(c.From)
	r := l.from[who]
	if r == nil || now.Sub(r.last) >= lockedOutFor {
		l.makeRoom(now)
		r = &refusedCalls{since: now}
		l.from[who] = r
	}
	r.n++
	r.last, r.why = now, c.Why
	if c.Router != "" {
		r.router = c.Router
	}
	if r.n != lockedOutAfter {
		return false, 0
	}
	return true, len(l.out(now))
}

// makeRoom forgets who has not called for long, and if that is not enough, who
// called least.
func (l *lockedOut) makeRoom(now time.Time) {
	maps.DeleteFunc(l.from, func(_ caller, r *refusedCalls) bool { return now.Sub(r.last) >= lockedOutFor })
	if len(l.from) < maxLockedOut {
		return
	}
	least := slices.MinFunc(slices.Collect(maps.Keys(l.from)), func(a, b caller) int {
		return cmp.Or(cmp.Compare(l.from[a].n, l.from[b].n), l.from[a].last.Compare(l.from[b].last))
	})
	delete(l.from, least)
}

// counts returns how many calls were refused since the start, and how many
// addresses are locked out.
func (l *lockedOut) counts(now time.Time) (calls uint64, addresses int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, len(l.out(now))
}

// out returns the addresses that are locked out, those that called longest
// first. The caller holds l.mu.
func (l *lockedOut) out(now time.Time) (from []caller) {
	for a, r := range l.from {
		if r.n >= lockedOutAfter && now.Sub(r.last) < lockedOutFor {
			from = append(from, a)
		}
	}
	slices.SortFunc(from, func(a, b caller) int { return cmp.Or(l.from[a].since.Compare(l.from[b].since), a.compare(b)) })
	return from
}

// alarms returns one for each address, those that called longest first, and one
// for all that are too many to name.
func (l *lockedOut) alarms(now time.Time) (out []Alarm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.out(now)
	for i, a := range from {
		r := l.from[a]
		if i == maxLockedOutTold {
			return append(out, Alarm{AlarmLockedOut, "addresses", r.since, fmt.Sprintf("calls for maps or reports from %d more addresses are refused too", len(from)-i)})
		}
		who := ""
		if r.router != "" {
			who = " of a router that calls itself " + r.router
		}
		out = append(out, Alarm{AlarmLockedOut, "address/" + a.String(), r.since, fmt.Sprintf("%d calls%s for maps or reports were refused; the last: %s", r.n, who, r.why)})
	}
	return out
}

// NoteRefused notes that a machine was not let in, for [Service.Alarms].
func (s *Service) NoteRefused(c RefusedCall) {
	if !routerID.MatchString(c.Router) {
		c.Router = ""
	}
	if len(c.Why) > maxWhy { // it may quote the caller
		c.Why = strings.ToValidUTF8(c.Why[:maxWhy], "") + "…"
	}
	c.From = c.From.Unmap().WithZone("")
	// Beyond those that are named, a log would be for strangers to fill.
	if began, addresses := s.lockedOut.note(c, time.Now()); began && addresses <= maxLockedOutTold {
		s.log.Warn("machine locked out", "address", c.From, "router", c.Router, "error", c.Why)
	}
}
