package engine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A newCell is one whose server may be replaced. It counts handshakes by what they
// offer.
type newCell struct {
	t    *testing.T
	ca   *authority
	addr string
	srv  *http.Server

	http1, http2, both atomic.Int64
}

// The ways in which a server has no HTTP/1.1 to offer, or does not say so.
const (
	silent   = "says nothing"    // as Go does
	alerting = "sends an alert"  // as RFC 7301 has it
	choosing = "chooses HTTP/2"  // though it was not offered
	without  = "has no ALPN"     // and speaks HTTP/1.1
	old      = "speaks HTTP/1.1" // and says so
)

// serve replaces the server.
func (c *newCell) serve(how string, h http.HandlerFunc) string {
	c.t.Helper()
	c.stop()
	if c.addr == "" {
		c.addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.addr = l.Addr().String()
	s := &http.Server{Handler: h, ErrorLog: quiet(), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(how == without || how == old)
	s.Protocols.SetHTTP2(how != without && how != old)
	cert := c.ca.issue(c.t, "cell-a")
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	if how == old || how == without {
		s.TLSConfig.NextProtos = []string{"http/1.1"}
	}
	s.TLSConfig.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		h2 := slices.Contains(hello.SupportedProtos, "h2")
		switch {
		case len(hello.SupportedProtos) > 1:
			c.both.Add(1)
		case h2:
			c.http2.Add(1)
		default:
			c.http1.Add(1)
		}
		switch {
		case how == without:
			return &tls.Config{Certificates: []tls.Certificate{cert}}, nil
		case how == alerting && !h2:
			return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"other"}}, nil
		}
		return nil, nil
	}
	if how == choosing {
		l, s.TLSConfig.MaxVersion = &choosingListener{l}, tls.VersionTLS12 // where the choice is in the clear
	}
	c.srv = s
	go s.ServeTLS(l, "", "")
	return "https://" + c.addr
}

func (c *newCell) stop() {
	if c.srv != nil {
		c.srv.Close()
	}
}

func newCellFor(t *testing.T) *newCell {
	c := &newCell{t: t, ca: newAuthority(t)}
	t.Cleanup(c.stop)
	return c
}

// A choosingListener has servers see an offer of HTTP/2 where there is one of
// HTTP/1.1, so that they choose what was not offered.
type choosingListener struct{ net.Listener }

func (l *choosingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &choosingConn{Conn: c}, nil
}

type choosingConn struct {
	net.Conn
	begun bool
}

// Read makes one protocol with eight letters, in the first bytes, two: the record's
// sums cover the client's own hello, so the handshake fails in any case, but not
// before the client has seen the choice.
func (c *choosingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun {
		if i := bytes.Index(p[:n], []byte("\x00\x09\x08http/1.1")); i >= 0 {
			copy(p[i:], "\x00\x09\x02h2\x05other")
			c.begun = true
		}
	}
	return n, err
}

func echoProto(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	w.Header().Set("X-Proto", req.Proto)
	w.Write(body)
}

// postProto posts a body, or gets without one, and wants it back, by that protocol.
func postProto(t *testing.T, r *rig, body, proto string) {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	req, err := http.NewRequest(method, r.url("/"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client(false).Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || string(got) != body || resp.Header.Get("X-Proto") != proto {
		t.Errorf("%d over %q: %d bytes of %d, %v; %v", resp.StatusCode, resp.Header.Get("X-Proto"), len(got), len(body), err, r.last().Err)
	}
}

// A cell whose ALPN knows HTTP/2 alone is spoken to by it, whichever way the
// request came. What it speaks is learned once.
func TestCellThatSpeaksOnlyHTTP2OverTLS(t *testing.T) {
	for _, how := range []string{silent, alerting, choosing} {
		t.Run(how, func(t *testing.T) {
			c := newCellFor(t)
			r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
			r.use(c.serve(how, echoProto))
			for _, body := range []string{"", "small", strings.Repeat("large", 100_000)} {
				for range 2 {
					postProto(t, r, body, "HTTP/2.0")
				}
			}
			if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Closed || s.Endpoints[0].Failures != 0 || s.InFlight != 0 || s.Endpoints[0].InFlight != 0 {
				t.Errorf("stats %+v", s)
			}
			if n := c.http1.Load() + c.http2.Load(); n > 2 {
				t.Errorf("%d handshakes to learn what it speaks", n)
			}
		})
	}
}

// What a cell speaks may change, and no request fails for it.
func TestSpeechOfCellMayChange(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	last := ""
	for _, how := range []string{without, old, silent, old, alerting, without, alerting, silent, without, silent} {
		r.use(c.serve(how, echoProto))
		want := "HTTP/2.0"
		if how == old || how == without {
			want = "HTTP/1.1"
		}
		t.Logf("after one that %s, one that %s", last, how)
		for _, body := range []string{"", "small", strings.Repeat("large", 50_000)} {
			postProto(t, r, body, want)
		}
		last = how
	}
}

// A server that has no ALPN is asked once what it speaks.
func TestServerWithoutALPNIsAskedOnce(t *testing.T) {
	if !ownPath {
		t.Skip("net/http offers both at once")
	}
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}, Limits: Limits{IdleConns: 1}})
	r.use(c.serve(without, echoProto))
	for range 5 {
		postProto(t, r, "x", "HTTP/1.1")
		(*r.pools.Cell("cell-a").endpoints.Load())[0].closeIdle()
	}
	if n := c.http2.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A tunnel can't be had over HTTP/2, but asking for one is no failure of the cell.
