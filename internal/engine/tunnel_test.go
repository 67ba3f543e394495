package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

const askUpgrade = "GET /t HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// echoCell switches to a protocol that sends all back.
func echoCell(t *testing.T) func(net.Conn) {
	return func(c net.Conn) {
		br := bufio.NewReader(c)
		head, err := readHead(br)
		if err != nil {
			return
		}
		if !strings.Contains(head, "Connection: Upgrade\r\n") || !strings.Contains(head, "Upgrade: echo\r\n") {
			t.Errorf("the cell was not asked to switch: %q", head)
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Cell-Id: z\r\nX-Own: 1\r\n\r\nhello ")
		io.Copy(c, br)
	}
}

// tunnelTo opens a tunnel through the front.
func tunnelTo(t *testing.T, r *rig) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := r.dial()
	io.WriteString(c, askUpgrade)
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "echo" || resp.Header.Get("X-Own") != "1" || resp.Header.Get("X-Cell-Id") != "" {
		t.Fatal(resp, err)
	}
	return c, br
}

func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != want {
		t.Errorf("read %q, %v, want %q", b, err, want)
	}
}

func TestTunnelRelaysRawBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{Idle: time.Minute, Whole: time.Second}})
		r.use(r.rawCell("10.0.0.1:80", echoCell(t)))
		c, br := tunnelTo(t, r)
		expect(t, br, "hello ")
		for _, s := range []string{"\x00\n\r\n", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 100000)} {
			go io.WriteString(c, s)
			expect(t, br, s)
			time.Sleep(50 * time.Second) // no silence of a minute
		}
		if s := r.pools.Cell("cell-a").Stats(); s.Tunnels != 1 || s.InFlight != 0 {
			t.Errorf("%d tunnels, %d in flight", s.Tunnels, s.InFlight)
		}
		c.Close()
		synctest.Wait()
		rep := r.last()
		if !rep.Tunnel || rep.Code != "" || rep.Status != 101 || rep.BytesIn != 100022 || rep.BytesOut != 100028 {
			t.Errorf("report %+v", rep)
		}
		if s := r.pools.Cell("cell-a").Stats(); s.Tunnels != 0 {
			t.Errorf("%d tunnels", s.Tunnels)
		}
	})
}

func TestSilentTunnelIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{Idle: time.Minute}})
		r.use(r.rawCell("10.0.0.1:80", echoCell(t)))
		_, br := tunnelTo(t, r)
		expect(t, br, "hello ")
		start := time.Now()
		if _, err := br.ReadByte(); err != io.EOF || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if rep := r.last(); rep.Code != Stopped || rep.Err != errTunnelSilent {
			t.Errorf("report %+v", rep)
		}
	})
}

// The caller ends tunnels and streams that no longer go where the map says.
func TestSweepEndsTunnelsAndStreams(t *testing.T) {
	onlyNetHTTP(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		echo := r.rawCell("10.0.0.1:80", echoCell(t))
		stream := r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) {
			http.NewResponseController(w).Flush()
			<-req.Context().Done()
		})
		r.pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{echo}}, {ID: "cell-b", Endpoints: []string{stream}}})
		var flights Flights
		r.handle = func(w http.ResponseWriter, req *http.Request) {
			cell := cellway.CellID("cell-a")
			if req.URL.Path == "/stream" {
				cell = "cell-b"
			}
			key := cellway.Key(req.URL.Query().Get("key"))
			ctx, flight := flights.Add(req.Context(), key, cell)
			defer flight.Done()
			r.finish(w, r.pools.Cell(cell).Forward(w, req.WithContext(ctx), Options{}))
		}
		_, br := tunnelTo(t, r)
		expect(t, br, "hello ")
		cl := r.client(false)
		var streams [2]*http.Response
		for i, key := range []string{"moved", "stays"} {
			resp, err := cl.Get(r.url("/stream?key=" + key))
			if err != nil {
				t.Fatal(err)
			}
			streams[i] = resp
		}
		if flights.Len() != 3 {
			t.Errorf("%d under way, want 3", flights.Len())
		}
		moved := errors.New("the key has moved")
		if n := flights.Sweep(func(k cellway.Key, c cellway.CellID) bool { return k == "stays" }, moved); n != 2 {
			t.Errorf("%d ended, want 2", n)
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Errorf("the tunnel: %v", err)
		}
		if _, err := io.ReadAll(streams[0].Body); err == nil {
			t.Error("the stream ended as if it were whole")
		}
		streams[0].Body.Close()
		synctest.Wait()
		if flights.Len() != 1 {
			t.Errorf("%d under way, want 1", flights.Len())
		}
		r.mu.Lock()
		for _, rep := range r.reports {
			if rep.Code != Stopped || rep.Err != moved {
				t.Errorf("report %+v", rep)
			}
		}
		r.mu.Unlock()
		streams[1].Body.Close()
	})
}

