package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// A Pool is all that this router holds of one cell: its endpoints with their
// connections, its limits, its breaker, its figures. Nothing in it is shared
// with another cell.
type Pool struct {
	all     *Pools
	id      cellway.CellID
	gate    gate // requests, those included that wait for a 101
	tunnels gate // upgraded connections, and those that may become one
	breaker breaker
	counters
	unwelcome unwelcome

	endpoints atomic.Pointer[[]*endpoint]
	upgraded  atomic.Int64  // upgraded connections
	turn      atomic.Uint32 // where the next search for an endpoint starts
}

func newPool(all *Pools, id cellway.CellID) *Pool {
	l := all.cfg.Limits
	p := &Pool{all: all, id: id,
		gate:    gate{limit: l.InFlight, pending: l.Pending, wait: l.QueueWait},
		tunnels: gate{limit: l.Tunnels},
	}
	p.breaker = all.cfg.newBreaker(all.cfg.Breaker.Connects, all.cfg.Breaker.Timeouts)
	p.endpoints.Store(new([]*endpoint))
	return p
}

// update makes the endpoints those called names, and reports whether any is
// left. The caller holds the Pools' mutex.
func (p *Pool) update(names []string) bool {
	old := *p.endpoints.Load()
	if slices.EqualFunc(old, names, func(e *endpoint, n string) bool { return e.name == n }) {
		return len(names) > 0
	}
	now := make([]*endpoint, 0, len(names))
	for _, n := range names {
		if i := slices.IndexFunc(old, func(e *endpoint) bool { return e.name == n }); i >= 0 {
			now = append(now, old[i])
			continue
		}
		e, err := newEndpoint(p, n)
		if err != nil {
			p.all.cfg.Log.Error("endpoint left out", p.all.cfg.Noun, p.id, "endpoint", n, "error", err)
			continue
		}
		now = append(now, e)
	}
	p.endpoints.Store(&now)
	for _, e := range old {
		if !slices.Contains(now, e) {
			e.retire()
		}
	}
	return len(now) > 0
}

// pick chooses an endpoint that is not in tried, or nil. Of those whose
// breaker lets the request through it is one that is due for a probe, else the
// one with the fewest requests. If there is none, it is the one that failed
// longest ago: a guess is better than a refusal, and it stays within the cell.
func (p *Pool) pick(now time.Time, tenant cellway.TenantID, tried []*endpoint) (e *endpoint, probe bool) {
	all := *p.endpoints.Load()
	if len(all) == 0 {
		return nil, false
	}
	start := int(p.turn.Add(1)-1) % len(all)
	var best, resort *endpoint
	var resortFail time.Time
	for i := range all {
		e := all[(start+i)%len(all)]
		if slices.Contains(tried, e) {
			continue
		}
		switch e.breaker.ask(now, tenant) {
		case asProbe:
			return e, true
		case allowed:
			if best == nil || e.active.Load() < best.active.Load() {
				best = e
			}
		default:
			if _, _, t := e.breaker.look(); resort == nil || t.Before(resortFail) {
				resort, resortFail = e, t
			}
		}
	}
	if best != nil {
		return best, false
	}
	return resort, false
}

// connected takes in that a connection to e came about.
func (p *Pool) connected(e *endpoint) {
	if e.breaker.connected() {
		p.log("endpoint connects again", e)
	}
	if p.breaker.connected() {
		p.log(p.all.cfg.Noun+" connects again", nil)
	}
}

// connectFailed takes in that a connection to e did not come about.
func (p *Pool) connectFailed(e *endpoint, err error) {
	now := time.Now()
	if e.breaker.connectFailed(now, true) {
		p.all.cfg.Log.Warn("endpoint left alone for a while", p.all.cfg.Noun, p.id, "endpoint", e.name, "error", err)
	}
	down := true
	for _, other := range *p.endpoints.Load() {
		if s, connects, _ := other.breaker.look(); s == Closed && connects == 0 {
			down = false
			break
		}
	}
	if p.breaker.connectFailed(now, down) {
		p.all.cfg.Log.Error(p.all.cfg.Noun+" left alone for a while: nothing connects", p.all.cfg.Noun, p.id, "error", err)
	}
}

// answered takes in the head of an answer from e.
func (p *Pool) answered(e *endpoint) {
	if e.breaker.head() {
		p.log("endpoint answers again", e)
	}
	if p.breaker.head() {
		p.log(p.all.cfg.Noun+" answers again", nil)
	}
	if p.unwelcome.over() {
		p.log(p.all.cfg.Noun+" takes this side's certificate", e)
	}
}

// timedOut takes in that e did not answer a request of tenant in time.
func (p *Pool) timedOut(e *endpoint, tenant cellway.TenantID) {
	now := time.Now()
	if e.breaker.timedOut(now, tenant) {
		p.all.cfg.Log.Warn("endpoint left alone for a while: no answers", p.all.cfg.Noun, p.id, "endpoint", e.name)
	}
	if p.breaker.timedOut(now, tenant) {
		p.all.cfg.Log.Error(p.all.cfg.Noun+" left alone for a while: no answers", p.all.cfg.Noun, p.id)
	}
}

func (p *Pool) log(msg string, e *endpoint) {
	if e == nil {
		p.all.cfg.Log.Info(msg, p.all.cfg.Noun, p.id)
		return
	}
	p.all.cfg.Log.Info(msg, p.all.cfg.Noun, p.id, "endpoint", e.name)
}

// Stats returns the pool's figures.
func (p *Pool) Stats() Stats {
	s := Stats{
		Cell:             p.id,
		Requests:         p.requests.Load(),
		Answers:          p.answers.Load(),
		ServerErrors:     p.serverErrors.Load(),
		ConnectFailures:  p.connects.Load(),
		Timeouts:         p.timeouts.Load(),
		ProtocolErrors:   p.protocol.Load(),
		RefusedSaturated: p.saturated.Load(),
		RefusedOpen:      p.open.Load(),
		ClientGone:       p.clientGone.Load(),
		Stopped:          p.stopped.Load(),
		FirstByte:        p.histogram(),
	}
	s.InFlight, s.Pending = p.gate.load()
	s.Tunnels = int(p.upgraded.Load())
	s.Breaker, _, _ = p.breaker.look()
	for _, e := range *p.endpoints.Load() {
		s.Endpoints = append(s.Endpoints, e.stats())
	}
	return s
}
