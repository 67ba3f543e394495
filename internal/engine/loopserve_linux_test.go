package engine

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A connection that stays is served by its loop, but for the first call: there is
// no connection to the cell yet.
func TestLoopServesConnectionThatStays(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.pathCell(nil))
	c := f.joined()
	for i := range 50 {
		p := fmt.Sprint("/", i)
		c.send(get(p))
		c.want(200, p)
	}
	if n := f.ended.Load(); n < 50 || f.resumed.Load() != 1 {
		t.Errorf("%d calls were served by a loop alone, %d were not", n, f.resumed.Load())
	}
	f.wantClients(1)
	f.wantLinks(1)
	f.wantNothing()
}

// Requests that come at once are answered in order, whoever answers them.
func TestLoopAnswersPipelinedRequestsInOrder(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	f.self = func(c *Call) bool {
		_, _, path, _ := c.Request()
		if !strings.HasPrefix(path, "/self") {
			return false
		}
		c.Header()
		c.Answer(200, []byte(path))
		return true
	}
	c := f.joined()
	for range 5 {
		var all strings.Builder
		for i := range 60 {
			all.WriteString(get(fmt.Sprint([]string{"/self", "/self", "/cell"}[i%3], i)))
		}
		c.send(all.String())
		for i := range 60 {
			c.want(200, fmt.Sprint([]string{"/self", "/self", "/cell"}[i%3], i))
		}
	}
	f.wantClients(1)
	f.wantNothing()
}

// Answers of the front's own that nobody reads don't pile up in memory, and none
// of the requests behind them is lost.
func TestLoopAnswersPipelinedRequestsToSlowReader(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	big := strings.Repeat("x", 1<<20)
	f.self = func(c *Call) bool {
		if _, _, path, _ := c.Request(); path != "/big" {
			return false
		}
		c.Header()
		c.Answer(200, []byte(big))
		return true
	}
	c := f.joined()
	c.send(strings.Repeat(get("/big")+get("/small"), 12))
	time.Sleep(50 * time.Millisecond)
	for range 12 {
		c.want(200, big)
		c.want(200, "/small")
	}
	f.wantNothing()
}

// A request may come byte by byte.
func TestLoopTakesRequestsInSingleBytes(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	c := f.joined()
	for _, b := range get("/bytes") {
		c.send(string(b))
		time.Sleep(time.Millisecond)
	}
	c.want(200, "/bytes")
	for _, b := range "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" {
		c.send(string(b))
		time.Sleep(time.Millisecond)
	}
	c.want(200, "hello")
	c.send(get("/after"))
	c.want(200, "/after")
	f.wantClients(1)
}

// A body that streams has a goroutine, arrives as it was sent, and the connection
// joins a loop again.
func TestLoopLeavesStreamedBodiesToGoroutine(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.pathCell(nil))
	c := f.joined()
	body := strings.Repeat("0123456789abcdef", 32<<10)
	for range 3 {
		go c.send(fmt.Sprintf("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		c.want(200, body)
		go c.send(fmt.Sprintf("POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body))
		c.want(200, body)
		c.send(get("/again"))
		c.want(200, "/again")
		f.wantClients(1)
		sent := f.sent.Load()
		c.send(get("/again"))
		c.want(200, "/again")
		if f.sent.Load() != sent+1 {
			t.Error("the loop has not sent the request")
		}
	}
	f.wantNothing()
}

// bigBodies are answers of that body in every framing.
func bigBodies(body string) map[string]string {
	var chunked strings.Builder
	for i := 0; i < len(body); i += 50000 {
		b := body[i:min(i+50000, len(body))]
		chunked.WriteString(fmt.Sprintf("%x\r\n%s\r\n", len(b), b))
	}
	return map[string]string{
		"/do/sized":   fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"/do/chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked.String() + "0\r\n\r\n",
		"/do/toend":   "HTTP/1.1 200 OK\r\n\r\n" + body,
		"/do/old":     "HTTP/1.0 200 OK\r\n\r\n" + body,
	}
}

// Large answers arrive whole in every framing, at a client that reads slowly as
// at one that does not.
func TestLoopPassesLargeAnswersOn(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 512<<10) // 8 MiB
	all := bigBodies(body)
	for _, version := range []string{"1.1", "1.0"} {
		for path := range all {
			t.Run(version+path, func(t *testing.T) {
				f := newLoopRig(t, 1, Config{}, nil)
				f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
					io.WriteString(c, all[req.URL.Path])
					return !strings.HasSuffix(path, "toend") && !strings.HasSuffix(path, "old")
				}))
				c := f.joined()
				c.SetReadBuffer(128 << 10)
				c.send("GET " + path + " HTTP/" + version + "\r\nHost: a\r\n\r\n")
				res, err := http.ReadResponse(c.br, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, buf := make([]byte, 0, len(body)), make([]byte, 64<<10)
				for i := 0; ; i++ {
					if i%16 == 0 {
						time.Sleep(time.Millisecond)
					}
					n, err := res.Body.Read(buf)
					got = append(got, buf[:n]...)
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if string(got) != body {
					t.Errorf("got %d bytes, want %d", len(got), len(body))
				}
				if version == "1.1" {
					c.send(get("/next"))
					c.want(200, "/next")
					c.send(get("/next"))
					c.want(200, "/next")
					f.wantClients(1)
				} else {
					c.wantEnd()
				}
				f.wantNothing()
			})
		}
	}
}

// An answer that streams without a pause leaves the loop to others.
func TestLoopIsNotHeldByOneAnswer(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	stop := make(chan struct{})
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		b := make([]byte, 256<<10)
		for {
			select {
			case <-stop:
				return false
			default:
			}
			if _, err := c.Write(b); err != nil {
				return false
			}
		}
	}))
	a, b := f.joined(), f.joined()
	a.send(get("/do"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := http.ReadResponse(a.br, nil); err == nil {
			io.Copy(io.Discard, res.Body)
		}
	}()
	f.wantClients(1)
	for range 20 {
		b.send(get("/b"))
		b.want(200, "/b")
	}
	close(stop)
	<-done
	f.wantNothing()
}