// A tunnel begins behind its request's body, which the cell gets once, however it
// comes.
func TestTunnelBeginsBehindTheBody(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Body: %s\r\n\r\n", body)
		io.Copy(c, br)
	}))
	const sized, chunked = "Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, parts := range [][]string{
		{sized + "HELLO"}, {sized, "HELLO"}, {sized + "HE", "LLO"}, {sized + "HE", "L", "LO"},
		{chunked + "5\r\nHELLO\r\n0\r\n\r\n"}, {chunked, "5\r\nHELLO\r\n0\r\n\r\n"}, {chunked + "5\r\nHE", "LLO\r\n0", "\r\n\r\n"},
	} {
		for _, early := range []string{"", "early "} {
			c := r.dial()
			head := strings.Replace(askUpgrade, "GET", "POST", 1)
			for i, part := range parts {
				if i == 0 {
					part = head[:len(head)-2] + part
				} else {
					time.Sleep(5 * time.Millisecond) // or it came with what was before
				}
				if i == len(parts)-1 {
					part += early
				}
				io.WriteString(c, part)
			}
			br := bufio.NewReader(c)
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != 101 || resp.Header.Get("X-Body") != "HELLO" {
				t.Fatal(parts, resp, err)
			}
			io.WriteString(c, "late")
			c.(interface{ CloseWrite() error }).CloseWrite()
			if got, err := io.ReadAll(br); string(got) != early+"late" || err != nil {
				t.Errorf("%q: the tunnel brought %q, %v, want %q", parts, got, err, early+"late")
			}
			c.Close()
		}
	}
}

// The goroutine that sent the end of a request's body has ended when the tunnel begins.
func TestTunnelHasItsConnectionsAlone(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := readHead(br); err != nil {
			return
		}
		io.ReadFull(br, make([]byte, 5))
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, br)
	}))
	head := strings.Replace(askUpgrade, "GET", "POST", 1)
	head = head[:len(head)-2] + "Content-Length: 5\r\n\r\n"
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 50 {
				c, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(10 * time.Second))
				io.WriteString(c, head)
				time.Sleep(time.Millisecond)
				io.WriteString(c, "HELLO")
				br := bufio.NewReader(c)
				if _, err := readHead(br); err != nil {
					t.Error(err)
				}
				io.WriteString(c, "ping")
				expect(t, br, "ping")
				c.Close()
			}
		})
	}
	clients.Wait()
}

// A 101 that says that a body follows, or that comes before the request's body has
// ended, begins no tunnel.
func TestA101ThatCantBeTaken(t *testing.T) {
	for name, row := range map[string]struct{ fields, body string }{
		"with a length":   {"Content-Length: 3\r\n", ""},
		"with chunks":     {"Transfer-Encoding: chunked\r\n", ""},
		"before the body": {"", "HE"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, Config{})
			r.use(r.rawCell("", func(c net.Conn) {
				br := bufio.NewReader(c)
				if _, err := readHead(br); err == nil {
					fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n%s\r\nabc", row.fields)
					io.Copy(io.Discard, br)
				}
			}))
			c := r.dial()
			head := strings.Replace(askUpgrade, "GET", "POST", 1)
			if row.body != "" {
				head = head[:len(head)-2] + "Content-Length: 5\r\n\r\n" + row.body
			}
			io.WriteString(c, head)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 502 || resp.Header.Get("X-Code") != string(cellway.CellProtocol) {
				t.Error(resp, err)
			}
			c.Close()
		})
	}
}

