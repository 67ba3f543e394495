package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// How a router reaches its cells.
type (
	// Bulkhead says how a router reaches its cells, and within which limits.
	Bulkhead = engine.Config
	// Limits bound what one cell may hold of a router.
	Limits = engine.Limits
	// Timeouts bound each stage of a request to a cell.
	Timeouts = engine.Timeouts
	// Breaker says when a cell, or one of its endpoints, is left alone.
	Breaker = engine.Breaker
	// TLS is how https endpoints are spoken to.
	TLS = engine.TLS
	// PeerName says what name the certificate of an https endpoint must hold.
	PeerName = engine.PeerName
	// BulkheadStats are the figures of a cell's bulkhead.
	BulkheadStats = engine.Stats
)

// The names that a cell's certificate may be asked for: see [TLS].
const (
	PeerIsCell   = engine.PeerIsCell
	PeerIsHost   = engine.PeerIsHost
	PeerIsEither = engine.PeerIsEither
)

// A Config says how a [Router] works. The zero Config is usable.
type Config struct {
	// Cells says how cells are reached.
	Cells Bulkhead

	// Name is what the router calls itself in Proxy-Status: a token of RFC
	// 9110. If empty, "cellway".
	Name string

	// TrustedProxies are the addresses of what stands between clients and the
	// router. What they say of the client is continued; what others say of
	// themselves is replaced.
	TrustedProxies []netip.Prefix

	// MaxInFlight is how many requests the router serves at a time, tunnels
	// excepted. If zero, 16384. What one cell may hold of them
	// ([Limits.Most]) must be less, so that a cell that hangs leaves the others
	// some; limits of Cells that are zero are chosen so.
	MaxInFlight int

	// MaxBody is the size in bytes that the body of a request may not exceed.
	// If zero, there is no limit.
	MaxBody int64

	// Grace is how long requests and tunnels may go on after a swap of the map
	// by which they no longer belong where they are. If zero, 10 s; if
	// negative, not at all.
	Grace time.Duration

	// StopWait is how long [Router.Stop] serves on after it has made Ready
	// fail, so that load balancers take notice. If zero, 5 s; if negative, not
	// at all.
	StopWait time.Duration

	// StopSpread is over how long Stop ends the tunnels, so that their clients
	// don't all come back at once. If zero, 5 s; if negative, at once.
	StopSpread time.Duration

	// Refresh asks for the newest map now, and returns when the router has it
	// or when there is none. It is called off every request's path, and at
	// most once a second for each cell. If nil, the router waits for what
	// comes by itself.
	Refresh func(ctx context.Context) error

	// Crowded reports whether clients' connections are scarce. Then an answer
	// that there are too many requests also closes the client's HTTP/1
	// connection, and so makes room for another client. It is called for such
	// answers only, from many goroutines. If nil, they are not scarce.
	Crowded func() bool

	// ExplainHeaders lets clients see X-Cell-Id, X-Cell-Epoch, X-Cell-Key and
	// X-Cell-Map-Version in answers.
	ExplainHeaders bool

	// TraceSampled is the share, 0 to 1, of the traces begun by the router
	// that are flagged as sampled. A trace that comes with the request stays
	// as it is.
	TraceSampled float64

	// AccessLog gets a line for each request, an object of JSON; several in one
	// write, a few milliseconds after the first of them. One goroutine writes to it,
	// and the bytes are used again. It never makes a request wait: what can't be
	// written in time is dropped and counted. If nil, there is no access log.
	AccessLog io.Writer

	// AccessSample is the share, 0 to 1, of the requests that went well that
	// are logged. Others always are. If zero, all of them; if negative, none.
	AccessSample float64

	// Log is for events of the router, never for single requests. If nil,
	// nothing is logged.
	Log *slog.Logger
}

func (c Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("router: %s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return bad("a trusted proxy's address is not valid")
		}
	}
	switch {
	case c.MaxInFlight < 0:
		return bad("MaxInFlight is %d", c.MaxInFlight)
	case c.MaxBody < 0:
		return bad("MaxBody is %d", c.MaxBody)
	case !(c.TraceSampled >= 0 && c.TraceSampled <= 1):
		return bad("TraceSampled is %v, it is a share of 0 to 1", c.TraceSampled)
	case !(c.AccessSample <= 1):
		return bad("AccessSample is %v, it is a share of 0 to 1", c.AccessSample)
	case !front.IsToken(c.name()):
		return bad("Name %q is not a token", c.Name)
	}
	given, fit := c.Cells.Limits, c.limits()
	if given.InFlight > 0 && fit.InFlight != given.InFlight || given.Pending > 0 && fit.Pending != given.Pending {
		return bad("one cell may hold %d requests (%d in flight, %d that wait) of MaxInFlight %d, and would shut out all others: raise MaxInFlight or lower the cells' InFlight and Pending",
			given.Most(), given.InFlight, given.Most()-given.InFlight, c.maxInFlight())
	}
	return nil
}

// limits returns the limits of a cell, those that are not given chosen so that
// no cell can hold all of the router.
func (c Config) limits() Limits { return c.Cells.Limits.Within(int(c.maxInFlight())) }

func (c Config) name() string {
	if c.Name == "" {
		return "cellway"
	}
	return c.Name
}

func (c Config) maxInFlight() int64 {
	if c.MaxInFlight == 0 {
		return 16384
	}
	return int64(c.MaxInFlight)
}
