package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// How a gateway reaches its workers.
type (
	// Bulkhead says how a gateway reaches its workers, and within which limits.
	// Each worker has its own connections, limits and breaker.
	Bulkhead = engine.Config
	// Limits bound what one worker may hold of a gateway.
	Limits = engine.Limits
	// Timeouts bound each stage of a request to a worker.
	Timeouts = engine.Timeouts
	// Breaker says when a worker is not connected to for a while.
	Breaker = engine.Breaker
	// TLS is how https endpoints are spoken to.
	TLS = engine.TLS
	// PeerName says what name the certificate of an https endpoint must hold.
	PeerName = engine.PeerName
	// Retries says which requests are tried again, and how often.
	Retries = hand.Config
)

// The names that a worker's certificate may be asked for: see [TLS]. Where a
// router asks for the cell's id, a gateway asks for the worker's.
const (
	PeerIsWorker = engine.PeerIsCell
	PeerIsHost   = engine.PeerIsHost
	PeerIsEither = engine.PeerIsEither
)

// A Config says how a [Gateway] works. Cell, Source, and Routers or RouterNames
// must be given.
type Config struct {
	// Cell is the cell that the gateway belongs to.
	Cell cellway.CellID

	// Routers are the addresses of routers, and RouterNames their names in
	// certificates: DNS names or URIs. Only they are believed when they say
	// whom a request is for.
	Routers     []netip.Prefix
	RouterNames []string

	// Direct serves requests that no router sent. Nothing is known of their
	// tenants, so together they have one hand. If false, they get the guard's
	// 421.
	Direct bool

	// Source has the list of workers.
	Source Source

	// Dealer returns what deals the hands of a list's workers, in place of what the
	// list says, for hands that are kept somewhere: such as those of a
	// [shuffle.Registry]. It is called for each list that comes into use. If it
	// fails, the list before stays in use, and it is called again after a while.
	//
	// The dealer is asked once for each tenant and list, on the path of a
	// request, and for whatever name a router gives. When it fails or takes longer
	// than a second, the tenant keeps the hand that it had; one that had none is
	// answered hand_unreachable. If nil, hands are dealt as the list says.
	Dealer func(*shuffle.Snapshot) (shuffle.Dealer, error)

	// Workers says how workers are reached. Of its timeouts, the zero Connect is
	// 250 milliseconds, as workers are near, and the zero FirstByte is Timeout.
	Workers Bulkhead

	// Retries says which requests are tried again, and how often. Its Log is
	// Log, if it is nil.
	Retries Retries

	// Timeout bounds the wait for an answer to begin, over all attempts. A
	// connection to a worker that is under way at its end is still waited for, and
	// a body that is long or of unknown length may come in beyond it. If zero, 30
	// seconds.
	Timeout time.Duration

	// Tenant is what each tenant may do, and Tenants what those may to whom
	// other limits apply. [Gateway.SetTenants] changes the latter.
	Tenant  TenantLimits
	Tenants map[cellway.TenantID]TenantLimits

	// Probe asks workers how they are. The zero Probe asks nothing.
	Probe Probe

	// Canary is the synthetic tenant. The zero Canary is none.
	Canary Canary

	// Lookback is how long after a change of the list a tenant's former hand
	// is still its hand for one purpose: as long as no member of the new one
	// has ever answered, those members of the former one are tried that are
	// still in the list. If zero, 10 minutes; if negative, never.
	Lookback time.Duration

	// Remember is how many tenants are remembered at most, with their budgets
	// and what they are suspected of. If zero, 65,536. One that is forgotten
	// begins anew. Limits don't depend on it.
	Remember int

	// Name is what the gateway calls itself in Proxy-Status and Via: a token
	// of RFC 9110. If empty, "cellway-gateway".
	Name string

	// MaxInFlight is how many requests the gateway serves at a time, tunnels
	// excepted. If zero, 16384.
	MaxInFlight int

	// MaxBody is the size in bytes that the body of a request may not exceed.
	// If zero, there is no limit.
	MaxBody int64

	// StopWait is how long [Gateway.Stop] serves on after it has made Ready
	// fail. If zero, 5 s; if negative, not at all.
	StopWait time.Duration

	// StopSpread is over how long Stop ends the tunnels. If zero, 5 s; if
	// negative, at once.
	StopSpread time.Duration

	// ExplainHeaders has answers tell by X-Cell-Hand, X-Cell-Worker and
	// X-Cell-Attempt which version of the hands, which worker and which attempt
	// they are of.
	ExplainHeaders bool

	// AccessLog gets a line for each request, an object of JSON; several in one
	// write, a few milliseconds after the first of them. One goroutine writes to it,
	// and the bytes are used again. It never makes a request wait: what can't be
	// written in time is dropped and counted. If nil, there is no access log.
	AccessLog io.Writer

	// AccessSample is the share, 0 to 1, of the requests that went well that
	// are logged. Others always are. If zero, all of them; if negative, none.
	AccessSample float64

	// Log is for events of the gateway, never for single requests. If nil,
	// nothing is logged.
	Log *slog.Logger
}

