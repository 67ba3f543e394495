package handhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// The headers of attempts, and in a 421 of a member.
const (
	HandHeader    = "X-Cell-Hand"    // the version of the hands; in a 421, the member's own
	AttemptHeader = "X-Cell-Attempt" // 1 for the first
)

// TenantHeader names the tenant of a request, if Config.Tenant does not.
const TenantHeader = "X-Tenant-Id"

// A Config says whose hands are used, and how patient a transport is. Only Hands
// is needed.
type Config struct {
	// Hands are the hands to begin with.
	Hands Hands

	// Refresh fetches the hands of a version that a member has named, or newer
	// ones, when it says by a 421 with X-Cell-Hand that the hand is not the
	// tenant's any more. It is called by one call at a time, at most once a
	// second. If nil, such an answer is the caller's.
	Refresh func(ctx context.Context, version string) (Hands, error)

	// Tenant returns the tenant of a request, "" for none. If nil, it is the
	// header X-Tenant-Id.
	Tenant func(*http.Request) string

	// Base makes the connections. If nil, NewBase(ConnectTimeout).
	Base http.RoundTripper

	// Timeout bounds the wait for an answer to begin, over all attempts. If
	// zero, 10 seconds; a deadline of the request's context counts if it is
	// sooner. It does not bound the body.
	Timeout time.Duration

	// ConnectTimeout is how long a connection may take to come about before
	// another member is tried. If zero, 250 milliseconds.
	ConnectTimeout time.Duration

	// TryTimeout is the least time that an attempt is given, however quick the
	// cell usually is. If zero, 50 milliseconds.
	TryTimeout time.Duration

	// IdleTimeout is how long the next piece of a body may take. If zero, 30
	// seconds.
	IdleTimeout time.Duration

	// Attempts is how many attempts a call has, the first one included. If
	// zero, 3, but not more than the hand has members, and one more for a member
	// that was left since it was slow, if those after it bring nothing. If 1, none
	// is repeated.
	Attempts int

	// Backoff is the longest wait before the first retry. If zero, 50
	// milliseconds. It doubles with each further one, up to MaxBackoff, which if
	// zero is 2 seconds. The wait is drawn between nothing and that.
	Backoff, MaxBackoff time.Duration

	// MaxRetryAfter is how much longer than that a Retry-After may make a
	// call wait. If zero, 5 seconds.
	MaxRetryAfter time.Duration

	// Deposit is how much of a retry each success pays for. If zero, 0.1; if
	// negative, none.
	Deposit float64

	// TenantBurst and CellBurst are how many retries at once can be paid for by
	// successes of the past. If zero, 10 and 100.
	TenantBurst, CellBurst float64

	// Floor is how many retries a second each tenant, and the cell, have without
	// any success. If zero, 1; if negative, none.
	Floor float64

	// ReplayBytes is the length of the longest body that is sent again. If zero,
	// 65,536; if negative, none is.
	ReplayBytes int64

	// Hedge sends a second request when the first has not been answered
	// in the time in which 95 of 100 are, at most for 2 of 100 calls. Only what
	// is safe to repeat is hedged.
	Hedge bool

	// DrawKeys gives POST and PATCH without an Idempotency-Key one, which makes
	// them safe to repeat. Only for services that heed it.
	DrawKeys bool

	// Tenants is how many tenants are remembered at most. If zero, 65,536. One
	// that is forgotten begins anew.
	Tenants int

	// Log is told of members set aside and taken back, and of tenants suspected
	// of poison. If nil, nothing is.
	Log *slog.Logger
}

// or puts the default into a setting that is zero, and zero into a negative one,
// which stands for none.
func or[T int | int64 | float64 | time.Duration](v *T, zero T) {
	switch {
	case *v == 0:
		*v = zero
	case *v < 0:
		*v = 0
	}
}

// A Transport is an http.RoundTripper that stays inside hands. It is safe for
// concurrent use. Only [New] makes useful ones.
type Transport struct {
	cfg  Config
	base http.RoundTripper
	log  *slog.Logger
	cell *hand.Cell

	source    atomic.Pointer[source]
	tenants   *hand.Tenants[tenant]
	endpoints endpoints
	hedges    hand.Bucket

	refreshing chan struct{} // holds one token
	refreshed  int64         // when last; of whoever has the token

	stats counters
}

// hedgeRule allows two hedges for each hundred calls.
var hedgeRule = hand.NewRule(0.02, 5, 0)

// New checks cfg and returns a transport. It connects to nothing. The error
// wraps [shuffle.ErrInvalid].
func New(cfg Config) (*Transport, error) {
	if cfg.Hands == nil {
		return nil, fmt.Errorf("transport has no hands to stay inside: give Config.Hands: %w", shuffle.ErrInvalid)
	}
	if cfg.Attempts < 0 {
		return nil, fmt.Errorf("%d attempts: give at least 1, or 0 for the default: %w", cfg.Attempts, shuffle.ErrInvalid)
	}
	for name, d := range map[string]time.Duration{
		"Timeout": cfg.Timeout, "ConnectTimeout": cfg.ConnectTimeout, "TryTimeout": cfg.TryTimeout, "IdleTimeout": cfg.IdleTimeout,
		"Backoff": cfg.Backoff, "MaxBackoff": cfg.MaxBackoff, "MaxRetryAfter": cfg.MaxRetryAfter,
	} {
		if d < 0 {
			return nil, fmt.Errorf("%s is %v: it may not be negative: %w", name, d, shuffle.ErrInvalid)
		}
	}
	or(&cfg.Timeout, 10*time.Second)
	or(&cfg.ConnectTimeout, 250*time.Millisecond)
	or(&cfg.IdleTimeout, 30*time.Second)
	or(&cfg.ReplayBytes, 64<<10)
	or(&cfg.Tenants, 65_536)
	if cfg.Tenant == nil {
		cfg.Tenant = func(r *http.Request) string { return r.Header.Get(TenantHeader) }
	}
	t := &Transport{cfg: cfg, base: cfg.Base, log: cfg.Log, refreshing: make(chan struct{}, 1)}
	if t.base == nil {
		t.base = NewBase(cfg.ConnectTimeout)
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.cell = hand.NewCell(hand.Config{
		Attempts: cfg.Attempts, TryTimeout: cfg.TryTimeout, Backoff: cfg.Backoff, MaxBackoff: cfg.MaxBackoff, MaxRetryAfter: cfg.MaxRetryAfter,
		Deposit: cfg.Deposit, TenantBurst: cfg.TenantBurst, CellBurst: cfg.CellBurst, Floor: cfg.Floor, Log: cfg.Log,
	}, t.endpoints.members)
	t.tenants = hand.NewTenants(cfg.Tenants, t.newTenant)
	t.hedges.Put(hedgeRule, 1)
	t.refreshed = -int64(time.Hour)
	t.Use(cfg.Hands)
	return t, nil
}

// NewBase returns a transport fit for Config.Base: connections have to come
// about within connect, HTTP/2 connections that fall silent are found out
// within seven seconds, and compression is left to the caller.
func NewBase(connect time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                 nil, // workers are near
		DialContext:           (&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   4 * connect,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
	}
}

// Use has calls from now on use hands. Calls under way keep the hand that they
// began with. What is known of workers and tenants is kept.
func (t *Transport) Use(hands Hands) {
	if s := t.source.Load(); s != nil && s.Version() == hands.Version() {
		return
	}
	t.endpoints.turn()
	t.source.Store(&source{hands})
}

// Version returns the version of the hands in use.
func (t *Transport) Version() string { return t.source.Load().Version() }

// CloseIdleConnections closes what connections are idle, if Base can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