func TestTunnelToCellThatSpeaksOnlyHTTP2(t *testing.T) {
	for _, how := range []string{silent, alerting} {
		c := newCellFor(t)
		r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
		r.use(c.serve(how, echoProto))
		for range 10 {
			if status, _, _ := r.get(r.client(false), "/", "Connection", "Upgrade", "Upgrade", "websocket"); status != 502 {
				t.Errorf("%s: %d %v", how, status, r.last().Err)
			}
		}
		postProto(t, r, "x", "HTTP/2.0")
		if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Closed || s.Endpoints[0].State != Closed || s.Endpoints[0].Failures != 0 {
			t.Errorf("%s: stats %+v", how, s)
		}
	}
}

// An endpoint of a cell that can't be connected to is left out, whatever it spoke,
// and the whole body reaches another one.
func TestOtherEndpointServesWhereBridgeLeadsNowhere(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	r.options = func(req *http.Request) Options { return Options{Body: NewReplay(req, 0)} }
	one := c.serve(silent, echoProto)
	r.use(one)
	postProto(t, r, "x", "HTTP/2.0")
	c.stop()
	for _, body := range []string{"", "small", strings.Repeat("0123456789", 2000)} {
		two := r.cell("", echoProto)
		r.use(one, two)
		for range 3 {
			postProto(t, r, body, "HTTP/1.1")
		}
	}
	r.use(one)
	if status, code, _ := r.get(r.client(false), "/"); code != cellway.CellUnreachable {
		t.Errorf("%d %s %v", status, code, r.last().Err)
	}
}

// Chunked bodies pass with their trailers, both ways at once.
func TestBridgePassesChunksAndTrailers(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	r.use(c.serve(silent, func(w http.ResponseWriter, req *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		b := make([]byte, 100)
		for {
			n, err := req.Body.Read(b)
			w.Write(b[:n])
			http.NewResponseController(w).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-Sum", req.Trailer.Get("X-Client"))
	}))
	conn := r.dial()
	br := bufio.NewReader(conn)
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-Client\r\nTransfer-Encoding: chunked\r\n\r\n")
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := bufio.NewReader(resp.Body)
	for i := range 50 {
		fmt.Fprintf(conn, "6\r\nline%d\n\r\n", i%10)
		if line, err := got.ReadString('\n'); err != nil || line != fmt.Sprintf("line%d\n", i%10) {
			t.Fatalf("%q %v", line, err)
		}
	}
	fmt.Fprint(conn, "0\r\nX-Client: sum\r\n\r\n")
	if rest, err := io.ReadAll(got); err != nil || len(rest) > 0 || resp.Trailer.Get("X-Sum") != "sum" {
		t.Errorf("%q, %v, trailers %v", rest, err, resp.Trailer)
	}
}

// A cell that answers without asking for the body gets its answer through, though
// the body came along with the head.
func TestBridgeAnswersThoughNobodyReadsTheBody(t *testing.T) {
	for _, size := range []int{10, 20_000, 500_000} {
		c := newCellFor(t)
		r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}, Timeouts: Timeouts{FirstByte: 20 * time.Second, Continue: 10 * time.Second}})
		r.use(c.serve(silent, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(403)
			io.WriteString(w, "no")
		}))
		conn := r.dial()
		conn.SetDeadline(time.Now().Add(15 * time.Second))
		go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
		start := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); resp.StatusCode != 403 || string(b) != "no" || err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("%d %q %v after %v; %v", resp.StatusCode, b, err, time.Since(start), r.last().Err)
		}
	}
}

// The limits of a cell hold whatever it speaks, and a client that leaves ends its
// request there. Nothing is left behind.
func TestBridgeHoldsLimitsAndLeavesNothing(t *testing.T) {
	c := newCellFor(t)
	goroutines := runtime.NumGoroutine()
	t.Run("run", func(t *testing.T) {
		r := newRig(t, nil, Config{
			TLS: TLS{Roots: c.ca.pool}, Limits: Limits{InFlight: 1, Pending: -1},
			Timeouts: Timeouts{FirstByte: 200 * time.Millisecond}, Breaker: Breaker{Timeouts: 1000},
		})
		ended := make(chan error, 10)
		begun := make(chan struct{}, 10)
		hang := func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/late" {
				w.WriteHeader(200)
				http.NewResponseController(w).Flush()
			}
			begun <- struct{}{}
			<-req.Context().Done()
			ended <- req.Context().Err()
		}
		r.use(c.serve(silent, hang))
		pool := r.pools.Cell("cell-a")
		wantEnd := func(what string) {
			t.Helper()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Errorf("%s: the cell works on", what)
			}
			eventually(t, what+": the place is free", func() bool { s := pool.Stats(); return s.InFlight == 0 && s.Endpoints[0].InFlight == 0 })
		}
		if status, code, _ := r.get(r.client(false), "/"); code != cellway.CellTimeout {
			t.Errorf("%d %s", status, code)
		}
		<-begun
		wantEnd("time")
		conn := r.dial()
		fmt.Fprint(conn, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
		<-begun
		if _, err := readHead(bufio.NewReader(conn)); err != nil {
			t.Error(err)
		}
		if status, code, _ := r.get(r.client(false), "/"); code != cellway.CellSaturated {
			t.Errorf("%d %s", status, code)
		}
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
		wantEnd("client")
	})
	eventually(t, "no goroutine is left", func() bool { c.stop(); return runtime.NumGoroutine() <= goroutines+2 })
}

