package router

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/routemap"
)

// A bench is a router before cells that live in memory. Cell number i, counted
// from 1, has the endpoint http://10.0.0.i:80.
type bench struct {
	t   testing.TB
	net memnet.Net
	rt  *Router
	saw chan *http.Request // by cell 1: see seen

	ownOnce sync.Once // see askOwn
}

// newBench returns a router over a fleet of n cells, which don't listen yet.
// It has no map if n is 0.
func newBench(t testing.TB, n int, change func(*Config), fleetChange ...func(*routemap.Content)) *bench {
	t.Helper()
	b := &bench{t: t}
	cfg := Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	cfg.Cells.Dial = b.net.DialContext
	cfg.Cells.Log = cfg.Log
	if change != nil {
		change(&cfg)
	}
	rt, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.rt = rt
	t.Cleanup(rt.Close)
	if n > 0 {
		b.swap(b.content(n, fleetChange...))
	}
	return b
}

func (b *bench) content(n int, change ...func(*routemap.Content)) routemap.Content {
	at := func(c *routemap.Content) {
		for i := range c.Cells {
			c.Cells[i].Endpoints = []string{fmt.Sprintf("http://10.0.0.%d:80", i+1)}
		}
	}
	return fleet(n, append([]func(*routemap.Content){at}, change...)...)
}

func (b *bench) swap(c routemap.Content) {
	b.t.Helper()
	if err := b.rt.Swap(build(b.t, c)); err != nil {
		b.t.Fatal(err)
	}
}

// serve makes cell number i serve h.
func (b *bench) serve(i int, h http.HandlerFunc) {
	srv := &http.Server{Handler: h}
	l := b.net.Listen(fmt.Sprintf("10.0.0.%d:80", i))
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	b.t.Cleanup(func() { srv.Close(); <-done })
}

// front serves the router itself at front:80.
func (b *bench) front() Server {
	srv := &http.Server{Handler: b.rt}
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	l := b.net.Listen("front:80")
	var serving sync.WaitGroup
	if !ownPath {
		serving.Go(func() { srv.Serve(l) })
		b.t.Cleanup(func() { srv.Close(); serving.Wait() })
		return srv
	}
	own := b.rt.NewServer(engine.ServerConfig{OwnHTTP2: true})
	serving.Go(func() { own.Serve(l) })
	serving.Go(func() { srv.Serve(own.HTTP2()) })
	b.t.Cleanup(func() { own.Close(); srv.Close(); serving.Wait() })
	return fronts{own, srv}
}

// fronts are servers that are one to whoever ends them.
type fronts []Server

func (f fronts) Shutdown(ctx context.Context) (err error) {
	for _, s := range f {
		err = errors.Join(err, s.Shutdown(ctx))
	}
	return err
}

func (f fronts) Close() (err error) {
	for _, s := range f {
		err = errors.Join(err, s.Close())
	}
	return err
}

// ownPath says by which server requests of HTTP/1 come: see TestMain.
var ownPath bool

// TestMain runs all tests twice: a router is the same whichever server its
// requests of HTTP/1 come by, that of net/http or the engine's own.
func TestMain(m *testing.M) {
	code := m.Run()
	once := flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.bench").Value.String() != ""
	if ownPath = true; code == 0 && !once {
		fmt.Println("once more, by the engine's own server")
		code = m.Run()
	}
	os.Exit(code)
}

