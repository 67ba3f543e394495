package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cellway/cellway"
)

// A Config says how a router reaches its cells. The zero Config is usable.
// Every limit and timeout counts for one cell in one router.
type Config struct {
	Limits   Limits
	Timeouts Timeouts
	Breaker  Breaker
	TLS      TLS

	// MaxConns is how many connections there are to all cells at a time, those
	// included that are idle. Before one more is opened, idle ones are closed;
	// what is under way keeps its own. If zero, there is no limit.
	MaxConns int

	// Attempts is how many endpoints of the cell one request may try when
	// nothing connects. If zero, 3.
	Attempts int

	// MaxAnswerHead is the size in bytes that the head of a cell's answer may
	// not exceed. If zero, 64 KiB.
	MaxAnswerHead int64

	// Resolver looks names up. If nil, net.DefaultResolver.
	Resolver Resolver

	// ResolveEvery is how often each name is looked up again, jittered by a
	// tenth. If zero, 10 seconds.
	ResolveEvery time.Duration

	// Dial opens a connection to addr, an IP address and a port. If nil, TCP
	// with keep-alive.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Log is for events of cells and endpoints, never for requests. If nil,
	// nothing is logged.
	Log *slog.Logger

	// Noun is what the log calls that which a pool leads to, in messages and as
	// the name of the attribute with its id. If empty, "cell"; a gateway's is
	// always "worker".
	Noun string
}

// Limits bound what one cell may hold of this router. A router that has to
// serve other cells too can't be filled up by one that hangs.
type Limits struct {
	InFlight  int           // requests forwarded at a time, those for an upgrade included until the cell's 101; if zero, 1024
	Pending   int           // requests that wait for a place; if zero, InFlight; if negative, none
	QueueWait time.Duration // the longest wait for a place; if zero, 250 ms
	Tunnels   int           // upgraded connections and requests for one at a time; if zero, 16384
	IdleConns int           // idle connections kept for each endpoint; if zero, 256
}

// Timeouts bound each stage of a request. A negative one never ends.
type Timeouts struct {
	Connect    time.Duration // one endpoint: address, connection, TLS; if zero, 1 s
	FirstByte  time.Duration // from a request's last byte sent, or since the cell took none, to the answer's head; if zero, 30 s
	ClientBody time.Duration // the longest silence of a client in mid-body; if zero, 30 s
	Idle       time.Duration // the longest silence of an answer or a tunnel, or of a client that does not read; if zero, 10 min
	Whole      time.Duration // a request from start to end, tunnels excepted; if zero, without end
	IdleConn   time.Duration // how long an unused connection to a cell is kept; if zero, 30 s
	Continue   time.Duration // how long to wait for a 100 before asking the client for the body; if zero, 1 s
}

// A Breaker says when an endpoint, and when a whole cell, is left alone for a
// while. Answers are never counted against a cell, whatever their status, and
// late answers only if at least two tenants wait for them, so one tenant's
// poison can't shut its cell.
type Breaker struct {
	// Connects opens the cell after so many failed connects in a row, once
	// each of its endpoints has failed. If zero, 5. An endpoint is skipped
	// after its first.
	Connects int
	// Timeouts opens the cell, and half of it (at least 2) an endpoint, after
	// so many late answer heads of at least two tenants with no answer head
	// between them. If zero, 4.
	Timeouts int
	// Backoff is how long an endpoint or a cell is left alone at first; it
	// doubles with each failed probe up to MaxBackoff. If zero, 500 ms and 15 s.
	Backoff, MaxBackoff time.Duration
}

// A PeerName says what name the certificate of an https endpoint must hold.
type PeerName uint8

// The names that a cell's certificate may be asked for.
const (
	// PeerIsCell asks for the cell's id, or the id followed by a dot and
	// [TLS.PeerSuffix], as a DNS name of the certificate, letter for letter:
	// a wildcard would hold for every cell. An endpoint that answers for
	// another cell is so refused even where addresses were mixed up.
	PeerIsCell PeerName = iota
	// PeerIsHost asks for the host of the endpoint, as browsers do.
	PeerIsHost
	// PeerIsEither takes a certificate that fits one of the two.
	PeerIsEither
)

