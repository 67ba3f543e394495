package engine

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/cellway/cellway"
)

// BenchmarkForward is one small request through a front to a cell and back,
// over loopback, with client and cell of a few instructions each.
func BenchmarkForward(b *testing.B) {
	cell, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer cell.Close()
	go func() {
		for {
			c, err := cell.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br := bufio.NewReader(c)
				for {
					if _, err := readHead(br); err != nil {
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
				}
			}()
		}
	}()
	pools, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer pools.Close()
	pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{"http://" + cell.Addr().String()}}})
	pool := pools.Cell("cell-a")
	k := NewChecker(CheckerConfig{})
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rep := pool.Forward(w, r, Options{Tenant: "acme"})
		if rep.Code != "" {
			b.Error(rep.Err)
		}
		rep.Abort()
	})}
	k.Install(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(k.Listen(l))
	defer s.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReader(c)
	b.ReportAllocs()
	for b.Loop() {
		io.WriteString(c, "GET /api/v1/orders/12345?expand=items HTTP/1.1\r\nHost: acme.app.example.com\r\nX-Tenant-Id: acme\r\nAccept: */*\r\n\r\n")
		if _, err := readHead(br); err != nil {
			b.Fatal(err)
		}
		if _, err := br.Discard(5); err != nil {
			b.Fatal(err)
		}
	}
}
