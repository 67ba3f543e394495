package router

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/routemap"
)

// FuzzLoopsServeAlike sends two servers of one router the same bytes, in the same
// pieces, on connections that were simple until then. One server has event loops
// and the other has none, and nobody can tell them by their answers. The cell
// puts what it got into its answers.
func FuzzLoopsServeAlike(f *testing.F) {
	const as = "Host: a\r\nX-Tenant-Id: acme\r\n"
	for _, s := range []string{
		"GET / HTTP/1.1\r\n" + as + "\r\n",
		"GET / HTTP/1.1\r\n" + as + "\r\nHEAD /2 HTTP/1.1\r\n" + as + "\r\nGET /3 HTTP/1.0\r\n" + as + "\r\n",
		"POST / HTTP/1.1\r\n" + as + "Content-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n" + as + "\r\n",
		"POST / HTTP/1.1\r\n" + as + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\nGET / HTTP/1.1\r\n" + as + "Connection: close\r\n\r\n",
		"POST / HTTP/1.1\r\n" + as + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"PUT / HTTP/1.1\r\n" + as + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"OPTIONS * HTTP/1.1\r\n" + as + "Connection: X-Hop, close\r\nX-Hop: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n" + as + "\r\n",
		"GET /t HTTP/1.1\r\n" + as + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nhello",
		"GET /large HTTP/1.1\r\n" + as + "\r\nGET /2 HTTP/1.1\r\n" + as + "\r\n",
	} {
		f.Add([]byte(s), uint16(7))
		f.Add([]byte(s), uint16(1000))
	}
	cell := httptest.NewServer(http.HandlerFunc(whatItGot))
	f.Cleanup(cell.Close)
	rt, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(rt.Close)
	if err := rt.Swap(build(f, fleet(1, func(c *routemap.Content) { c.Cells[0].Endpoints = []string{cell.URL} }))); err != nil {
		f.Fatal(err)
	}
	var addrs []string
	for loops := range 2 {
		k := engine.NewChecker(engine.CheckerConfig{HeadTimeout: 300 * time.Millisecond, NoH2C: true})
		s := rt.NewServer(engine.ServerConfig{Checker: k, Loops: loops})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			f.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(k.Listen(engine.Movable(l))) }()
		f.Cleanup(func() { s.Close(); <-done })
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece uint16) {
		if len(sent) > 64<<10 {
			return
		}
		alike.Check(t, addrs[0], addrs[1], as, sent, int(piece))
	})
}

// whatItGot answers with what came.
func whatItGot(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Header.Del("Traceparent")
	r.Header.Del("X-Forwarded-For")
	var head bytes.Buffer
	if err := r.Header.Write(&head); err != nil {
		panic(http.ErrAbortHandler)
	}
	switch {
	case r.URL.Path == "/large":
		w.Header().Set("Content-Length", "100000") // in chunks it would differ by how they are read
		w.Write(bytes.Repeat([]byte("x"), 100_000))
		return
	case r.Header.Get("Upgrade") == "echo":
		tunnelling(w, r)
		return
	}
	fmt.Fprintf(w, "%s %q %x %d %v end", r.Method, r.RequestURI, sha256.Sum256(head.Bytes()), len(body), r.Trailer)
}
