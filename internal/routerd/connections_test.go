package routerd

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// dial opens a connection to the router.
func (p process) dial(url string) net.Conn {
	p.T.Helper()
	_, addr, _ := strings.Cut(url, "://")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() { c.Close() })
	return c
}

// keep makes a request over a connection that stays.
func keep(t testing.TB, c net.Conn, path string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

// At the limit every kind of idle connection makes room for a new one.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, p process) (gone func() error){
		"between requests": func(t *testing.T, p process) func() error {
			c := p.dial(p.Listen[0])
			keep(t, c, "/")
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"silent": func(_ *testing.T, p process) func() error {
			c := p.dial(p.Listen[0])
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"half a head": func(t *testing.T, p process) func() error {
			c := p.dial(p.Listen[0])
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHo"); err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"silent in a handshake": func(_ *testing.T, p process) func() error {
			c := p.dial(p.Listen[1])
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"between requests over TLS": func(t *testing.T, p process) func() error {
			c := tls.Client(p.dial(p.Listen[1]), &tls.Config{InsecureSkipVerify: true})
			keep(t, c, "/")
			return func() error { _, err := c.Read(make([]byte, 1)); return err }
		},
		"HTTP/2 without streams":          func(t *testing.T, p process) func() error { return twice(t, p.Listen[0]) },
		"HTTP/2 over TLS without streams": func(t *testing.T, p process) func() error { return twice(t, p.Listen[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.certificate("a", 1, "a.example")
			p := f.start(f.args("--max-connections", "1", "--drain-timeout", "300ms", "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
			p.Ready()
			gone := open(t, p)
			p.Eventually("the connection to be idle", func() error { return p.metric("cellway_router_connections", "1") })
			// The server may not have noticed yet that it is idle.
			p.Eventually("room", func() error {
				if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusOK {
					return fmt.Errorf("%d %s", status, body)
				}
				return nil
			})
			if err := gone(); err == nil {
				t.Error("the idle connection is still there")
			}
		})
	}
}

// twice makes a request over HTTP/2, and returns what another one over the same
// connection comes to.
func twice(t *testing.T, url string) func() error {
	var dialled net.Conn
	dial := func(_ context.Context, network, addr string) (net.Conn, error) {
		if dialled != nil {
			return nil, errors.New("the connection is gone")
		}
		c, err := net.Dial(network, addr)
		dialled = c
		return c, err
	}
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(tr.CloseIdleConnections)
	ask := func() error {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := tr.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	return ask
}

// With every place in use a new connection is refused at once, and told why
// where that costs little; and none of it holds up the end.
func TestAConnectionTooManyIsTurnedAway(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	p := f.start(f.args("--max-connections", "2", "--name", "edge", "--drain-timeout", "300ms", "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
	p.Ready()
	var all sync.WaitGroup
	for _, tenant := range []string{"acme", "globex"} {
		all.Go(func() { p.get(p.Listen[0]+"/slow", tenant) })
	}
	p.Eventually("both to be in use", func() error {
		if n := p.mapStatus().Router.InFlight; n < 2 {
			return fmt.Errorf("%d requests in flight", n)
		}
		return nil
	})
	resp := keep(t, p.dial(p.Listen[0]), "/")
	if resp.StatusCode != http.StatusServiceUnavailable || !resp.Close || resp.Header.Get("Content-Type") != "application/problem+json" ||
		!strings.HasPrefix(resp.Header.Get("Proxy-Status"), "edge;") || !strings.Contains(resp.Header.Get("Proxy-Status"), "router_saturated") || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d, %v", resp.StatusCode, resp.Header)
	}
	if err := tls.Client(p.dial(p.Listen[1]), &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("a connection over TLS was taken in")
	}
	p.Eventually("both to be counted", func() error { return p.metric(`cellway_router_connections_refused_total{reason="full"}`, "2") })
	close(f.release)
	all.Wait()
	// Which connections are idle is asked only so often, so that one more may be refused.
	p.Eventually("a place to be free", func() error {
		if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	p.wantCell("acme", "cell-001")
}

// Requests that hang in one cell shut nobody out: those over the cell's limit
// are answered and their connections closed when places are scarce.
func TestConnectionsToAFullCellAreGivenBack(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--max-connections", "4", "--cell-in-flight", "1", "--cell-pending", "0")...)
	p.Ready()
	var all sync.WaitGroup
	all.Go(func() { p.get(p.Listen[0]+"/slow", "acme") })
	p.Eventually("the cell to be full", func() error {
		if n := p.mapStatus().Router.InFlight; n < 1 {
			return fmt.Errorf("%d requests in flight", n)
		}
		return nil
	})
	var last *http.Response
	for i := range 3 {
		last = keep(t, p.dial(p.Listen[0]), "/")
		if crowded := i == 2; last.StatusCode != http.StatusServiceUnavailable || last.Close != crowded {
			t.Errorf("request %d: %d, closes %v", i, last.StatusCode, last.Close)
		}
	}
	for range 8 {
		p.wantCell("globex", "cell-002")
	}
	close(f.release)
	all.Wait()
}
