package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/engine"
)

// echo answers each read with one answer, over TCP.
func echo(tb testing.TB) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
				for {
					if n, err := c.Read(b); n == 0 || err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// overTCP serves a gateway of 8 workers, with every limit on, by the engine's own
// server with so many loops, and returns what sends one request of the tenant that is
// next.
func overTCP(tb testing.TB, loops, tenants int) (one func()) {
	tb.Helper()
	var list strings.Builder
	list.WriteString(`{"salt":"s","size":3,"workers":[`)
	for i := range 8 {
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, `{"id":"w%d","zone":"%c","endpoint":"http://%s"}`, i, 'a'+i%3, echo(tb))
	}
	list.WriteString(`]}`)
	w, err := ParseWorkers([]byte(list.String()))
	if err != nil {
		tb.Fatal(err)
	}
	gw, err := New(Config{
		Cell: "cell-001", Source: NewStatic(w), Routers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Tenant: TenantLimits{Rate: 1e9, Burst: 1e9},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(gw.Close)
	s := gw.NewServer(engine.ServerConfig{Loops: loops})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(engine.Movable(l)) }()
	tb.Cleanup(func() { s.Close(); <-done })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	request := make([][]byte, tenants)
	for i := range request {
		request[i] = fmt.Appendf(nil, "GET /orders/7?x=1 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\nX-Forwarded-For: 9.9.9.9\r\n"+
			"X-Cell-Id: cell-001\r\nX-Cell-Epoch: 1.%d\r\nX-Cell-Key: tenant-%d/part\r\nX-Tenant-Id: tenant-%d\r\n\r\n", i, i, i)
	}
	buf, turn := make([]byte, 4096), 0
	return func() {
		if _, err := c.Write(request[turn%tenants]); err != nil {
			tb.Fatal(err)
		}
		turn++
		for got := 0; !strings.HasSuffix(string(buf[max(0, got-5):got]), "hello"); {
			n, err := c.Read(buf[got:])
			if err != nil {
				tb.Fatal(err)
			}
			got += n
		}
	}
}

// A small request that goes by the engine's own server costs no memory, by a loop or by
// a goroutine: not the guard's decision, the limits, the hand, the choice of a member,
// nor the figures.
func TestForwardedRequestsAllocateNothing(t *testing.T) {
	const tenants = 2 * tenantPlaces
	for loops := range 2 {
		one := overTCP(t, loops, tenants)
		for range 3 * tenants {
			one()
		}
		if n := testing.AllocsPerRun(3*tenants, one); n > 0 && !raceEnabled {
			t.Errorf("%v allocations a request, with %d loops", n, loops)
		}
	}
}

// What a request costs by the engine's own server, over loopback, the worker's and
// the client's share included.
func BenchmarkForward(b *testing.B) {
	for loops := range 2 {
		b.Run(fmt.Sprint("loops=", loops), func(b *testing.B) {
			one := overTCP(b, loops, 64)
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
}
