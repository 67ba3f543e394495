package router

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/routemap"
	"github.com/coder/websocket"
)

// real is a router before n cells over loopback, with heads checked and TLS
// beside cleartext, as a router's command serves it.
type real struct {
	rt         *Router
	plain, tls string // host:port
	client     *http.Client
}

func newReal(t *testing.T, cells ...http.Handler) *real {
	t.Helper()
	rt, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := fleet(len(cells), extractors(
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.example.com"},
	))
	for i, h := range cells {
		srv := httptest.NewUnstartedServer(h)
		srv.Config.Protocols = new(http.Protocols)
		srv.Config.Protocols.SetHTTP1(true)
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
		t.Cleanup(srv.Close)
		c.Cells[i].Endpoints = []string{srv.URL}
		c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(fmt.Sprintf("tenant-%d", i+1)), Cell: c.Cells[i].ID})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Swap(m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Close)

	borrowed := httptest.NewUnstartedServer(nil)
	borrowed.StartTLS() // for its certificate
	t.Cleanup(borrowed.Close)
	check := engine.NewChecker(engine.CheckerConfig{})
	srv := &http.Server{Handler: rt}
	check.Install(srv)
	r := &real{rt: rt, client: borrowed.Client()}
	for _, to := range []*string{&r.plain, &r.tls} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*to = l.Addr().String()
		if to == &r.tls {
			l = check.ListenTLS(l, &tls.Config{Certificates: borrowed.TLS.Certificates})
		} else {
			l = check.Listen(l)
		}
		done := make(chan struct{})
		go func() { defer close(done); srv.Serve(l) }()
		t.Cleanup(func() { srv.Close(); <-done })
	}
	tr := r.client.Transport.(*http.Transport)
	tr.ForceAttemptHTTP2 = true
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := r.plain
		if strings.HasSuffix(addr, ":443") {
			to = r.tls
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}
	return r
}

func (r *real) do(t *testing.T, method, url string, body io.Reader, fields ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTargetArrivesByteForByte(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Method+" "+r.RequestURI+" "+r.Host) }))
	for _, target := range []string{
		"/", "/a//b///", "//two", "/a%2Fb/%2e%2E/../c", "/%E2%82%AC?", "/?", "/?a=b&a=c;d&&=&x=%zz", "/a?b?c=/d", "/%00%0a", "/a:b@c/;p=1", "/'(x)!*,", "/~%7e",
	} {
		c, err := net.Dial("tcp", r.plain)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "PURGE %s HTTP/1.1\r\nHost: Tenant-1.Example.COM\r\nConnection: close\r\n\r\n", target)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(target, err)
		}
		if got, want := text(t, res), "PURGE "+target+" Tenant-1.Example.COM"; got != want {
			t.Errorf("sent %q, the cell got %q", want, got)
		}
		c.Close()
	}
}

// Two tenants share a certificate and an address, so a browser puts both on
// one connection. Each request goes by its own authority.
func TestRequestsOfOneConnectionAreRoutedOneByOne(t *testing.T) {
	cell := func(i int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "cell %d for %s", i, r.Header.Get("X-Tenant-Id"))
		})
	}
	r := newReal(t, cell(1), cell(2))
	conns := map[string]bool{}
	for _, scheme := range []string{"https", "http"} {
		clear(conns)
		for i := range 6 {
			host := fmt.Sprintf("tenant-%d.example.com", i%2+1)
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
				conns[info.Conn.LocalAddr().String()] = true
			}})
			req, err := http.NewRequestWithContext(ctx, "GET", scheme+"://example.com/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			res, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := text(t, res), fmt.Sprintf("cell %d for tenant-%d", i%2+1, i%2+1); got != want {
				t.Errorf("%s: %q, want %q", host, got, want)
			}
			res.Body.Close()
			if scheme == "https" && res.ProtoMajor != 2 {
				t.Errorf("spoke %s, want HTTP/2", res.Proto)
			}
		}
		if len(conns) != 1 {
			t.Errorf("%s used %d connections: the test shows nothing", scheme, len(conns))
		}
	}
}