// TLS is how https endpoints are spoken to.
type TLS struct {
	Roots *x509.CertPool // who may sign a cell's certificate; if nil, the system's
	// RootsNow returns who may sign a cell's certificate, or nil for the
	// system's. It is called at each handshake and stands before Roots, so the
	// authorities may change; connections that are open then stay. If nil,
	// Roots counts.
	RootsNow   func() *x509.CertPool
	Peer       PeerName // what name it must hold
	PeerSuffix string   // see PeerIsCell; may be empty
	// ClientCertificate returns the router's own certificate for cells that
	// ask for one. It is called at each handshake, so files may change under
	// it. If nil, none is shown.
	ClientCertificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
}

// A settings is a Config with its defaults filled in.
type settings struct{ Config }

func newSettings(c Config) *settings {
	l, t, b := &c.Limits, &c.Timeouts, &c.Breaker
	l.InFlight = or(l.InFlight, defaultInFlight)
	l.Pending = max(0, or(l.Pending, l.InFlight))
	l.QueueWait = or(l.QueueWait, 250*time.Millisecond)
	l.Tunnels = or(l.Tunnels, 16384)
	l.IdleConns = or(l.IdleConns, 256)
	t.Connect = or(t.Connect, time.Second)
	t.FirstByte = or(t.FirstByte, 30*time.Second)
	t.ClientBody = or(t.ClientBody, 30*time.Second)
	t.Idle = or(t.Idle, 10*time.Minute)
	t.Whole = or(t.Whole, -1)
	t.IdleConn = or(t.IdleConn, 30*time.Second)
	t.Continue = or(t.Continue, time.Second)
	b.Connects = or(b.Connects, 5)
	b.Timeouts = or(b.Timeouts, 4)
	b.Backoff = or(b.Backoff, 500*time.Millisecond)
	b.MaxBackoff = or(b.MaxBackoff, 15*time.Second)
	c.Attempts = or(c.Attempts, 3)
	c.MaxAnswerHead = or(c.MaxAnswerHead, 64<<10)
	c.ResolveEvery = or(c.ResolveEvery, 10*time.Second)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	if c.Noun == "" {
		c.Noun = "cell"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &settings{c}
}

// validate reports the first limit that makes no sense.
func (c Config) validate() error {
	switch {
	case c.Limits.InFlight < 0, c.Limits.Tunnels < 0, c.Limits.IdleConns < 0, c.Limits.QueueWait < 0:
		return fmt.Errorf("limits %+v: only pending may be negative: %w", c.Limits, cellway.ErrInvalid)
	case c.Breaker.Connects < 0, c.Breaker.Timeouts < 0, c.Breaker.Backoff < 0, c.Breaker.MaxBackoff < 0:
		return fmt.Errorf("breaker %+v: none may be negative: %w", c.Breaker, cellway.ErrInvalid)
	case c.Attempts < 0, c.MaxAnswerHead < 0, c.ResolveEvery < 0, c.MaxConns < 0:
		return fmt.Errorf("attempts %d, answer head %d, resolve every %v and connections %d may not be negative: %w", c.Attempts, c.MaxAnswerHead, c.ResolveEvery, c.MaxConns, cellway.ErrInvalid)
	case c.TLS.Peer > PeerIsEither:
		return fmt.Errorf("peer name rule %d is unknown: %w", c.TLS.Peer, cellway.ErrInvalid)
	}
	return nil
}

func (s *settings) newBreaker(connects, timeouts int) breaker {
	return breaker{connectsToOpen: connects, timeoutsToOpen: timeouts, first: s.Breaker.Backoff, most: max(s.Breaker.Backoff, s.Breaker.MaxBackoff)}
}

// endless makes a negative duration one that nobody sees the end of.
func endless(d time.Duration) time.Duration {
	if d < 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return d
}
