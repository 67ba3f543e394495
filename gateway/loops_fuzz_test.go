package gateway

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/internal/engine"
)

// FuzzLoopsServeAlike sends two servers of one gateway the same bytes, in the same
// pieces, on connections that were simple until then. One server has event loops
// and the other has none, and nobody can tell them by their answers. The workers, of
// which one fails now and then, put what they got into their answers.
func FuzzLoopsServeAlike(f *testing.F) {
	const as = "Host: a\r\nX-Cell-Id: cell-001\r\nX-Cell-Epoch: 1.1\r\nX-Cell-Key: acme\r\nX-Tenant-Id: acme\r\n"
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
		"GET /500 HTTP/1.1\r\n" + as + "\r\nPOST /500 HTTP/1.1\r\n" + as + "Content-Length: 3\r\n\r\nabc" + "GET /2 HTTP/1.1\r\n" + as + "\r\n",
		"GET /429 HTTP/1.1\r\n" + as + "\r\nGET /421 HTTP/1.1\r\n" + as + "\r\nGET /2 HTTP/1.1\r\n" + as + "\r\n",
		"POST /break HTTP/1.1\r\n" + as + "Content-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n" + as + "\r\n",
		"GET /2 HTTP/1.1\r\n" + strings.ReplaceAll(as, "cell-001", "cell-002") + "\r\nCONNECT a:1 HTTP/1.1\r\n" + as + "\r\n",
		"POST / HTTP/1.1\r\n" + as + "Content-Length: 30000\r\n\r\n" + strings.Repeat("x", 30_000) + "GET /2 HTTP/1.1\r\n" + as + "\r\n",
	} {
		f.Add([]byte(s), uint16(7))
		f.Add([]byte(s), uint16(1000))
	}
	worker := httptest.NewServer(http.HandlerFunc(whatItGot))
	f.Cleanup(worker.Close)
	list, err := ParseWorkers(fmt.Appendf(nil, `{"salt":"s","size":1,"workers":[{"id":"w1","endpoint":%q}]}`, worker.URL))
	if err != nil {
		f.Fatal(err)
	}
	gw, err := New(Config{
		Cell: "cell-001", Source: NewStatic(list), Routers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Log: slog.New(slog.DiscardHandler),
		Retries: Retries{TenantBurst: 1e9, CellBurst: 1e9},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(gw.Close)
	var addrs []string
	for loops := range 2 {
		k := engine.NewChecker(engine.CheckerConfig{HeadTimeout: 300 * time.Millisecond, NoH2C: true})
		s := gw.NewServer(engine.ServerConfig{Checker: k, Loops: loops})
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

// whatItGot answers with what came, or as the path says.
func whatItGot(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var head bytes.Buffer
	if err := r.Header.Write(&head); err != nil {
		panic(http.ErrAbortHandler)
	}
	switch {
	case r.URL.Path == "/large":
		w.Header().Set("Content-Length", "100000") // in chunks it would differ by how they are read
		w.Write(bytes.Repeat([]byte("x"), 100_000))
		return
	case r.URL.Path == "/500":
		w.WriteHeader(500)
	case r.URL.Path == "/429":
		w.WriteHeader(429)
	case r.URL.Path == "/421":
		w.Header().Set(HandHeader, "another")
		w.WriteHeader(421)
	case r.URL.Path == "/break":
		panic(http.ErrAbortHandler)
	case r.Header.Get("Upgrade") == "echo":
		echoesBytes(w)
		return
	}
	fmt.Fprintf(w, "%s %q %x %d %v end", r.Method, r.RequestURI, sha256.Sum256(head.Bytes()), len(body), r.Trailer)
}

// echoesBytes makes a request a tunnel that sends back what it gets.
func echoesBytes(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	// Whoever sends bytes sees that these did not go through.
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, rw)
}