// When one direction has ended the other one goes on while something moves in it.
func TestAFuseBurnsWhileNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var moved, ended atomic.Int64 // since then
		newFuse(func() time.Duration { return time.Since(began) - time.Duration(moved.Load()) }, func() { ended.Store(int64(time.Since(began))) })
		for range 9 {
			time.Sleep(20 * time.Second)
			moved.Store(int64(time.Since(began)))
		}
		time.Sleep(2 * halfClosed)
		if got := time.Duration(ended.Load()); got != 3*time.Minute+halfClosed {
			t.Errorf("it ends after %v", got)
		}
		ended.Store(0)
		f := newFuse(func() time.Duration { return time.Hour }, func() { ended.Store(1) })
		time.Sleep(halfClosed - 1)
		f.putOut()
		time.Sleep(time.Hour)
		if ended.Load() != 0 {
			t.Error("it burns on when it is put out")
		}
		(*fuse)(nil).putOut()
	})
}

// Without a 101 an upgrade is an ordinary request, and what would be HTTP
// inside the tunnel is not asked for at all.
func TestUpgradesThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("X-Upgrade", req.Header.Get("Upgrade"))
			if req.Header.Get("Upgrade") == "never" {
				w.Header().Set("Upgrade", "websocket")
				w.WriteHeader(426)
			}
		}))
		c := r.dial()
		br := bufio.NewReader(c)
		for ask, want := range map[string]string{
			"websocket": "websocket", "never": "never", "h2c": "", "H2C": "", "HTTP/2.0": "", "TLS/1.0": "", "websocket, h2c": "",
		} {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", ask)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header.Get("X-Upgrade"); got != want {
				t.Errorf("upgrade to %q reached the cell as %q", ask, got)
			}
			if ask == "never" && (resp.StatusCode != 426 || resp.Header.Get("Upgrade") != "websocket") {
				t.Errorf("a 426 lost its Upgrade: %+v", resp)
			}
		}
		c.Close()
	})
}

func TestTunnelLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Limits: Limits{Tunnels: 1}})
		r.use(r.rawCell("10.0.0.1:80", echoCell(t)))
		tunnelTo(t, r)
		c := r.dial()
		io.WriteString(c, askUpgrade)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 503 || resp.Header.Get("X-Code") != string(cellway.CellSaturated) {
			t.Error(resp, err)
		}
		c.Close()
	})
}

// A real WebSocket library talks through it, over TCP with half-closes.
func TestWebSocket(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
		c, err := websocket.Accept(w, req, &websocket.AcceptOptions{Subprotocols: []string{"chat"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for {
			kind, b, err := c.Read(req.Context())
			if err != nil {
				return
			}
			if string(b) == "bye" {
				c.Close(websocket.StatusGoingAway, "so long")
				return
			}
			c.Write(req.Context(), kind, append([]byte("echo "), b...))
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+r.addr+"/chat?room=1", &websocket.DialOptions{Subprotocols: []string{"chat"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if c.Subprotocol() != "chat" {
		t.Errorf("subprotocol %q", c.Subprotocol())
	}
	c.SetReadLimit(1 << 20)
	for _, msg := range []string{"hello", strings.Repeat("x", 300000)} {
		if err := c.Write(ctx, websocket.MessageText, []byte(msg)); err != nil {
			t.Fatal(err)
		}
		if _, b, err := c.Read(ctx); err != nil || string(b) != "echo "+msg {
			t.Fatalf("read %d bytes, %v", len(b), err)
		}
	}
	c.Write(ctx, websocket.MessageText, []byte("bye"))
	_, _, err = c.Read(ctx)
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("closed with %v", err)
	}
	eventually(t, "the tunnel ends", func() bool { return r.last().Tunnel })
}