func TestBodiesAndTrailersStreamBothWays(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		w.WriteHeader(200)
		rc.Flush()
		n, err := io.Copy(flushing{w, rc}, r.Body)
		w.Header().Set("X-Sum", fmt.Sprintf("%d %v %s", n, err, r.Trailer.Get("X-End")))
		w.Header().Set(http.TrailerPrefix+"X-Cell-Secret", "x")
	}))
	for _, scheme := range []string{"https", "http"} { // HTTP/2 and HTTP/1.1
		pr, pw := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", scheme+"://tenant-1.example.com/", pr)
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{"X-End": nil, "X-Cell-Id": nil}
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(res.Body)
		for i := range 50 { // each line comes back before the next is sent
			fmt.Fprintf(pw, "line %d\n", i)
			if got, err := br.ReadString('\n'); err != nil || got != fmt.Sprintf("line %d\n", i) {
				t.Fatalf("%s: %q, %v", scheme, got, err)
			}
		}
		req.Trailer.Set("X-End", "bye")
		pw.Close()
		if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
			t.Fatalf("%s: %q, %v", scheme, rest, err)
		}
		res.Body.Close()
		if got := res.Trailer.Get("X-Sum"); !strings.HasSuffix(got, " <nil> bye") || res.Trailer.Get("X-Cell-Secret") != "" {
			t.Errorf("%s: trailers %v", scheme, res.Trailer)
		}
	}
}

type flushing struct {
	io.Writer
	rc *http.ResponseController
}

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.rc.Flush())
}

func TestEventsArriveOneByOne(t *testing.T) {
	next := make(chan string)
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for e := range next {
			fmt.Fprintf(w, "data: %s\n\n", e)
			http.NewResponseController(w).Flush()
		}
	}))
	go func() { next <- "0" }()
	res := r.do(t, "GET", "http://tenant-1.example.com/events", nil)
	br := bufio.NewReader(res.Body)
	for i := range 5 {
		if got, err := br.ReadString('\n'); err != nil || got != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("got %q, %v", got, err)
		}
		if got, err := br.ReadString('\n'); err != nil || got != "\n" {
			t.Fatalf("got %q, %v", got, err)
		}
		next <- fmt.Sprint(i + 1)
	}
	close(next)
}

func TestContinueComesFromTheCell(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		io.Copy(w, r.Body)
	}))
	tr := r.client.Transport.(*http.Transport)
	tr.ExpectContinueTimeout = time.Minute
	for path, want := range map[string]int{"/take": 200, "/refuse": 403} {
		continued := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { continued = code; return nil }})
		req, err := http.NewRequestWithContext(ctx, "PUT", "http://tenant-1.example.com"+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || (continued == 100) != (want == 200) {
			t.Errorf("%s: got %d after %d", path, res.StatusCode, continued)
		}
	}
}

func TestWebSocketWorks(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			kind, msg, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), kind, append([]byte("cell-001: "), msg...)); err != nil {
				return
			}
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+r.plain+"/", &websocket.DialOptions{HTTPHeader: http.Header{"X-Tenant-Id": {"tenant-1"}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, msg, err := c.Read(ctx); err != nil || string(msg) != "cell-001: hello" {
			t.Fatalf("got %q, %v", msg, err)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

// What a gRPC call needs: HTTP/2 all the way, messages both ways before the
// end, and a status in the trailers.
func TestGRPCStreamsWithItsTrailers(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			t.Errorf("the cell got %s with Te %q", r.Proto, r.Header.Get("Te"))
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		rc := http.NewResponseController(w)
		w.WriteHeader(200)
		rc.Flush()
		io.Copy(flushing{w, rc}, r.Body)
		w.Header().Set("Grpc-Status", "0")
	}))
	pr, pw := io.Pipe()
	res := r.do(t, "POST", "https://tenant-1.example.com/echo.Echo/Both", pr, "Content-Type", "application/grpc", "Te", "trailers")
	msg := make([]byte, 4)
	for range 10 {
		var wg sync.WaitGroup
		wg.Go(func() { io.WriteString(pw, "ping") })
		if _, err := io.ReadFull(res.Body, msg); err != nil || string(msg) != "ping" {
			t.Fatalf("got %q, %v", msg, err)
		}
		wg.Wait()
	}
	pw.Close()
	if rest := text(t, res); rest != "" || res.Trailer.Get("Grpc-Status") != "0" || res.ProtoMajor != 2 {
		t.Errorf("ended with %q, trailers %v", rest, res.Trailer)
	}
}

func TestAnswerThatBreaksOffIsSeenToBreakOff(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	for _, scheme := range []string{"https", "http"} {
		res := r.do(t, "GET", scheme+"://tenant-1.example.com/", nil)
		if body, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%s: the client takes %q for the whole answer", scheme, body)
		}
	}
	if f := figures(t, r.rt, "cell-001"); f.counted(cellway.CellProtocol) != 2 {
		t.Errorf("figures %+v", f)
	}
}
