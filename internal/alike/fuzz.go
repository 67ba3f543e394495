package alike

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/engine"
)

// Fuzz sends two servers that serve makes the same bytes, in the same pieces, as [Check]
// does. One server has event loops and the other has none, and nobody can tell them by
// their answers. Whoever is behind them is [WhatItGot]; more are requests to begin with.
func Fuzz(f *testing.F, as string, serve func(engine.ServerConfig) *engine.Server, more ...string) {
	for _, s := range append(more,
		"GET / HTTP/1.1\r\n"+as+"\r\n",
		"GET / HTTP/1.1\r\n"+as+"\r\nHEAD /2 HTTP/1.1\r\n"+as+"\r\nGET /3 HTTP/1.0\r\n"+as+"\r\n",
		"POST / HTTP/1.1\r\n"+as+"Content-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n"+as+"\r\n",
		"POST / HTTP/1.1\r\n"+as+"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\nGET / HTTP/1.1\r\n"+as+"Connection: close\r\n\r\n",
		"POST / HTTP/1.1\r\n"+as+"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"PUT / HTTP/1.1\r\n"+as+"Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"OPTIONS * HTTP/1.1\r\n"+as+"Connection: X-Hop, close\r\nX-Hop: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n"+as+"\r\n",
		"GET /t HTTP/1.1\r\n"+as+"Connection: Upgrade\r\nUpgrade: echo\r\n\r\nhello",
		"GET /large HTTP/1.1\r\n"+as+"\r\nGET /2 HTTP/1.1\r\n"+as+"\r\n",
		"GET /500 HTTP/1.1\r\n"+as+"\r\nPOST /500 HTTP/1.1\r\n"+as+"Content-Length: 3\r\n\r\nabc"+"GET /2 HTTP/1.1\r\n"+as+"\r\n",
		"GET /429 HTTP/1.1\r\n"+as+"\r\nGET /421 HTTP/1.1\r\n"+as+"\r\nGET /2 HTTP/1.1\r\n"+as+"\r\n",
		"POST /break HTTP/1.1\r\n"+as+"Content-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n"+as+"\r\n",
		"POST / HTTP/1.1\r\n"+as+"Content-Length: 30000\r\n\r\n"+strings.Repeat("x", 30_000)+"GET /2 HTTP/1.1\r\n"+as+"\r\n",
	) {
		f.Add([]byte(s), uint16(7))
		f.Add([]byte(s), uint16(1000))
	}
	var addrs []string
	for loops := range 2 {
		k := engine.NewChecker(engine.CheckerConfig{HeadTimeout: 300 * time.Millisecond, NoH2C: true})
		s := serve(engine.ServerConfig{Checker: k, Loops: loops})
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
		Check(t, addrs[0], addrs[1], as, sent, int(piece))
	})
}

// WhatItGot answers with what came, without the fields of these names, or as the path
// says: /large, /break, or a status. A 421 is that of a worker which knows other hands.
func WhatItGot(without ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for _, name := range without {
			r.Header.Del(name)
		}
		var head bytes.Buffer
		if err := r.Header.Write(&head); err != nil {
			panic(http.ErrAbortHandler)
		}
		switch r.URL.Path {
		case "/large":
			w.Header().Set("Content-Length", "100000") // in chunks it would differ by how they are read
			w.Write(bytes.Repeat([]byte("x"), 100_000))
			return
		case "/break":
			panic(http.ErrAbortHandler)
		}
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil && status >= 400 && status < 600 {
			w.Header().Set("X-Cell-Hand", "another")
			w.WriteHeader(status)
		} else if r.Header.Get("Upgrade") == "echo" {
			Echo(w, r)
			return
		}
		fmt.Fprintf(w, "%s %q %x %d %v end", r.Method, r.RequestURI, sha256.Sum256(head.Bytes()), len(body), r.Trailer)
	}
}

// Echo makes a request a tunnel that sends back what it gets.
func Echo(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	// Whoever sends bytes sees that these did not go through.
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	_, _ = io.Copy(conn, rw)
}
