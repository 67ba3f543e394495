package engine

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// knownFor is how long it is taken for true what an endpoint speaks over TLS. Then
// it is learned again, from the next connection.
const knownFor = 5 * time.Minute

// A speech is what an endpoint speaks over TLS.
type speech uint8

const (
	speaksUnknown speech = iota
	speaksHTTP1          // without saying so by ALPN
	speaksHTTP2          // and nothing else
)

// A spoken remembers the speech of an endpoint that does not name HTTP/1.1 by
// ALPN. What does name it is asked each time, and costs nothing.
type spoken struct {
	known  atomic.Pointer[learned]
	asking baton // held by who asks
}

type learned struct {
	speech speech
	until  time.Time
}

// look returns what is known.
func (s *spoken) look() speech {
	if k := s.known.Load(); k != nil && time.Now().Before(k.until) {
		return k.speech
	}
	return speaksUnknown
}

func (s *spoken) learn(what speech) { s.known.Store(&learned{what, time.Now().Add(knownFor)}) }

// forget has it learned again.
func (s *spoken) forget() {
	if s.known.Load() != nil {
		s.known.Store(nil)
	}
}

// dial opens a link to e. HTTP/1.1 comes first, as it costs less, and is the only one
// that has tunnels. Nothing is sent over a connection on which it may not be spoken.
func (k *Call) dial(e *endpoint) (*link, error) {
	if e.scheme != "https" || k.upgrades() {
		return e.dialLink(k.context())
	}
	if e.spoken.look() == speaksHTTP2 {
		return k.bridge(e), nil
	}
	l, err := e.dialLink(k.context())
	switch {
	case disagrees(err):
		e.spoken.learn(speaksHTTP2) // or nothing that we speak, which the bridge will find
	case err != nil || protocolOf(l.conn) != "":
		return l, err
	case e.speaksOnlyHTTP2(k.context()):
		l.conn.Close()
	default:
		return l, nil
	}
	return k.bridge(e), nil
}

// speaksOnlyHTTP2 reports whether an endpoint that has not chosen HTTP/1.1 by ALPN
// speaks HTTP/2 only. Old servers leave ALPN alone and speak HTTP/1.1. Servers of
// HTTP/2 may do so too if it is not offered, and then close the connection. So it
// is offered, once, over a connection of its own.
func (e *endpoint) speaksOnlyHTTP2(ctx context.Context) bool {
	select {
	case e.spoken.asking <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer e.spoken.asking.pass()
	if known := e.spoken.look(); known != speaksUnknown {
		return known == speaksHTTP2
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endless(e.cfg.Timeouts.Connect), errConnectSlow)
	defer cancel()
	c, err := e.shake(ctx, "tcp", e.client("h2"))
	switch {
	case err == nil:
		defer c.Close()
		if protocolOf(c) == "h2" {
			e.spoken.learn(speaksHTTP2)
			return true
		}
	case !disagrees(err):
		return false // nobody knows, and the next one may ask
	}
	e.spoken.learn(speaksHTTP1)
	return false
}

// protocolOf returns the protocol that was agreed on for a connection of TLS, or "".
func protocolOf(c net.Conn) string {
	if tc, ok := c.(*tls.Conn); ok {
		return tc.ConnectionState().NegotiatedProtocol
	}
	return ""
}

// disagrees reports whether a handshake failed because the two sides have no
// protocol in common. The other side says so by an alert (RFC 7301, section 3.2);
// one that chooses what was not offered says it as well. Package tls has no values
// for these errors.
func disagrees(err error) bool {
	if err == nil {
		return false
	}
	s := err.Error()
	return strings.Contains(s, "tls: no application protocol") || strings.Contains(s, "tls: server selected unadvertised ALPN protocol")
}