// TenantLimits is how much one tenant may do.
type TenantLimits struct {
	// Rate is how many requests a second are let through for ever. If zero,
	// there is no limit.
	Rate float64
	// Burst is how many are let through at once after a time without any. If
	// zero, Rate, but at least 1.
	Burst float64
	// InFlight is how many may be under way at a time, tunnels excepted. If
	// zero, 256; if negative, there is no limit. It should be less than what
	// one worker may hold (see [Limits]), or a tenant whose requests hang
	// fills its hand for others.
	InFlight int
	// Tunnels is how many upgraded connections there may be at a time. If zero,
	// 1024; if negative, there is no limit.
	Tunnels int
}

// limits returns l as limiters want it.
func (l TenantLimits) limits() limits {
	out := limits{rate: shuffle.Limit{Rate: l.Rate, Burst: l.Burst}, inFlight: l.InFlight, tunnels: l.Tunnels}
	if l.Burst == 0 {
		out.rate.Burst = max(l.Rate, 1)
	}
	if l.InFlight == 0 {
		out.inFlight = 256
	}
	if l.Tunnels == 0 {
		out.tunnels = 1024
	}
	return out
}

// validate reports the first rule that l breaks.
func (l TenantLimits) validate(whose string) error {
	if !(l.Rate >= 0) || !(l.Burst >= 0) || l.Burst > 0 && l.Burst < 1 || l.Rate+l.Burst > 1e15 {
		return fmt.Errorf("limits of %s: rate %v and burst %v: neither may be negative, a burst is at least 1: %w", whose, l.Rate, l.Burst, cellway.ErrInvalid)
	}
	return nil
}

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	if err := c.Tenant.validate("each tenant"); err != nil {
		return err
	}
	if err := validateTenants(c.Tenants); err != nil {
		return err
	}
	if err := c.Probe.validate(); err != nil {
		return err
	}
	if err := c.Canary.validate(); err != nil {
		return err
	}
	switch {
	case c.Source == nil:
		return bad("there is no source of workers: give Config.Source")
	case c.Timeout < 0:
		return bad("Timeout is %v, it may not be negative", c.Timeout)
	case c.MaxInFlight < 0 || c.MaxBody < 0 || c.Remember < 0:
		return bad("MaxInFlight is %d, MaxBody %d, Remember %d: none may be negative", c.MaxInFlight, c.MaxBody, c.Remember)
	case c.Retries.Attempts < 0:
		return bad("%d attempts: give at least 1, or 0 for the default", c.Retries.Attempts)
	case !(c.AccessSample <= 1):
		return bad("AccessSample is %v, it is a share of 0 to 1", c.AccessSample)
	case !front.IsToken(c.name()):
		return bad("Name %q is not a token", c.Name)
	}
	return nil
}

func (c *Config) name() string {
	if c.Name == "" {
		return "cellway-gateway"
	}
	return c.Name
}

func (c *Config) maxInFlight() int64 {
	if c.MaxInFlight == 0 {
		return 16384
	}
	return int64(c.MaxInFlight)
}
