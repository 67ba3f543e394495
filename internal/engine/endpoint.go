package engine

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// An endpoint is one address that a cell is reached at, with the connections
// to it.
type endpoint struct {
	name      string // scheme://host:port
	scheme    string
	authority string // host:port
	host      string
	port      uint16
	literal   []netip.Addr // the host, if it is an address
	name2addr *host        // the host, if it is a name

	pool    *Pool
	cfg     *settings
	buffers *buffers
	breaker breaker
	turn    atomic.Uint32 // which address is next
	active  atomic.Int64  // requests and tunnels
	conns   atomic.Int64  // connections, those that are idle included
	gone    atomic.Bool   // no longer in the map
	loose   loose

	links      links           // those of the own path: HTTP/1.1
	spoken     spoken          // over TLS, where ALPN does not say HTTP/1.1
	plain      *http.Transport // HTTP/1.1, or over TLS what ALPN says
	switchable *http.Transport // HTTP/1.1 only, for upgrades; plain where that is the same
	grpc       *http.Transport // HTTP/2 also in cleartext; plain over TLS
}

// newEndpoint returns the endpoint called name, which ParseEndpoint accepts.
func newEndpoint(p *Pool, name string) (*endpoint, error) {
	u, err := cellway.ParseEndpoint(name)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return nil, err
	}
	cfg := p.all.cfg
	e := &endpoint{name: name, scheme: u.Scheme, authority: u.Host, host: u.Hostname(), port: uint16(port), pool: p, cfg: cfg, buffers: &p.all.buffers}
	e.links.e = e
	e.spoken.asking = newBaton()
	e.breaker = cfg.newBreaker(1, max(2, cfg.Breaker.Timeouts/2))
	if a, err := netip.ParseAddr(e.host); err == nil {
		e.literal = []netip.Addr{a}
	} else {
		e.name2addr = p.all.names.use(e.host)
	}
	e.plain = e.usual()
	if e.scheme == "https" {
		e.grpc = e.plain
		e.switchable = e.upgrading()
	} else {
		e.switchable = e.plain
		e.grpc = e.transport(false, false, true)
	}
	return e, nil
}

// unread is how many bytes of a body over HTTP/2 may come before any are read: so much of
// it is kept in memory. It is what the kernel takes of an answer over HTTP/1.
const unread = 256 << 10

// usual returns connections for all but upgrades and gRPC.
func (e *endpoint) usual() *http.Transport {
	if e.scheme == "https" {
		t := e.transport(true, true, false)
		t.DialTLSContext = frame(e.dialTLS("h2", "http/1.1"))
		return t
	}
	t := e.transport(true, false, false)
	t.DialContext = frame(e.dial)
	return t
}

// upgrading returns connections for upgrades, to an endpoint behind TLS.
func (e *endpoint) upgrading() *http.Transport {
	t := e.transport(true, false, false)
	t.DialTLSContext = frame(e.dialTLS("http/1.1"))
	return t
}

// alone reports whether a request is to have a connection of its own, for what its trailers
// may do to others that share it. If a cell has answered and ended the stream when they
// come, they are for a stream that is no more, and some servers, Go's for one, then break
// off the connection. Only over HTTP/2 do requests share one.
func (e *endpoint) alone(k kind, trailers http.Header) bool {
	return len(trailers) > 0 && (e.scheme == "https" && k != upgrade || k == grpc)
}

// anew returns what opens a connection for one request of that kind, and closes it after
// that.
func (e *endpoint) anew(k kind) (t *http.Transport) {
	switch secure := e.scheme == "https"; {
	case k == upgrade && secure:
		t = e.upgrading()
	case k == grpc && !secure:
		t = e.transport(false, false, true)
	default:
		t = e.usual()
	}
	t.DisableKeepAlives = true
	t.IdleConnTimeout = time.Second // package http keeps one of HTTP/2 that its request has left before it was there
	return t
}

// transport returns connections of the given protocols to e. Its own retries
// are held to what the package promises: see outHeader.
func (e *endpoint) transport(http1, http2, clear2 bool) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetHTTP2(http2)
	p.SetUnencryptedHTTP2(clear2)
	return &http.Transport{
		DialContext:            e.dial,
		Protocols:              p,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    e.cfg.Limits.IdleConns,
		IdleConnTimeout:        max(0, e.cfg.Timeouts.IdleConn), // 0 is endless
		ExpectContinueTimeout:  endless(e.cfg.Timeouts.Continue),
		MaxResponseHeaderBytes: e.cfg.MaxAnswerHead,
		HTTP2: &http.HTTP2Config{
			// A cell that vanished in mid-stream is noticed by pings.
			SendPingTimeout:           15 * time.Second,
			PingTimeout:               15 * time.Second,
			MaxReceiveBufferPerStream: unread, // of an answer whose client does not read
		},
	}
}

// closeIdle closes the connections that carry nothing.
func (e *endpoint) closeIdle() {
	e.links.closeIdle()
	for _, l := range e.pool.all.allLoops() {
		l.post(func() { l.closeIdle(e) })
	}
	e.plain.CloseIdleConnections()
	e.switchable.CloseIdleConnections()
	e.grpc.CloseIdleConnections()
}

// retire takes e out of use: it finishes what it has.
func (e *endpoint) retire() {
	e.gone.Store(true)
	e.closeIdle()
	if e.name2addr != nil {
		e.pool.all.names.drop(e.name2addr)
	}
}

func (e *endpoint) enter() { e.active.Add(1) }

func (e *endpoint) leave() {
	if e.active.Add(-1) == 0 && e.gone.Load() {
		e.closeIdle()
	}
}

func (e *endpoint) stats() EndpointStats {
	s, failures, _ := e.breaker.look()
	return EndpointStats{Endpoint: e.name, InFlight: int(e.active.Load()), State: s, Failures: failures}
}
