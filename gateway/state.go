package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"sync/atomic"
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
	shut     atomic.Bool // it could not be reached, when that was last tried
	figures  workerFigures
}

// setShut says whether w could be reached just now.
func (w *worker) setShut(shut bool) {
	if w.shut.Load() != shut { // which is rare
		w.shut.Store(shut)
	}
}

// A state is all that one list of workers means to a gateway. It is replaced whole,
// so that an attempt sees one list.
type state struct {
	list    *Workers
	dealer  shuffle.Dealer
	slow    bool   // the dealer may take its time, and fail
	version string // of the hands
	seq     uint64 // of the hands; rises by one with each version
	former  []former
	workers map[string]*worker // by id
	ids     []string           // of the workers that take part, in order
	since   time.Time
	turn    uint64 // rises by one with each list
	brief   *state // what is left to say of st when an answer has begun: its version
}

// A former dealer is one that was in use before, the latest first.
type former struct {
	dealer shuffle.Dealer
	until  time.Time // when it is not looked back to any more
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
// it, as long as its workers are there. An error leaves the list before in use.
func (gw *Gateway) take(list *Workers) error {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	old := gw.state.Load()
	if old != nil && old.list == list {
		return nil
	}
	now := time.Now()
	st := &state{list: list, dealer: list.Dealer(), workers: make(map[string]*worker), since: now}
	if gw.cfg.Dealer != nil {
		dealer, err := gw.cfg.Dealer(list.hands)
		if err != nil {
			return fmt.Errorf("dealer of hands: %w", err)
		}
		st.dealer, st.slow = dealer, true
	}
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
	}
	gw.pools.Update(both)
	for id, w := range st.workers {
		if w.pool == nil { // others have theirs, and requests under way read it
			w.pool = gw.pools.Cell(cellway.CellID(id))
		}
	}
	st.remember(old, now, front.Span(gw.cfg.Lookback, 10*time.Minute))
	gw.state.Store(st)
	gw.swaps.Add(1)
	gw.pools.Update(cells)
	if old == nil || old.version != st.version {
		gw.log.Info("hands in use", "version", st.version, "seq", st.seq, "workers", len(st.ids))
	}
	return nil
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

// takesPart reports whether the worker is in the list, and not drained.
func (st *state) takesPart(id string) bool {
	_, ok := slices.BinarySearch(st.ids, id)
	return ok
}

// remember numbers the hands, and keeps those before them that are still looked
// back to. This gateway does not use these any more, but their members may be
// needed: see [Config.Lookback].
func (st *state) remember(old *state, now time.Time, lookback time.Duration) {
	st.version, st.seq, st.turn = st.dealer.Version(), 1, 1
	st.brief = &state{version: st.version}
	if old == nil {
		return
	}
	st.seq, st.former, st.turn = old.seq, old.former, old.turn+1
	if old.version != st.version {
		st.seq++
		st.former = append([]former{{old.dealer, now.Add(lookback)}}, st.former...)
	}
	st.former = slices.DeleteFunc(slices.Clone(st.former), func(f former) bool { return !f.until.After(now) })
	st.former = st.former[:min(len(st.former), maxVersions-1)]
}

// A dealt hand is a tenant's. It does not hold the list that it is from: a tenant that
// does not come again would hold that for ever.
type dealt struct {
	turn    uint64    // of the state that dealt it
	workers []*worker // the hand, and behind it those that were in it before
	members []*hand.Member
	size    int         // of the hand
	until   []time.Time // when each of those behind it is looked back to no more, the latest first

	err   error     // why there is no hand; nil if there is one
	again time.Time // when the dealer, which has failed, is asked again; zero if it has not
}

// How long a tenant waits for a dealer that takes its time, and for the next try
// of one that has failed.
const (
	dealWait  = time.Second
	dealAgain = time.Second
)

// errNoMember says that no worker of a hand is left.
var errNoMember = errors.New("no worker of the hand is in the list")

// dealtBy returns the hand that was dealt for st, or nil if it is to be dealt.
func (t *tenant) dealtBy(st *state) *dealt {
	d := t.dealt.Load()
	if d == nil || d.turn != st.turn || !d.again.IsZero() && time.Now().After(d.again) {
		return nil
	}
	return d
}

// deal returns the hand of a tenant. If the dealer fails, it is the hand that the
// tenant had before, as far as it is in the list. The error says why there is none.
// While one request asks a dealer again that has failed, the tenant's others go by
// what it said last.
func (gw *Gateway) deal(t *tenant, st *state) (*dealt, error) {
	if d := t.dealtBy(st); d != nil {
		return d, d.err
	}
	if !t.dealing.TryLock() {
		if d := t.dealt.Load(); d != nil && d.turn == st.turn {
			return d, d.err
		}
		t.dealing.Lock()
	}
	defer t.dealing.Unlock()
	d := t.dealtBy(st)
	if d == nil { // nobody was faster
		d = gw.dealAnew(t, st)
		t.dealt.Store(d)
	}
	return d, d.err
}

// dealAnew has the dealer deal.
func (gw *Gateway) dealAnew(t *tenant, st *state) *dealt {
	ctx := context.Background()
	if st.slow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dealWait)
		defer cancel()
	}
	d := &dealt{turn: st.turn}
	all, err := st.dealer.DealHand(ctx, nil, t.Name)
	if err == nil {
		if d.hold(st, all); d.size == 0 {
			err = errNoMember
		}
	}
	if err != nil {
		gw.undealt.Add(1)
		gw.logUndealt(t.Name, err)
		d.again = time.Now().Add(dealAgain)
		if old := t.dealt.Load(); old != nil {
			for _, w := range old.workers[:old.size] {
				d.add(st.workers[w.ID])
			}
			d.size = len(d.workers)
		}
		if d.size == 0 {
			d.err = err
		}
	}
	d.lookBack(ctx, st, t.Name)
	for _, w := range d.workers {
		d.members = append(d.members, &w.Member)
	}
	return d
}

