package router

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/routemap"
)

// A small request that goes by the router's own server costs no memory: not the
// decision, with its look-up among many keys or of a bucket by a hash, not the
// fields that are replaced, the limits or the figures, among them those of more
// tenants than are counted; and not its line of the access log.
func TestRoutedRequestsAllocateNothing(t *testing.T) {
	for name, log := range map[string]io.Writer{"no log": nil, "access log": io.Discard} {
		t.Run(name, func(t *testing.T) { routeWithoutMemory(t, log) })
	}
}

func routeWithoutMemory(t *testing.T, log io.Writer) {
	cell, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
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
				b := make([]byte, 4096)
				answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Cell-Id: cell-001\r\nContent-Length: 5\r\n\r\nhello")
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
	const tenants, admit = 2 * tenantPlaces, 50
	var names []cellway.TenantID
	for i := 0; len(names) < tenants; i++ {
		if name := cellway.TenantID(fmt.Sprintf("tenant-%d", i)); routemap.Admits(name, admit) {
			names = append(names, name)
		}
	}
	b := newBench(t, 0, func(c *Config) { c.Cells.Dial, c.AccessLog = nil, log })
	b.swap(b.content(1, func(c *routemap.Content) {
		c.Cells[0].Endpoints = []string{"http://" + cell.Addr().String()}
		c.Cells[0].Admit = admit // so that each tenant is hashed
		for i, tenant := range names {
			if i%2 == 0 { // the others belong to their buckets
				c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(tenant), Cell: "cell-001"})
			}
		}
	}))
	s := b.rt.NewServer(engine.ServerConfig{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	defer func() { s.Close(); <-done }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := make([][]byte, tenants)
	for i := range request {
		request[i] = fmt.Appendf(nil, "GET /orders/7?x=1 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\nCookie: a=b\r\nX-Forwarded-For: 9.9.9.9\r\nX-Tenant-Id: %s\r\n\r\n", names[i])
	}
	buf, turn := make([]byte, 4096), 0
	one := func() {
		if _, err := c.Write(request[turn%tenants]); err != nil {
			t.Fatal(err)
		}
		turn++
		for got := 0; !strings.HasSuffix(string(buf[max(0, got-5):got]), "hello"); {
			n, err := c.Read(buf[got:])
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}
	for range 2 * tenants {
		one()
	}
	if n := testing.AllocsPerRun(3*tenants, one); n > 0 && !raceEnabled {
		t.Errorf("%v allocations a request", n)
	}
	rules := map[routemap.Rule]int{}
	for _, name := range names {
		rules[b.rt.Map().Lookup(cellway.Key(name)).Rule]++
	}
	if rules[routemap.RuleKey] == 0 || rules[routemap.RuleBucket] == 0 {
		t.Errorf("the tenants are found by %v", rules)
	}
	if f := figures(t, b.rt, "cell-001"); f.counted("") < 5*tenants {
		t.Errorf("only %d went well", f.counted(""))
	}
}
