package engine

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway"
)

// Pools holds a [Pool] for each cell of the map in use.
type Pools struct {
	cfg     *settings
	names   *names
	buffers buffers
	conns   atomic.Int64 // connections to all cells, those that are idle included
	room    sync.Mutex   // held by whoever closes idle ones for another

	cells atomic.Pointer[map[cellway.CellID]*Pool] // read by requests

	mu sync.Mutex // held by whoever replaces cells

	looping sync.Mutex
	loops   []*loop // which have connections to cells
}

// New returns Pools without cells. It starts nothing: see [Pools.Run].
func New(cfg Config) (*Pools, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	p := &Pools{cfg: newSettings(cfg)}
	p.names = newNames(p.cfg.Resolver, p.cfg.ResolveEvery, p.cfg.Log, p.addressesChanged)
	p.cells.Store(new(map[cellway.CellID]*Pool))
	return p, nil
}

// Run looks names up until ctx ends, off every request's path. It returns the
// cause of ctx's end. A request to an endpoint whose name has no address yet
// waits for Run's answer no longer than for a connection.
func (p *Pools) Run(ctx context.Context) error { return p.names.run(ctx) }

// Update makes the pools those of cells, all the cells of a map. The pool of
// a cell that stays is kept with its counters, breaker and requests in flight,
// and so is each of its endpoints that stays. What has gone takes no new
// request, finishes those it has, and then closes its connections.
func (p *Pools) Update(cells []cellway.Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.cells.Load()
	now := make(map[cellway.CellID]*Pool, len(cells))
	for i := range cells {
		c := &cells[i]
		if len(c.Endpoints) == 0 {
			continue
		}
		pool := old[c.ID]
		if pool == nil {
			pool = newPool(p, c.ID)
		}
		if !pool.update(c.Endpoints) {
			continue
		}
		now[c.ID] = pool
	}
	p.cells.Store(&now)
	for id, pool := range old {
		if now[id] != pool {
			pool.update(nil)
		}
	}
}

// Cell returns the pool of a cell, or nil if the last [Pools.Update] had no
// such cell or it has no endpoint.
func (p *Pools) Cell(id cellway.CellID) *Pool { return (*p.cells.Load())[id] }

// Stats returns the figures of each cell, in the order of their ids.
func (p *Pools) Stats() []Stats {
	cells := *p.cells.Load()
	all := make([]Stats, 0, len(cells))
	for _, pool := range cells {
		all = append(all, pool.Stats())
	}
	slices.SortFunc(all, func(a, b Stats) int { return strings.Compare(string(a.Cell), string(b.Cell)) })
	return all
}

// Addresses returns the last addresses of every name in use, to be kept for
// the next start.
func (p *Pools) Addresses() map[string][]netip.Addr { return p.names.export() }

// SetAddresses gives names their last known addresses. It changes no name
// that was looked up since the start.
func (p *Pools) SetAddresses(addrs map[string][]netip.Addr) { p.names.load(addrs) }

// Close takes the cells away and closes their idle connections. Requests in
// flight go on.
func (p *Pools) Close() { p.Update(nil) }

// addressesChanged closes idle connections to a host's old addresses.
func (p *Pools) addressesChanged(host string) {
	for _, pool := range *p.cells.Load() {
		for _, e := range *pool.endpoints.Load() {
			if e.host == host {
				e.spoken.forget()
				e.closeIdle()
			}
		}
	}
}

// reserve counts a connection that is about to be opened. If there are as many as there
// may be, it first closes idle ones, those in loops too. There are never more, then,
// than there may be, or than there are requests under way.
func (p *Pools) reserve(ctx context.Context) {
	if p.tryReserve() {
		return
	}
	p.room.Lock()
	defer p.room.Unlock()
	var tried []*endpoint
	for rounds := 0; !p.tryReserve(); {
		if e := p.mostIdle(tried); e != nil {
			tried = append(tried, e)
			e.closeIdle()
			for _, l := range p.allLoops() {
				l.settle(ctx)
			}
			continue
		}
		if rounds++; len(tried) == 0 || rounds == 3 {
			p.conns.Add(1) // what is under way keeps its own
			return
		}
		tried = tried[:0] // others may have taken what was there, and have left since
	}
}