// client speaks to the front.
func (b *bench) client() *http.Client {
	tr := &http.Transport{DialContext: b.net.DialContext}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// acmes returns a client's request of tenant acme.
func acmes(path string) *http.Request {
	r := request("GET", "http://front"+path, "acme")
	r.RequestURI = "" // which clients do not give
	return r
}

// pinned gives tenants entries in cell-001, cell-002 and so on.
func pinned(tenants ...cellway.Key) func(*routemap.Content) {
	return func(c *routemap.Content) {
		for i, key := range tenants {
			c.Entries = append(c.Entries, cellway.Entry{Key: key, Cell: c.Cells[i].ID})
		}
	}
}

// request is for a tenant; "" for none. More fields follow in pairs.
func request(method, target, tenant string, fields ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	if tenant != "" {
		r.Header.Set("X-Tenant-Id", tenant)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// ask sends r through the router, which may end the handler as a server
// expects it to.
func (b *bench) ask(r *http.Request) (rec *httptest.ResponseRecorder) {
	if ownPath && r.ProtoMajor == 1 && r.TLS == nil {
		return b.askOwn(r)
	}
	rec = httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	b.rt.ServeHTTP(rec, r)
	return rec
}

// askOwn sends r through a server of the engine.
func (b *bench) askOwn(r *http.Request) *httptest.ResponseRecorder {
	b.t.Helper()
	rec := httptest.NewRecorder()
	const ownAt = "own:80"
	b.ownOnce.Do(func() {
		own := b.rt.NewServer(engine.ServerConfig{})
		l := b.net.Listen(ownAt)
		done := make(chan struct{})
		go func() { defer close(done); own.Serve(addressed{l}) }()
		b.t.Cleanup(func() { own.Close(); <-done })
	})
	c, err := b.net.DialContext(context.Background(), "tcp", ownAt)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	defer context.AfterFunc(r.Context(), func() { c.Close() })()
	go writeRequest(c, r)
	br := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(br, r)
		if err != nil {
			return rec
		}
		if res.StatusCode < 200 {
			continue
		}
		for name, v := range res.Header {
			if name != "Date" {
				rec.Header()[name] = v
			}
		}
		if res.Close {
			rec.Header().Set("Connection", "close")
		}
		rec.WriteHeader(res.StatusCode)
		io.Copy(rec.Body, res.Body)
		return rec
	}
}

// writeRequest writes r, whose first line on the wire is its address, for an
// addressed listener.
func writeRequest(c net.Conn, r *http.Request) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s %s HTTP/1.%d\r\nHost: %s\r\n", r.RemoteAddr, r.Method, r.RequestURI, r.ProtoMinor, r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	hasBody := r.Body != nil && r.Body != http.NoBody
	switch {
	case hasBody && r.ContentLength < 0:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	case hasBody:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", r.ContentLength)
	default:
		b.WriteString("\r\n")
	}
	c.Write(b.Bytes())
	switch {
	case !hasBody:
	case r.ContentLength < 0:
		w := httputil.NewChunkedWriter(c)
		io.Copy(w, r.Body)
		w.Close()
		io.WriteString(c, "\r\n")
	default:
		io.Copy(c, r.Body)
	}
}

// An addressed listener reads the address of a client from its first line.
type addressed struct{ net.Listener }

func (l addressed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := c.Read(b); err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return addressedConn{c, addressedAddr(line)}, nil
}

type addressedConn struct {
	net.Conn
	addr addressedAddr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.addr }

type addressedAddr string

func (addressedAddr) Network() string  { return "tcp" }
func (a addressedAddr) String() string { return string(a) }

// codeOf returns the code of a problem, or "".
func codeOf(rec *httptest.ResponseRecorder) cellway.Code {
	var p struct{ Code cellway.Code }
	if rec.Header().Get("Content-Type") == "application/problem+json" && json.Unmarshal(rec.Body.Bytes(), &p) != nil {
		return "not JSON"
	}
	return p.Code
}

// wantProblem checks the whole form of an answer of the router's own.
func wantProblem(t testing.TB, res *http.Response, code cellway.Code, statuses ...int) {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(statuses) == 0 {
		statuses = []int{code.Status()}
	}
	ok := false
	for _, s := range statuses {
		ok = ok || s == res.StatusCode
	}
	if !ok {
		t.Errorf("%s: status %d, want one of %v; body %s", code, res.StatusCode, statuses, body)
	}
	h := res.Header
	if got := h.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s: Content-Type %q", code, got)
	}
	if got := h.Get("Proxy-Status"); !strings.HasPrefix(got, "cellway; error=") || !strings.HasSuffix(got, fmt.Sprintf("; details=%q", code)) {
		t.Errorf("%s: Proxy-Status %q", code, got)
	}
	if got := h.Get("Retry-After"); (got != "") != code.Retryable() {
		t.Errorf("%s: Retry-After %q, retryable %v", code, got, code.Retryable())
	}
	if h.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: an answer of the moment may be cached", code)
	}
	if res.Request != nil && res.Request.Method == "HEAD" {
		if len(body) > 0 || h.Get("Content-Length") == "" {
			t.Errorf("%s: HEAD is answered with %q", code, body)
		}
		return
	}
	var p struct {
		Title, Detail string
		Status        int
		Code          cellway.Code
	}
	if err := json.Unmarshal(body, &p); err != nil || p.Code != code || p.Status != res.StatusCode || p.Title != http.StatusText(p.Status) || p.Detail == "" {
		t.Errorf("%s: body %s: %v", code, body, err)
	}
}

// echo answers with the cell's number and closes nothing early.
func echo(i int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "cell %d: %s", i, body)
	}
}

func figures(t testing.TB, rt *Router, cell cellway.CellID) CellStats {
	t.Helper()
	for _, c := range rt.Stats().Cells {
		if c.Cell == cell {
			return c
		}
	}
	t.Fatalf("no figures of cell %q", cell)
	return CellStats{}
}

// counted returns how many requests of a cell came to that end.
func (s CellStats) counted(code cellway.Code) uint64 {
	for _, c := range s.Requests {
		if c.Code == code {
			return c.Count
		}
	}
	return 0
}
