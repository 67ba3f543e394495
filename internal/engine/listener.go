package engine

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/cellway/cellway"
)

// A CheckerConfig says how strict the front is. The zero CheckerConfig is
// usable.
type CheckerConfig struct {
	// MaxHead is the size in bytes that a request's head may not exceed. If
	// zero, 64 KiB. A larger one is answered 431.
	MaxHead int
	// HeadTimeout is how long a client may take for a head from its first
	// byte, and to send a first byte on a new connection. If zero, 10 s.
	HeadTimeout time.Duration
	// IdleTimeout is how long a connection may be silent between requests. If
	// zero, 75 s.
	IdleTimeout time.Duration
	// HandshakeTimeout bounds a TLS handshake. If zero, 10 s.
	HandshakeTimeout time.Duration
	// NoH2C refuses cleartext HTTP/2.
	NoH2C bool
	// Refused is called once for each head or body that is refused, from many
	// goroutines. reason is a short constant fit for a metric's label. If nil,
	// nothing is called.
	Refused func(code cellway.Code, reason string)
	// Answer writes the answer to a refused head. If nil, a problem+json with
	// the code.
	Answer func(w http.ResponseWriter, r *http.Request, code cellway.Code, detail string)
}

// A Checker stands between listeners and an http.Server and lets only heads
// through that can be read in one way.
type Checker struct{ cfg CheckerConfig }

// NewChecker returns a Checker.
func NewChecker(cfg CheckerConfig) *Checker { return &Checker{cfg: cfg} }

// Listen returns a listener whose cleartext connections are checked.
func (c *Checker) Listen(inner net.Listener) net.Listener { return inner }

// ListenTLS returns a listener that ends TLS and checks HTTP/1 inside it. The
// handshakes run beside Accept.
func (c *Checker) ListenTLS(inner net.Listener, cfg *tls.Config) net.Listener { return inner }

// Install makes s ready for connections of c's listeners: it wraps s.Handler
// and sets its protocols, connection context, limits and timeouts. Call it
// once, after s.Handler is set and before Serve.
func (c *Checker) Install(s *http.Server) {}
