package front

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// An Inbound is a request as a server has read it, with the way back to its
// client: a [Served] or a [Called].
type Inbound interface {
	Proto() string // as logs have it
	Via() string   // as Via has it
	HTTP1() bool   // its connection carries one request at a time
	GRPC() bool
	Secure() bool
	Peer() netip.Addr          // the zero Addr if there is none
	TLS() *tls.ConnectionState // nil in cleartext

	// KeepBody keeps the body, if there is one, so that the request can be sent
	// once more; Rewind reports whether it can, when an attempt has ended; and
	// DropBody ends that. Short reports, before it was sent, whether Rewind will.
	KeepBody()
	Rewind() bool
	DropBody()
	Short() bool

	// Track makes it known as one for key that goes to cell, so that it may be
	// swept, and Forward sends it there.
	Track(key cellway.Key, cell cellway.CellID)
	Forward(to *engine.Pool, o *engine.Options) *engine.Report
	// Upgraded says that it becomes a tunnel, within Forward.
	Upgraded()
	// Done is closed when the client has gone, or somebody has ended the
	// request; Gone reports whether it is.
	Done() <-chan struct{}
	Gone() bool
	// Now is the time, which is read once for all that a loop does at once.
	Now() time.Time

	// Header is what Answer sends as the head of an answer that comes from
	// nobody behind. Answer returns how many bytes of the body it sent.
	Header() engine.Header
	Answer(status int, body []byte) (sent int64)
}

// A Served is a request of net/http. Desk, W and R must be given.
type Served struct {
	Desk *Desk
	W    http.ResponseWriter
	R    *http.Request

	body   *engine.Replay
	ctx    context.Context
	flight *engine.Flight
	rep    engine.Report
}

// Proto is [Inbound].Proto.
func (s *Served) Proto() string { return s.R.Proto }

// Via is [Inbound].Via.
func (s *Served) Via() string {
	if s.R.ProtoMajor >= 2 {
		return strconv.Itoa(s.R.ProtoMajor)
	}
	return strconv.Itoa(s.R.ProtoMajor) + "." + strconv.Itoa(s.R.ProtoMinor)
}

// HTTP1 is [Inbound].HTTP1.
func (s *Served) HTTP1() bool { return s.R.ProtoMajor == 1 }

// GRPC is [Inbound].GRPC.
func (s *Served) GRPC() bool { return engine.IsGRPC(s.R) }

// Secure is [Inbound].Secure.
func (s *Served) Secure() bool { return s.R.TLS != nil }

// TLS is [Inbound].TLS.
func (s *Served) TLS() *tls.ConnectionState { return s.R.TLS }

// Peer is [Inbound].Peer.
func (s *Served) Peer() netip.Addr {
	ap, err := netip.ParseAddrPort(s.R.RemoteAddr)
	if err != nil {
		return netip.Addr{} // as on a Unix socket
	}
	return ap.Addr().Unmap()
}

// KeepBody is [Inbound].KeepBody.
func (s *Served) KeepBody() {
	if engine.HasBody(s.R) {
		s.body = engine.NewReplay(s.R, engine.MaxReplay)
	}
}

// Rewind is [Inbound].Rewind.
func (s *Served) Rewind() bool { return s.body == nil || s.body.Rewind() }

// DropBody is [Inbound].DropBody.
func (s *Served) DropBody() {
	if s.body != nil {
		s.body.Close()
	}
}

// Short is [Inbound].Short.
func (s *Served) Short() bool {
	return !engine.HasBody(s.R) || s.R.ContentLength > 0 && s.R.ContentLength <= engine.MaxReplay
}

// Track is [Inbound].Track.
func (s *Served) Track(key cellway.Key, cell cellway.CellID) {
	s.ctx, s.flight = s.Desk.requests.Add(s.R.Context(), key, cell)
}

// Forward is [Inbound].Forward.
func (s *Served) Forward(to *engine.Pool, o *engine.Options) *engine.Report {
	defer s.flight.Done()
	with := *o
	with.Body = s.body
	s.rep = to.Forward(s.W, s.R.WithContext(s.ctx), with)
	return &s.rep
}

// Upgraded is [Inbound].Upgraded.
func (s *Served) Upgraded() { s.flight.Move(&s.Desk.upgraded) }

// Done is [Inbound].Done.
func (s *Served) Done() <-chan struct{} { return s.R.Context().Done() }

// Gone is [Inbound].Gone.
func (s *Served) Gone() bool { return s.R.Context().Err() != nil }

// Now is [Inbound].Now.
func (s *Served) Now() time.Time { return time.Now() }

// Header is [Inbound].Header.
func (s *Served) Header() engine.Header { return engine.HTTPHeader(s.W.Header()) }

// Answer is [Inbound].Answer.
func (s *Served) Answer(status int, body []byte) (sent int64) {
	s.W.WriteHeader(status)
	if s.R.Method == http.MethodHead {
		return 0
	}
	n, _ := s.W.Write(body) // the client may be gone: there is nobody to tell
	return int64(n)
}

// A Called is a call of the engine's server.
type Called struct{ *engine.Call }

// Proto is [Inbound].Proto.
func (s *Called) Proto() string {
	if s.HTTP2() {
		return "HTTP/2.0"
	}
	if s.Head().Minor == 0 {
		return "HTTP/1.0"
	}
	return "HTTP/1.1"
}

// Via is [Inbound].Via.
func (s *Called) Via() string {
	if s.HTTP2() {
		return "2"
	}
	return s.Proto()[len("HTTP/"):]
}

// HTTP1 is [Inbound].HTTP1.
func (s *Called) HTTP1() bool { return !s.HTTP2() }

// GRPC is [Inbound].GRPC: it needs HTTP/2.
func (s *Called) GRPC() bool { return false }

// Peer is [Inbound].Peer.
func (s *Called) Peer() netip.Addr { return s.Call.Peer().Addr() }

// KeepBody is [Inbound].KeepBody.
func (s *Called) KeepBody() { s.Call.KeepBody(engine.MaxReplay) }

// DropBody is [Inbound].DropBody.
func (s *Called) DropBody() {}

// Short is [Inbound].Short.
func (s *Called) Short() bool {
	return !s.HasBody() || s.Head().Length > 0 && s.Head().Length <= engine.MaxReplay
}

// Upgraded is [Inbound].Upgraded: the server knows.
func (s *Called) Upgraded() {}

// Gone is [Inbound].Gone.
func (s *Called) Gone() bool { return s.Ended() }
