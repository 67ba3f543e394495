package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Answers without a body keep the connection and the link in their loop.
func TestLoopPassesAnswersWithoutBodyOn(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		switch req.URL.Path {
		case "/do/head":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
		case "/do/204":
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		case "/do/304":
			io.WriteString(c, "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n")
		default:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
		return true
	}))
	c := f.joined()
	sent, resumed := f.sent.Load(), f.resumed.Load()
	for range 5 {
		for _, r := range []struct {
			method, path string
			status       int
		}{{"HEAD", "/do/head", 200}, {"GET", "/do/204", 204}, {"GET", "/do/304", 304}, {"GET", "/do/0", 200}, {"DELETE", "/do/0", 200}} {
			c.send(r.method + " " + r.path + " HTTP/1.1\r\nHost: a\r\n\r\n")
			if s, b, err := c.answer(r.method); s != r.status || b != "" || err != nil {
				t.Fatalf("%s %s: %d %q, %v", r.method, r.path, s, b, err)
			}
		}
	}
	if n := f.sent.Load() - sent; n != 25 || f.resumed.Load() != resumed {
		t.Errorf("loops sent %d of 25", n)
	}
	f.wantClients(1)
	f.wantLinks(1)
	f.wantNothing()
}

// A cell that answers more than it should desynchronises nobody.
func TestLoopKeepsNoLinkWithSurplus(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		return true
	}))
	c := f.joined()
	for range 5 {
		c.send(get("/do"))
		c.want(200, "ok")
		c.send(get("/good"))
		c.want(200, "/good")
	}
	f.wantNothing()
}

// Short bodies may come with the head, behind it in pieces, or too slowly for the
// loop.
func TestLoopGathersShortBodies(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.pathCell(nil))
	c := f.joined()
	post := func(n int) (head, body string) {
		body = strings.Repeat("0123456789", n/10)
		return fmt.Sprintf("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(body)), body
	}
	for _, n := range []int{10, 1000, 10000, 60000} {
		for _, pause := range []time.Duration{0, 100 * time.Microsecond, 10 * time.Millisecond} {
			head, body := post(n)
			c.send(head + body)
			c.want(200, body)
			for _, p := range []string{head[:10], head[10:], body[:n/3], body[n/3:]} {
				c.send(p)
				time.Sleep(pause)
			}
			c.want(200, body)
			c.send(head + body + get("/between") + head + body[:n/2])
			time.Sleep(pause)
			c.send(body[n/2:] + get("/behind"))
			for _, want := range []string{body, "/between", body, "/behind"} {
				c.want(200, want)
			}
		}
	}
	f.wantClients(1)
	f.wantNothing()
	// One that goes in mid-body reaches no cell as a whole request.
	head, body := post(1000)
	c.send(head + body[:500])
	c.Close()
	f.wantClients(0)
	eventually(t, "the server has forgotten it", func() bool { return f.s.Connections() == 0 })
	f.wantNothing()
}

// A client that waits for a 100 gets it, though its connection was in a loop.
func TestLoopLeavesExpectationsToGoroutines(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		b, _ := io.ReadAll(req.Body)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
		return true
	}))
	c := f.joined()
	for range 3 {
		c.send("POST /do HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		if h, err := readHead(c.br); err != nil || !strings.HasPrefix(h, "HTTP/1.1 100 ") {
			t.Fatalf("%q, %v", h, err)
		}
		c.send("body")
		c.want(200, "body")
		c.send(get("/next"))
		c.want(200, "/next")
		f.wantClients(1)
	}
	f.wantNothing()
}

// A connection that was in a loop may become a tunnel.
func TestLoopClientMayBecomeATunnel(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if req.Header.Get("Upgrade") == "" {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
				continue
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			io.Copy(c, br)
			return
		}
	}))
	c := f.joined()
	c.send("GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if h, err := readHead(c.br); err != nil || !strings.HasPrefix(h, "HTTP/1.1 101 ") {
		t.Fatalf("%q, %v", h, err)
	}
	for i := range 10 {
		m := fmt.Sprint("message ", i)
		c.send(m)
		b := make([]byte, len(m))
		if _, err := io.ReadFull(c.br, b); err != nil || string(b) != m {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if n := f.s.Tunnels(); n != 1 {
		t.Errorf("%d tunnels", n)
	}
	c.CloseWrite()
	c.wantEnd()
	f.wantClients(0)
	f.wantNothing()
}

// Many connections share the loops, and each gets its own answers.
func TestLoopsServeManyConnections(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.pathCell(nil), f.pathCell(nil))
	const conns = 200
	var all []*rawClient
	for range conns {
		c := f.raw()
		c.send(get("/first"))
		all = append(all, c)
	}
	for _, c := range all {
		c.want(200, "/first")
	}
	f.wantClients(conns)
	for n := range 5 {
		for i, c := range all {
			c.send(get(fmt.Sprint("/", n, "/", i)))
		}
		for i, c := range all {
			c.want(200, fmt.Sprint("/", n, "/", i))
		}
	}
	f.wantClients(conns)
	for _, c := range all {
		c.Close()
	}
	f.wantClients(0)
	f.wantNothing()
}
