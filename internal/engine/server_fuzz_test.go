package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// FuzzServer sends a Server what it likes, as one client would. Each request that
// reaches the cell is there the same for net/http and for our own reader, and it
// is what net/http would have read from the client; after the first that the one
// of the two refuses, nothing reaches the cell.
func FuzzServer(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\nGET /3 HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nTE: trailers\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	for _, one := range tricks {
		f.Add([]byte(one.input))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		late := time.AfterFunc(20*time.Second, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("no end after %q", sent))
		})
		defer late.Stop()
		var net1 memnet.Net
		pools, err := New(Config{Dial: net1.DialContext, Timeouts: Timeouts{FirstByte: time.Second, ClientBody: time.Second, Continue: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{"http://10.0.0.1:80"}}})
		got := recordCell(&net1)
		s := NewServer(ServerConfig{Handler: &passing{pools: pools}, Checker: NewChecker(CheckerConfig{NoH2C: true})})
		l := net1.Listen("front:80")
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(l) }()
		c, err := net1.DialContext(t.Context(), "tcp", "front:80")
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(2 * time.Second))
		go func() {
			c.Write(sent)
			time.Sleep(2 * time.Millisecond)
			c.Close()
		}()
		io.Copy(io.Discard, c)
		s.Close()
		<-done
		pools.Close()
		all := got()
		judgeCell(t, sent, all)
	})
}

// recordCell serves a cell that answers each request, and returns what gives the
// bytes of each of its connections.
func recordCell(n *memnet.Net) func() []*bytes.Buffer {
	l := n.Listen("10.0.0.1:80")
	var mu sync.Mutex
	var all []*bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := new(bytes.Buffer)
			mu.Lock()
			all = append(all, b)
			mu.Unlock()
			wg.Go(func() { answerAll(c, b) })
		}
	})
	return func() []*bytes.Buffer { l.Close(); wg.Wait(); return all }
}

func answerAll(c net.Conn, b *bytes.Buffer) {
	defer c.Close()
	br := bufio.NewReader(io.TeeReader(c, b))
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

// judgeCell compares what came to the cell, over all its connections, with what
// net/http reads from the client.
func judgeCell(t *testing.T, sent []byte, all []*bytes.Buffer) {
	t.Helper()
	var bodies []string
	for _, b := range all {
		// Our own reader finds the same requests as net/http.
		f := framing{}
		if n, r := f.advance(b.Bytes()); r != OK {
			t.Fatalf("the cell was sent %q: refused after %d for %v", b, n, r)
		}
		br, whole := bufio.NewReader(bytes.NewReader(b.Bytes())), int64(0)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				break
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				break // it broke off, and so did the client
			}
			whole++
			bodies = append(bodies, req.Method+" "+req.RequestURI+" "+string(body))
		}
		if whole != f.ended {
			t.Fatalf("the cell was sent %q: %d requests for net/http, %d for us", b, whole, f.ended)
		}
	}
	br := bufio.NewReader(bytes.NewReader(sent))
	for i, got := range bodies {
		req, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("request %d reached the cell as %q; net/http reads none from %q: %v", i, got, sent, err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatalf("request %d reached the cell as %q; net/http reads no body from %q: %v", i, got, sent, err)
		}
		target := req.RequestURI
		if !strings.HasPrefix(target, "/") && target != "*" {
			rest, _ := cutScheme([]byte(target))
			n := bytes.IndexAny(rest, "/?")
			switch {
			case n < 0 && req.Method == "OPTIONS":
				target = "*"
			case n < 0:
				target = "/"
			default:
				if target = string(rest[n:]); target[0] == '?' {
					target = "/" + target
				}
			}
		}
		if want := req.Method + " " + target + " " + string(body); got != want {
			t.Fatalf("request %d reached the cell as %q, net/http reads %q from %q", i, got, want, sent)
		}
	}
}