// A cell that restarts costs no request, nor does one that says that a connection
// takes no more.
func TestBridgeSurvivesRestarts(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	r.options = func(req *http.Request) Options { return Options{Body: NewReplay(req, 0)} }
	for i := range 4 {
		h := http.HandlerFunc(echoProto)
		if i%2 == 1 {
			h = func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Connection", "close") // has HTTP/2 send a GOAWAY
				echoProto(w, req)
			}
		}
		if i == 2 { // else it is closed at once
			c.srv.Shutdown(context.Background())
		}
		r.use(c.serve(silent, h))
		if !ownPath { // where the first request may still be sent over what is no more
			eventually(t, "the cell is reached", func() bool { status, _, _ := r.get(r.client(false), "/"); return status == 200 })
		}
		postProto(t, r, "", "HTTP/2.0")
		for range 5 {
			postProto(t, r, "small", "HTTP/2.0")
			postProto(t, r, strings.Repeat("large", 50_000), "HTTP/2.0")
		}
	}
}

// A connection that can't be opened is one of the endpoint's failures.
func TestBridgeTellsWhyNothingConnects(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	var out atomic.Bool
	dial := r.pools.cfg.Dial
	r.pools.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if out.Load() {
			return nil, errors.New("no way")
		}
		return dial(ctx, network, addr)
	}
	r.use(c.serve(silent, echoProto))
	postProto(t, r, "x", "HTTP/2.0")
	out.Store(true)
	eventually(t, "its connections are closed", func() bool {
		(*r.pools.Cell("cell-a").endpoints.Load())[0].closeIdle()
		return r.pools.conns.Load() == 0
	})
	if status, code, _ := r.get(r.client(false), "/"); code != cellway.CellUnreachable {
		t.Errorf("%d %s %v", status, code, r.last().Err)
	}
	if s := r.pools.Cell("cell-a").Stats(); s.Endpoints[0].State == Closed {
		t.Errorf("stats %+v", s)
	}
	out.Store(false)
	eventually(t, "it is reached again", func() bool { status, _, _ := r.get(r.client(false), "/"); return status == 200 })
}

// The time that it takes to connect is not the cell's for an answer, whatever it
// speaks.
func TestBridgeCountsConnectingApart(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}, Timeouts: Timeouts{FirstByte: 100 * time.Millisecond, Connect: 10 * time.Second}})
	dial := r.pools.cfg.Dial
	r.pools.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		time.Sleep(400 * time.Millisecond)
		return dial(ctx, network, addr)
	}
	r.use(c.serve(silent, echoProto))
	for range 2 {
		postProto(t, r, "small", "HTTP/2.0")
		(*r.pools.Cell("cell-a").endpoints.Load())[0].closeIdle()
	}
}

// A cell that ends streams, and not connections, has had the requests: each runs
// once, safe or not.
func TestRequestWhoseStreamIsResetRunsOnce(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST"} {
		c := newCellFor(t)
		r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
		var runs atomic.Int64
		r.use(c.serve(silent, func(_ http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/ends" {
				runs.Add(1)
				panic(http.ErrAbortHandler)
			}
		}))
		for range 3 { // then the connection was used
			r.get(r.client(false), "/")
		}
		req, err := http.NewRequest(method, r.url("/ends"), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := r.client(false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 502 || runs.Load() != 1 {
			t.Errorf("%s: %d, ran %d times", method, resp.StatusCode, runs.Load())
		}
	}
}

// Many requests at once may be sent over a connection of HTTP/2 whose handshake the
// cell then refuses. None of them ran, and each is told so.
func TestCertificateIsRefusedToManyAtOnce(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(echoProto), ErrorLog: quiet(), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP2(true)
	s.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{c.ca.issue(t, "cell-a")}, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAnyClientCert,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			time.Sleep(20 * time.Millisecond)
			return nil, nil
		},
	}
	go s.ServeTLS(l, "", "")
	defer s.Close()
	r.use("https://" + l.Addr().String())
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 3 * time.Millisecond)
			if status, code, _ := r.get(r.client(false), "/"); code != cellway.CellUnreachable {
				t.Errorf("%d %s", status, code)
			}
		})
	}
	wg.Wait()
}
