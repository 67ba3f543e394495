package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/http2"
)

// A Handler answers the calls of a [Server].
type Handler interface {
	// ServeCall serves one request, by [Call.Forward] or [Call.Answer]. When it
	// returns and no answer has begun, the connection is closed without one.
	ServeCall(c *Call)
	// RefuseCall answers a request whose head could not be read in one way. The
	// call has no head.
	RefuseCall(c *Call, r Reason)
}

// A ServerConfig says how a [Server] works.
type ServerConfig struct {
	// Handler answers calls. It must be given.
	Handler Handler

	// Checker has the limits and timeouts of clients' heads. If nil, those of
	// the zero CheckerConfig hold.
	Checker *Checker

	// AnswerTimeout is how long a client may take none of an answer that is
	// not a cell's. If zero, 30 s.
	AnswerTimeout time.Duration

	// State is told when a connection that was idle begins a request
	// ([http.StateActive]), and when it has been idle for a while or
	// [Server.Rest] is called ([http.StateIdle]); at first it is idle. If it returns false, the
	// connection is closed, and nothing comes of its request. If nil, nobody is
	// told.
	State func(c net.Conn, s http.ConnState) (goOn bool)

	// Loops is how many event loops serve what is simple: whole requests over
	// cleartext, which can be sent at once. Each of them keeps a core busy when
	// there is enough to do. They need a Handler that is a [Stepper], listeners
	// that are [Movable], and Linux. If zero, every connection has a goroutine.
	Loops int

	// OwnHTTP2 has connections of HTTP/2 served by the Server, too: each stream as if it
	// were a connection of HTTP/1.1. One of gRPC goes to the listener that
	// [Server.HTTP2] returns, as a connection by itself.
	OwnHTTP2 bool

	// WriteTimeout is how long a client over HTTP/2 may take for 16 KiB of what is sent
	// to it, for whatever stream. If zero, AnswerTimeout.
	WriteTimeout time.Duration

	// Looping is told when connections are in loops again, and when none has been
	// for a moment. A loop that has any may keep one of the runtime's processors for
	// itself. If nil, nobody is told.
	Looping func(on bool)

	// Log is for faults of the server, never for single requests. If nil,
	// nothing is logged.
	Log *slog.Logger
}

// A Server serves clients over HTTP/1.1 and 1.0, and over HTTP/2 if
// [ServerConfig].OwnHTTP2 is set; what it does not serve goes to the listener that
// [Server.HTTP2] returns, for an http.Server. Its methods may be called at any time from
// any goroutine.
type Server struct {
	cfg       ServerConfig
	limits    HeadLimits
	epoch     time.Time // the zero of the times of connections
	calls     sync.Pool // of *Call
	scratches sync.Pool // of *scratch
	pools     buffers
	other     *handedOver
	http2     http2.Config
	date      dater
	doze      time.Duration // between two looks at all that are asleep

	stepper Stepper      // the handler, if there are loops
	inLoops atomic.Int64 // connections

	telling sync.Mutex // held while Looping is told
	told    bool       // what it was told last

	looks sync.Mutex // held while connections are looked at
	batch []*client  // which these are

	mu        sync.Mutex
	loops     []*loop
	turn      int
	listeners map[net.Listener]struct{}
	awake     roster // connections that have a call, had one lately, or may have one at once
	asleep    roster // those that have none
	muxes     map[*multiplexed]struct{}
	streams   int // of these, which are in the rosters, too
	sweeping  bool
	tick      time.Duration // between two looks at all that are awake
	gone      chan struct{} // closed when no connection is left after closing
	closing   atomic.Bool
	timer     *time.Timer
}

// NewServer returns a Server. It starts nothing: see [Server.Serve].
func NewServer(cfg ServerConfig) *Server {
	if cfg.Checker == nil {
		cfg.Checker = NewChecker(CheckerConfig{})
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.AnswerTimeout = or(cfg.AnswerTimeout, 30*time.Second)
	k := cfg.Checker
	s := &Server{
		cfg: cfg, limits: k.limits(), epoch: time.Now(),
		listeners: make(map[net.Listener]struct{}), muxes: make(map[*multiplexed]struct{}),
	}
	s.tick = tickFor(k.headTimeout(), k.idleTimeout(), cfg.AnswerTimeout)
	s.doze = s.tick
	s.http2 = *http2.Config{
		HeadBytes: s.limits.Bytes, HeadFields: s.limits.Fields,
		HeadTimeout: k.headTimeout(), IdleTimeout: k.idleTimeout(), WriteTimeout: or(cfg.WriteTimeout, cfg.AnswerTimeout),
		Malformed: func() { k.count(ReasonField) },
	}.WithDefaults()
	s.other = &handedOver{conns: make(chan net.Conn), done: make(chan struct{})}
	return s
}

// now returns the time since the epoch and one nanosecond, so that no time is
// zero.
func (s *Server) now() int64 { return s.when(time.Now()) }

func (s *Server) when(t time.Time) int64 { return int64(t.Sub(s.epoch)) + 1 }

// ErrServerClosed is returned by [Server.Serve] after [Server.Shutdown] or
// [Server.Close].
var ErrServerClosed = http.ErrServerClosed

// Serve accepts connections of l, which may be one of a [Checker], until the
// server is shut down. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.listen(l) {
		return ErrServerClosed
	}
	defer s.unlisten(l)
	s.startLoops()
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.take(c)
			continue
		case s.closing.Load():
			return ErrServerClosed
		}
		//lint:ignore SA1019 net/http asks for it, too: descriptors may be free again soon
		if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Temporary() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.cfg.Log.Warn("no connection accepted", "error", err, "pause", pause)
		time.Sleep(pause)
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) unlisten(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// take serves a connection: in a loop, where there is one for it, and else on a
// goroutine of its own.
func (s *Server) take(conn net.Conn) {
	if checked := checkedConn(conn); checked != nil {
		conn = checked.Conn // it is checked here
	}
	tc, secure := conn.(*tls.Conn)
	if secure && tc.ConnectionState().NegotiatedProtocol == "h2" {
		if s.cfg.OwnHTTP2 {
			s.multiplex(conn, nil)
		} else {
			go s.other.give(conn)
		}
		return
	}
	c := newClient(s, conn, secure)
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		conn.Close()
		return
	}
	s.asleep.add(c)
	s.sweepLaterLocked()
	s.mu.Unlock()
	if sock := c.sock; sock != nil {
		if c.join() {
			return
		}
		c.settle(sock)
	}
	go c.serve(toRead)
}

