package gateway

import (
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// maxVersions is how many versions of hands are looked back over at most.
const maxVersions = 8

// A worker is a process that serves requests. It lives as long as one list after
// the other has it at the same endpoint.
type worker struct {
	hand.Member
	endpoint *url.URL
	pool     *engine.Pool
	figures  workerFigures
}

// A state is all that one list of workers means to a gateway. It is replaced whole,
// so that an attempt sees one list.
type state struct {
	list    *Workers
	hands   *shuffle.Snapshot
	seq     uint64 // of the hands
	history shuffle.History
	until   time.Time          // when nothing is looked back to any more
	workers map[string]*worker // by id
	ids     []string           // of the workers that take part, for the canary
	since   time.Time
}

// members gives the members in use.
func (gw *Gateway) members() iter.Seq[*hand.Member] {
	return func(yield func(*hand.Member) bool) {
		st := gw.state.Load()
		if st == nil {
			return
		}
		for _, w := range st.workers {
			if !yield(&w.Member) {
				return
			}
		}
	}
}

// take takes a list into use. Requests that were dealt their hand before go on by
// it, as long as its workers are there.
func (gw *Gateway) take(list *Workers) {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	old := gw.state.Load()
	if old != nil && old.list == list {
		return
	}
	now := time.Now()
	st := &state{list: list, workers: make(map[string]*worker), since: now}
	cells := make([]cellway.Cell, 0, len(list.endpoints))
	for _, w := range list.hands.Config().Workers {
		at := list.endpoints[w.ID]
		cells = append(cells, cellway.Cell{ID: cellway.CellID(w.ID), Endpoints: []string{at.String()}})
		st.workers[w.ID] = old.worker(w, at)
		if w.Weight > 0 {
			st.ids = append(st.ids, w.ID)
		}
	}
	// The workers that go are still there until nobody is dealt a hand of them.
	both := slices.Clip(cells)
	if old != nil {
		for id, w := range old.workers {
			if st.workers[id] == nil {
				both = append(both, cellway.Cell{ID: cellway.CellID(id), Endpoints: []string{w.endpoint.String()}})
			}
		}
		st.history = old.history
	}
	gw.pools.Update(both)
	for id, w := range st.workers {
		if w.pool == nil { // others have theirs, and requests under way read it
			w.pool = gw.pools.Cell(cellway.CellID(id))
		}
	}
	st.remember(list.hands, now, front.Span(gw.cfg.Lookback, 10*time.Minute))
	gw.state.Store(st)
	gw.swaps.Add(1)
	gw.pools.Update(cells)
	if old == nil || old.hands.Version() != st.hands.Version() {
		gw.log.Info("hands in use", "version", st.hands.Version(), "seq", st.seq, "workers", len(st.ids))
	}
}

// worker returns the worker that st has already, or a new one.
func (st *state) worker(w shuffle.Worker, at *url.URL) *worker {
	if st != nil {
		if old := st.workers[w.ID]; old != nil && old.Zone == w.Zone && *old.endpoint == *at {
			return old
		}
	}
	one := &worker{endpoint: at}
	one.ID, one.Zone = w.ID, w.Zone
	return one
}

// remember adds the hands to those of before. This gateway does not use these any
// more, but their members may still be needed: see [Config.Lookback].
func (st *state) remember(hands *shuffle.Snapshot, now time.Time, lookback time.Duration) {
	h := st.history.Add(hands)
	newest, _ := h.Newest()
	h = h.Leave(newest.Seq, now).Forget(now.Add(-lookback))
	if all := h.Versions(); len(all) > maxVersions {
		// They are in order, as they were in h.
		h, _ = shuffle.HistoryOf(all[len(all)-maxVersions:]...)
	}
	st.history, st.hands, st.seq = h, newest.Snapshot, newest.Seq
	st.until = now.Add(lookback)
}

// A dealt hand is a tenant's, as st deals it.
type dealt struct {
	st      *state
	workers []*worker // the hand, and behind it those that were in it before
	members []*hand.Member
	size    int // of the hand
}

// deal returns the hand of a tenant.
func (gw *Gateway) deal(t *tenant, st *state) *dealt {
	if d := t.dealt.Load(); d != nil && d.st == st {
		return d
	}
	d := &dealt{st: st}
	for _, w := range st.hands.AppendHand(nil, t.Name) {
		d.add(st.workers[w.ID])
	}
	d.workers = d.workers[:min(len(d.workers), hand.MaxMembers)]
	d.size = len(d.workers)
	if len(st.history.Versions()) > 1 {
		for _, w := range st.history.AppendHands(nil, t.Name, time.Time{}) {
			if slices.Contains(st.ids, w.ID) && len(d.workers) < hand.MaxMembers {
				d.add(st.workers[w.ID])
			}
		}
	}
	for _, w := range d.workers {
		d.members = append(d.members, &w.Member)
	}
	t.dealt.Store(d)
	return d
}

func (d *dealt) add(w *worker) {
	if w != nil && !slices.Contains(d.workers, w) {
		d.workers = append(d.workers, w)
	}
}

// usable returns the members that a request may go to: those of the hand and, as
// long as none of them has ever answered, those that were in it before.
func (d *dealt) usable(now time.Time) []*hand.Member {
	if len(d.members) == d.size || now.After(d.st.until) {
		return d.members[:d.size]
	}
	for _, m := range d.members[:d.size] {
		if m.Proven() {
			return d.members[:d.size]
		}
	}
	return d.members
}

// A HandMember is a worker in a tenant's hand.
type HandMember struct {
	ID     string `json:"id"`
	Zone   string `json:"zone,omitempty"`
	Aside  bool   `json:"aside,omitempty"`  // asked last: requests to it failed, or probes did
	Former bool   `json:"former,omitempty"` // in the hand before the last change of the list: see [Config.Lookback]
}

// A Hand is a tenant's hand, in its order.
type Hand struct {
	Version string       `json:"version"` // of the hands
	Seq     uint64       `json:"seq"`     // rises by one with each change of the hands since the start
	Members []HandMember `json:"members"`
}

// Hand returns the hand of a tenant, or false if there is no list of workers yet.
func (gw *Gateway) Hand(id cellway.TenantID) (Hand, bool) {
	st := gw.state.Load()
	if st == nil {
		return Hand{}, false
	}
	t := &tenant{}
	t.Name = string(id)
	d := gw.deal(t, st)
	h := Hand{Version: st.hands.Version(), Seq: st.seq}
	for i, m := range d.usable(time.Now()) {
		h.Members = append(h.Members, HandMember{ID: m.ID, Zone: m.Zone, Aside: m.Aside(), Former: i >= d.size})
	}
	return h, true
}
