package engine

import (
	"context"
	"net/netip"

	"github.com/cellway/cellway"
)

// Pools holds a [Pool] for each cell of the map in use.
type Pools struct{ cfg Config }

// New returns Pools without cells. It starts nothing: see [Pools.Run].
func New(cfg Config) (*Pools, error) { return &Pools{cfg: cfg}, nil }

// Run looks names up until ctx ends, off every request's path. It returns the
// cause of ctx's end.
func (p *Pools) Run(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

// Update makes the pools those of cells, all the cells of a map. The pool of
// a cell that stays is kept with its counters, breaker and requests in flight,
// and so is each of its endpoints that stays. What has gone takes no new
// request, finishes those it has, and then closes its connections.
func (p *Pools) Update(cells []cellway.Cell) {}

// Cell returns the pool of a cell, or nil if the last [Pools.Update] had no
// such cell or it has no endpoint.
func (p *Pools) Cell(id cellway.CellID) *Pool { return nil }

// Stats returns the figures of each cell, in the order of their ids.
func (p *Pools) Stats() []Stats { return nil }

// Addresses returns the last addresses of every name in use, to be kept for
// the next start.
func (p *Pools) Addresses() map[string][]netip.Addr { return nil }

// SetAddresses gives names their last known addresses. It changes no name
// that was looked up since the start.
func (p *Pools) SetAddresses(map[string][]netip.Addr) {}

// Close closes idle connections and takes the cells away. Requests in flight
// go on.
func (p *Pools) Close() {}

// A Pool is all that this router holds of one cell: its endpoints with their
// connections, its limits, its breaker, its figures. Nothing in it is shared
// with another cell.
type Pool struct{}

// ID returns the cell's id.
func (p *Pool) ID() cellway.CellID { return "" }

// Stats returns the pool's figures.
func (p *Pool) Stats() Stats { return Stats{} }