// forget takes a connection out that has ended or was handed over.
func (s *Server) forget(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.roster.remove(c)
	if c.stream != nil {
		s.streams--
	}
	s.goneLocked()
}

// goneLocked ends what a server that is closed waits for, if no connection is left.
func (s *Server) goneLocked() {
	if s.openLocked() == 0 && s.closing.Load() {
		s.endLoopsLocked()
	}
	if s.openLocked() == 0 && s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
}

// logPanic says that somebody has panicked, unless it was only to break a call off.
func (s *Server) logPanic(p any) {
	if p != http.ErrAbortHandler {
		s.cfg.Log.Error("panic while serving a client", "panic", p, "stack", string(debug.Stack()))
	}
}

// HTTP2 returns a listener for an http.Server, which it gives the connections
// that speak HTTP/2, or only the streams of gRPC if [ServerConfig].OwnHTTP2 is set.
// Those in cleartext stay checked. It ends with the server.
func (s *Server) HTTP2() net.Listener { return s.other }

// Shutdown ends the server: it closes the listeners and idle connections, and
// waits for the others, each of which is closed after its answer. It returns
// nil when all have ended, or the cause of ctx's end. Tunnels are waited for,
// too: see [Server.Sweep].
func (s *Server) Shutdown(ctx context.Context) error {
	gone := s.close((*client).retire, func(m *multiplexed) { m.h2.Shutdown() })
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the server and breaks off what is under way.
func (s *Server) Close() error {
	gone := s.close((*client).abandon, func(m *multiplexed) { m.h2.Close() })
	<-gone
	return nil
}

// close closes the listeners and has each connection end.
func (s *Server) close(end func(*client), endMux func(*multiplexed)) (gone <-chan struct{}) {
	s.closing.Store(true)
	s.other.Close()
	s.mu.Lock()
	listeners := make([]net.Listener, 0, len(s.listeners))
	for l := range s.listeners {
		listeners = append(listeners, l)
	}
	clients := s.allLocked()
	muxes := slices.Collect(maps.Keys(s.muxes))
	if s.gone == nil {
		s.gone = make(chan struct{})
	}
	ch := s.gone
	if len(clients)+len(muxes) == 0 {
		s.endLoopsLocked()
		close(s.gone)
		s.gone = nil
	}
	s.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // whoever serves it sees that it is closed
	}
	for _, c := range clients {
		end(c)
	}
	for _, m := range muxes {
		endMux(m)
	}
	s.heed(lingerTime / 2)
	s.wakeLoops() // some may have joined just now
	return ch
}

// Sweep ends, with cause, every call for which keep is false, and returns how
// many it ended: those that have become tunnels if tunnels is true, otherwise
// the others. A call is known here from [Call.Track] on. Those that are not at their
// cell yet end first: they may wait for a place there that another one gives back when
// it ends.
func (s *Server) Sweep(tunnels bool, keep func(key cellway.Key, cell cellway.CellID) bool, cause error) int {
	n, all := 0, s.all()
	for _, atCells := range []bool{false, true} {
		for _, c := range all {
			if c.sweep(tunnels, atCells, keep, cause) {
				n++
			}
		}
	}
	return n
}

// all returns the connections that there are.
func (s *Server) all() []*client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allLocked()
}

func (s *Server) allLocked() []*client { return slices.Concat(s.awake.all, s.asleep.all) }

// openLocked returns how many connections and streams there are.
func (s *Server) openLocked() int { return len(s.awake.all) + len(s.asleep.all) + len(s.muxes) }

// Rest tells ServerConfig.State at once of the connections that are idle.
func (s *Server) Rest() {
	s.mu.Lock()
	awake := slices.Clone(s.awake.all)
	muxes := slices.Collect(maps.Keys(s.muxes))
	s.mu.Unlock()
	for _, m := range muxes {
		m.rest()
	}
	for _, c := range awake {
		if at, since := c.stage(); at == atIdle {
			c.rest(since)
		}
	}
}

// Connections returns how many connections there are, tunnels included.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openLocked() - s.streams
}

// Tunnels returns how many calls are tunnels.
func (s *Server) Tunnels() int {
	n := 0
	for _, c := range s.all() {
		if s, _ := c.stage(); s == atTunnel {
			n++
		}
	}
	return n
}

// A handedOver is a listener of connections that another server is to serve.
type handedOver struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{} // closed by Close
}

// give gives a connection to whoever accepts, and closes it if nobody will.
func (h *handedOver) give(c net.Conn) {
	if !h.offer(c) {
		c.Close()
	}
}

// offer gives a connection to whoever accepts, and reports whether somebody did.
func (h *handedOver) offer(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

func (h *handedOver) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handedOver) Close() error { h.once.Do(func() { close(h.done) }); return nil }

func (h *handedOver) Addr() net.Addr { return handedOverAddr{} }

type handedOverAddr struct{}

func (handedOverAddr) Network() string { return "http2" }
func (handedOverAddr) String() string  { return "http2" }
