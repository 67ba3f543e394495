package engine

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway/internal/http2"
)

// A multiplexed is a client's connection over HTTP/2, whose streams the server serves
// as connections of HTTP/1.1.
type multiplexed struct {
	srv    *Server
	conn   net.Conn
	h2     *http2.Conn
	rested atomic.Bool // State was told that it is idle, or counts it so
	tells  sync.Mutex  // held while State is told
}

// multiplex serves a connection of HTTP/2, of which begun was read already, on a
// goroutine of its own. The server knows the connection when it returns.
func (s *Server) multiplex(conn net.Conn, begun []byte) {
	m := &multiplexed{srv: s, conn: conn}
	m.rested.Store(true)
	cfg := s.http2
	cfg.Serve = m.serve
	m.h2 = http2.NewConn(conn, begun, &cfg)
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		conn.Close()
		return
	}
	s.muxes[m] = struct{}{}
	s.mu.Unlock()
	go m.run()
}

// run reads the connection until it has ended.
func (m *multiplexed) run() {
	defer m.srv.forgetMux(m)
	defer func() {
		if p := recover(); p != nil {
			m.srv.logPanic(p)
		}
	}()
	m.h2.Serve()
}

// serve serves one stream.
func (m *multiplexed) serve(stream *http2.Stream) {
	s := m.srv
	if m.rested.Load() && !m.wake() {
		stream.Refuse()
		return
	}
	if stream.GRPC() {
		s.giveGRPC(stream)
		return
	}
	c := &client{srv: s, secure: stream.TLS() != nil, stream: stream}
	c.conn, c.fd = stream, -1
	c.peer = addrPort(stream.RemoteAddr())
	c.enter(atStart, s.now())
	s.mu.Lock()
	s.awake.add(c)
	s.streams++
	s.sweepLaterLocked()
	s.mu.Unlock()
	stream.SetOwner(c)
	c.serve(toRead)
}

// wake says that the connection is idle no more, and returns whether it may go on.
func (m *multiplexed) wake() bool {
	m.tells.Lock()
	defer m.tells.Unlock()
	return !m.rested.Swap(false) || m.srv.cfg.State == nil || m.srv.cfg.State(m.conn, http.StateActive)
}

// rest says that the connection is idle, if it is.
func (m *multiplexed) rest() {
	m.tells.Lock()
	defer m.tells.Unlock()
	if m.rested.Swap(true) { // from here on a stream that begins wakes it, or has begun
		return
	}
	if !m.h2.Idle() {
		m.rested.Store(false)
	} else if m.srv.cfg.State != nil {
		m.srv.cfg.State(m.conn, http.StateIdle)
	}
}

// StreamReset ends the call, as the client has given it up.
func (c *client) StreamReset() { c.cut(errClientReset) }

// endIfResetLocked ends the call if the client had given it up before it could be ended.
func (c *client) endIfResetLocked() {
	if c.stream != nil && c.stream.Reset() {
		c.endLocked(errClientReset)
	}
}

// forgetMux takes a connection out that has ended.
func (s *Server) forgetMux(m *multiplexed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.muxes, m)
	s.goneLocked()
}

// HTTP2 reports whether the call came over HTTP/2.
func (k *Call) HTTP2() bool { return k.c.stream != nil }

// streamSpace is space for a stream: what there is of a request is read at once.
func (c *client) streamSpace() []byte {
	if c.call == nil {
		c.call = c.srv.lease(c)
	}
	in := &c.call.in
	n := c.stream.Buffered()
	if n > MaxReplay {
		n = smallBuffer // it is streamed
	}
	in.room(max(n, 1))
	return in.buf[in.end:]
}
