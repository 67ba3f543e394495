package http2_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cellway/cellway/internal/http2"
	"github.com/cellway/cellway/internal/memnet"
)

// handed is a listener of streams for an http.Server.
type handed struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error   { h.once.Do(func() { close(h.done) }); return nil }
func (h *handed) Addr() net.Addr { return handedAddr{} }

type handedAddr struct{}

func (handedAddr) Network() string { return "stream" }
func (handedAddr) String() string  { return "stream" }

// A server serves connections of a listener.
type server struct {
	t    *testing.T
	cfg  *http2.Config
	l    net.Listener
	mu   sync.Mutex
	all  []*http2.Conn
	wait sync.WaitGroup
}

// newServer has streams of l's connections served by serve.
func newServer(t *testing.T, l net.Listener, cfg http2.Config, serve func(*http2.Stream)) *server {
	cfg.Serve = serve
	s := &server{t: t, cfg: cfg.WithDefaults(), l: l}
	s.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := http2.NewConn(conn, nil, s.cfg)
			s.mu.Lock()
			s.all = append(s.all, c)
			s.mu.Unlock()
			s.wait.Go(c.Serve)
		}
	})
	t.Cleanup(s.close)
	return s
}

func (s *server) conns() []*http2.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

func (s *server) close() {
	s.l.Close()
	for _, c := range s.conns() {
		c.Close()
	}
	s.wait.Wait()
}

// byNetHTTP serves streams by an http.Server.
func byNetHTTP(t *testing.T, h http.Handler) func(*http2.Stream) {
	streams := &handed{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	var wait sync.WaitGroup
	wait.Go(func() { srv.Serve(streams) })
	t.Cleanup(func() { srv.Close(); wait.Wait() })
	return func(s *http2.Stream) {
		s.StayOpen()
		select {
		case streams.conns <- s:
		case <-streams.done:
			s.Close()
		}
	}
}

// A peer is a client that speaks in frames.
type peer struct {
	t    *testing.T
	conn net.Conn
	fr   *xhttp2.Framer
	buf  bytes.Buffer
	enc  *hpack.Encoder
}

// dial opens a connection to a server of these streams.
func dial(t *testing.T, cfg http2.Config, serve func(*http2.Stream)) (*peer, *server) {
	t.Helper()
	var mem memnet.Net
	s := newServer(t, mem.Listen("front"), cfg, serve)
	conn, err := mem.DialContext(t.Context(), "tcp", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &peer{t: t, conn: conn, fr: xhttp2.NewFramer(conn, conn)}
	p.enc = hpack.NewEncoder(&p.buf)
	p.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.do(func() error { _, err := io.WriteString(conn, xhttp2.ClientPreface); return err }())
	p.do(p.fr.WriteSettings())
	return p, s
}

func (p *peer) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// request sends a head.
func (p *peer) request(id uint32, end bool, more ...string) {
	p.t.Helper()
	p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: end, BlockFragment: p.block(more...)}))
}

// block returns the fields of a request as they are coded.
func (p *peer) block(more ...string) []byte {
	p.buf.Reset()
	fields := append([]string{":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a.test"}, more...)
	for i := 0; i < len(fields); i += 2 {
		p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return p.buf.Bytes()
}

// trailers returns trailers as they are coded.
func (p *peer) trailers() []byte {
	p.buf.Reset()
	p.enc.WriteField(hpack.HeaderField{Name: "x-sum", Value: "1"})
	return p.buf.Bytes()
}

// frames reads p's frames on, so that the server may write at any time.
func (p *peer) frames() <-chan xhttp2.Frame {
	all := make(chan xhttp2.Frame, 10_000)
	p.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(all)
		for {
			f, err := p.fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *xhttp2.DataFrame:
				c := *f
				all <- &c
			default:
				all <- f
			}
		}
	}()
	return all
}

// lastWord returns the code of the last GOAWAY, when the connection has ended.
func lastWord(all <-chan xhttp2.Frame) (code xhttp2.ErrCode, said bool) {
	for f := range all {
		if g, ok := f.(*xhttp2.GoAwayFrame); ok {
			code, said = g.ErrCode, true
		}
	}
	return code, said
}

// resetOf returns the code of the reset of a stream.
func resetOf(t *testing.T, all <-chan xhttp2.Frame, id uint32) xhttp2.ErrCode {
	t.Helper()
	for f := range all {
		if r, ok := f.(*xhttp2.RSTStreamFrame); ok && r.StreamID == id {
			return r.ErrCode
		}
	}
	t.Fatalf("the stream %d was not reset", id)
	return 0
}

// hung serves a stream by waiting until it can't be read any more.
func hung(s *http2.Stream) {
	defer s.Close()
	s.StayOpen()
	_, _ = io.Copy(io.Discard, s)
}

// deaf reads nothing until its stream is reset.
func deaf(s *http2.Stream) {
	defer s.Close()
	for !s.Reset() {
		runtime.Gosched()
	}
}

// hello answers every request alike.
func hello(s *http2.Stream) {
	defer s.Close()
	_, _ = io.Copy(io.Discard, s)
	_, _ = io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
}