// logUndealt says now and then that hands can't be dealt.
func (gw *Gateway) logUndealt(tenant string, err error) {
	now := time.Now()
	if last := gw.undealtTold.Load(); now.UnixNano()-last >= int64(10*time.Second) && gw.undealtTold.CompareAndSwap(last, now.UnixNano()) {
		gw.log.Error("keeping former hands, as none can be dealt", "tenant", tenant, "error", err)
	}
}

// hold makes the workers of all that are in the list the hand. Those that are drained
// are passed over, unless all are: a design deals them too.
func (d *dealt) hold(st *state, all []shuffle.Worker) {
	for _, w := range all {
		if st.takesPart(w.ID) {
			d.add(st.workers[w.ID])
		}
	}
	if len(d.workers) == 0 {
		for _, w := range all {
			d.add(st.workers[w.ID])
		}
	}
	d.size = len(d.workers)
}

// lookBack adds the members of former hands.
func (d *dealt) lookBack(ctx context.Context, st *state, tenant string) {
	for _, f := range st.former {
		all, err := f.dealer.DealHand(ctx, nil, tenant)
		if err != nil {
			continue // what was is no reason not to serve
		}
		for _, w := range all {
			if n := len(d.workers); st.takesPart(w.ID) && d.size > 0 && d.add(st.workers[w.ID]) > n {
				d.until = append(d.until, f.until)
			}
		}
	}
}

// add adds w, if there is room and it is not there, and returns how many there are.
func (d *dealt) add(w *worker) int {
	if w != nil && len(d.workers) < hand.MaxMembers && !slices.Contains(d.workers, w) {
		d.workers = append(d.workers, w)
	}
	return len(d.workers)
}

// usable returns the members that a request may go to: those of the hand and, as
// long as none of them has ever answered, those that were in it before.
func (d *dealt) usable(now time.Time) []*hand.Member {
	former := 0
	for former < len(d.until) && d.until[former].After(now) {
		former++
	}
	if former == 0 {
		return d.members[:d.size]
	}
	for _, m := range d.members[:d.size] {
		if m.Proven() {
			return d.members[:d.size]
		}
	}
	return d.members[:d.size+former]
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

// Hand returns the hand of a tenant, or false if there is no list of workers yet or
// none can be dealt. It asks the dealer of [Config.Dealer], whatever the name, and so
// may have a registry keep a hand.
func (gw *Gateway) Hand(id cellway.TenantID) (Hand, bool) {
	st := gw.state.Load()
	if st == nil {
		return Hand{}, false
	}
	t := &tenant{}
	t.Name = string(id)
	d, err := gw.deal(t, st)
	if err != nil {
		return Hand{}, false
	}
	h := Hand{Version: st.version, Seq: st.seq}
	for i, m := range d.usable(time.Now()) {
		h.Members = append(h.Members, HandMember{ID: m.ID, Zone: m.Zone, Aside: m.Aside(), Former: i >= d.size})
	}
	return h, true
}