// tryReserve counts a connection if there may be one more.
func (p *Pools) tryReserve() bool {
	most := int64(p.cfg.MaxConns)
	for {
		n := p.conns.Load()
		if most > 0 && n >= most {
			return false
		}
		if p.conns.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// mostIdle returns the endpoint that seems to have most idle connections, apart from
// some, or nil.
func (p *Pools) mostIdle(apart []*endpoint) (by *endpoint) {
	idle := int64(0)
	for _, pool := range *p.cells.Load() {
		for _, e := range *pool.endpoints.Load() {
			if n := e.conns.Load() - e.active.Load(); n > idle && !slices.Contains(apart, e) {
				by, idle = e, n
			}
		}
	}
	return by
}

// addLoop takes in that a loop has connections to cells, and dropLoop that it has
// none any more.
func (p *Pools) addLoop(l *loop) {
	p.looping.Lock()
	defer p.looping.Unlock()
	if !slices.Contains(p.loops, l) {
		p.loops = append(slices.Clone(p.loops), l)
	}
}

func (p *Pools) dropLoop(l *loop) {
	p.looping.Lock()
	defer p.looping.Unlock()
	p.loops = slices.DeleteFunc(slices.Clone(p.loops), func(other *loop) bool { return other == l })
}

func (p *Pools) allLoops() []*loop {
	p.looping.Lock()
	defer p.looping.Unlock()
	return p.loops
}

// buffers lends out buffers for bodies.
type buffers struct{ large, small, tiny, whole, head, replay sync.Pool }

const (
	largeBuffer = 32 << 10
	headBuffer  = 2*largeBuffer + smallBuffer // has room for the longest head of an answer, unless a Config says otherwise
	smallBuffer = 4 << 10
	tinyBuffer  = 1 << 10
	wholeBuffer = MaxReplay + 2*smallBuffer
)

func (b *buffers) get() *[]byte {
	if p, ok := b.large.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, largeBuffer))
}

func (b *buffers) put(p *[]byte) { b.large.Put(p) }

// getBeyond lends a buffer that is larger than one of n bytes. If mem is nil, it
// need not be given back.
func (b *buffers) getBeyond(n int) (mem *[]byte, buf []byte) {
	if n != largeBuffer {
		return nil, make([]byte, 2*n)
	}
	p, ok := b.head.Get().(*[]byte)
	if !ok {
		p = new(make([]byte, headBuffer))
	}
	return p, *p
}

// putAny takes a buffer of get or getBeyond back.
func (b *buffers) putAny(p *[]byte) {
	if len(*p) == headBuffer {
		b.head.Put(p)
		return
	}
	b.put(p)
}

// getReplay lends room for a body that is kept.
func (b *buffers) getReplay() *[]byte {
	if p, ok := b.replay.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, MaxReplay))
}

func (b *buffers) putReplay(p *[]byte) { b.replay.Put(p) }

func (b *buffers) getSmall() *[]byte {
	if p, ok := b.small.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, smallBuffer))
}

// getTiny lends room for most heads of requests.
func (b *buffers) getTiny() *[]byte {
	if p, ok := b.tiny.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, tinyBuffer))
}

// getWhole lends room for a request with a body that is kept.
func (b *buffers) getWhole() *[]byte {
	if p, ok := b.whole.Get().(*[]byte); ok {
		return p
	}
	return new(make([]byte, wholeBuffer))
}

func (b *buffers) putWhole(p *[]byte) { b.whole.Put(p) }

func (b *buffers) putTiny(p *[]byte) { b.tiny.Put(p) }

func (b *buffers) putSmall(p *[]byte) { b.small.Put(p) }