// What a cell sends arrives at once, however small it is.
func TestLoopPassesPiecesOnAtOnce(t *testing.T) {
	for _, framing := range []string{"chunked", "sized", "toend"} {
		t.Run(framing, func(t *testing.T) {
			f := newLoopRig(t, 1, Config{}, nil)
			next := make(chan struct{})
			f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
				switch framing {
				case "chunked":
					io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				case "sized":
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
				default:
					io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				}
				for i := range 10 {
					<-next
					if framing == "chunked" {
						fmt.Fprintf(c, "1\r\n%d\r\n", i)
					} else {
						fmt.Fprint(c, i)
					}
				}
				if framing == "chunked" {
					io.WriteString(c, "0\r\n\r\n")
				}
				return framing != "toend"
			}))
			c := f.joined()
			c.send(get("/do"))
			res, err := http.ReadResponse(c.br, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				next <- struct{}{}
				var one [1]byte
				if _, err := res.Body.Read(one[:]); err != nil && err != io.EOF || one[0] != byte('0'+i) {
					t.Fatalf("piece %d: %q, %v", i, one, err)
				}
				if i == 5 {
					f.wantClients(1)
				}
			}
			if _, err := io.ReadAll(res.Body); err != nil {
				t.Error(err)
			}
			c.send(get("/next"))
			c.want(200, "/next")
			f.wantNothing()
		})
	}
}

// The head of an answer may come in any pieces, and so may what follows it.
func TestLoopTakesAnswersInPieces(t *testing.T) {
	for _, pieces := range [][]string{
		{"H", "TTP/1.1 2", "00 OK\r\nConte", "nt-Length: 4\r", "\n\r\n", "a", "bcd"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2", "\r\nab", "\r", "\n2\r\ncd\r\n0", "\r\n", "X-T: 1\r\n\r", "\n"},
		{"HTTP/1.1 100 Continue\r\n\r", "\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", "cd"},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"},
	} {
		f := newLoopRig(t, 1, Config{}, nil)
		f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
			for _, p := range pieces {
				io.WriteString(c, p)
				time.Sleep(5 * time.Millisecond)
			}
			return true
		}))
		c := f.joined()
		for range 3 {
			c.send(get("/do"))
			if strings.Contains(pieces[0]+pieces[1%len(pieces)], "103") {
				if b, err := readHead(c.br); err != nil || !strings.HasPrefix(b, "HTTP/1.1 103") {
					t.Errorf("got %q, %v, want a 103", b, err)
				}
			}
			c.want(200, "abcd")
			c.send(get("/next"))
			c.want(200, "/next")
		}
		f.wantClients(1)
		f.wantNothing()
	}
}

// A request that can be read in two ways is refused in a loop as it is outside.
func TestLoopRefusesBadRequests(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	for _, bad := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"nonsense\r\n\r\n",
	} {
		c := f.joined()
		c.send(get("/good") + bad)
		c.want(200, "/good")
		if s, _, err := c.answer("GET"); s != 400 || err != nil {
			t.Errorf("%q: %d, %v, want a 400", bad, s, err)
		}
		c.wantEnd()
		f.wantClients(0)
	}
}

// A request of which nobody hears the end is refused in its time.
func TestLoopRefusesSlowHeads(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, func(_ *ServerConfig, k *CheckerConfig) { k.HeadTimeout = 200 * time.Millisecond })
	f.use(f.pathCell(nil))
	c := f.joined()
	c.send("GET /slow HTTP/1.1\r\nHos")
	if s, _, err := c.answer("GET"); s != 408 || err != nil {
		t.Errorf("%d, %v, want a 408", s, err)
	}
	c.wantEnd()
	f.wantClients(0)
}
