package engine

import (
	"net/http"

	"github.com/cellway/cellway/internal/http2"
)

// giveGRPC gives a stream of gRPC to the server of net/http, as a connection of HTTP/1.1:
// cells get it over HTTP/2, and all that this needs is there. It has the checks of any
// such connection.
func (s *Server) giveGRPC(stream *http2.Stream) {
	stream.StayOpen()    // net/http takes the end of what it reads for the client's
	stream.Served(false) // not if it shuts down before it has read the request
	c := newConn(stream, s.cfg.Checker)
	c.framing.h2c = false
	if !s.other.offer(c) {
		stream.Refuse()
	}
}

// asHTTP2 returns a request, which net/http has read of a stream, as one of HTTP/2.
func asHTTP2(w http.ResponseWriter, r *http.Request, s *http2.Stream) *http.Request {
	s.Served(true)
	_ = http.NewResponseController(w).EnableFullDuplex() // net/http's own server can
	r = r.WithContext(r.Context())                       // whose copy net/http does not look at
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.Close = "HTTP/2.0", 2, 0, false
	r.Header = r.Header.Clone()
	delete(r.Header, "Connection") // it is ours
	if tc := s.TLS(); tc != nil {
		state := tc.ConnectionState()
		r.TLS = &state
	}
	return r
}
