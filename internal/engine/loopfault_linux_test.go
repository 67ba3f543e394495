package engine

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A cell that closes a connection between two requests costs none of them.
func TestLoopSurvivesCellThatClosesIdleLinks(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			f := newLoopRig(t, 1, Config{}, nil)
			closed := make(chan struct{}, 1000)
			f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye")
				c.Close()
				closed <- struct{}{}
				return false
			}))
			c := f.joined()
			for range 20 {
				c.send(get("/do"))
				c.want(200, "bye")
				<-closed
				if method == "GET" {
					c.send(get("/next"))
					c.want(200, "/next")
				} else {
					c.send("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nnext")
					c.want(200, "next")
				}
			}
			f.wantNothing()
		})
	}
}

// A link that the cell has ended in the same breath as its answer is not used
// again, even if the cell leaves its own side open.
func TestLoopDropsLinkThatEndsWithItsAnswer(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		tc := c.(*net.TCPConn)
		raw, _ := tc.SyscallConn()
		raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, 3, 1) }) // TCP_CORK
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye")
		tc.CloseWrite()
		io.Copy(io.Discard, c) // it hears all, and says nothing any more
		return false
	}))
	c := f.joined()
	for range 10 {
		start := time.Now()
		c.send(get("/do"))
		c.want(200, "bye")
		c.send(get("/next"))
		c.want(200, "/next")
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("it took %v", d)
		}
	}
	f.wantNothing()
}

// An answer whose end comes together with bytes of it ends at once.
func TestLoopSeesEndsThatComeWithBytes(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	next := make(chan struct{})
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		switch req.URL.Path {
		case "/do/head":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
			return false
		case "/do/body":
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			<-next
			io.WriteString(c, "all")
			return false
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
		<-next
		io.WriteString(c, "part")
		return false
	}))
	for range 10 {
		c := f.joined()
		start := time.Now()
		c.send(get("/do/body"))
		next <- struct{}{}
		c.want(200, "all")
		c.send(get("/do/head"))
		if s, _, err := c.answer("GET"); s != 502 || err != nil {
			t.Errorf("half a head: %d, %v, want a 502", s, err)
		}
		c.send(get("/j") + get("/do/part"))
		c.want(200, "/j")
		next <- struct{}{}
		if s, _, err := c.answer("GET"); s != 200 || err == nil {
			t.Errorf("half a body: %d, %v, want a 200 that breaks off", s, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("it took %v", d)
		}
	}
	f.wantNothing()
}

// A client sees that an answer is not whole, also where only a reset can say so.
func TestLoopBreaksOffWhatIsNotWhole(t *testing.T) {
	for _, tc := range []struct{ name, version, head string }{
		{"sized", "1.1", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"},
		{"chunked", "1.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n"},
		{"old", "1.0", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n"},
		{"reset", "1.0", "HTTP/1.0 200 OK\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newLoopRig(t, 1, Config{}, nil)
			f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
				io.WriteString(c, tc.head+"some")
				time.Sleep(20 * time.Millisecond)
				c.(*net.TCPConn).SetLinger(0)
				return false
			}))
			c := f.joined()
			c.send("GET /do HTTP/" + tc.version + "\r\nHost: a\r\n\r\n")
			s, b, err := c.answer("GET")
			if s != 200 || err == nil {
				t.Errorf("%d %q, %v: want a 200 that breaks off", s, b, err)
			}
			f.wantClients(0)
			f.wantNothing()
		})
	}
}

// A cell that breaks off in mid-head is no answer.
func TestLoopAnswersForCellThatBreaksOffInHead(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nX-")
		time.Sleep(20 * time.Millisecond)
		c.(*net.TCPConn).SetLinger(0)
		return false
	}))
	c := f.joined()
	c.send(get("/do"))
	c.want(502, "")
	c.send(get("/next"))
	c.want(200, "/next")
	f.wantClients(1)
	f.wantNothing()
}

// A cell that says nothing is not waited for without end.
func TestLoopEndsWaitForAnswers(t *testing.T) {
	for _, tc := range []struct {
		name     string
		timeouts Timeouts
		head     string
		status   int
	}{
		{"first byte", Timeouts{FirstByte: 100 * time.Millisecond}, "", 504},
		{"whole", Timeouts{Whole: 150 * time.Millisecond}, "", 504},
		{"part of a head", Timeouts{FirstByte: 100 * time.Millisecond}, "HTTP/1.1 200 OK\r\nX", 504},
		{"whole in mid-body", Timeouts{Whole: 150 * time.Millisecond}, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", 0},
		{"idle", Timeouts{Idle: 100 * time.Millisecond}, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newLoopRig(t, 1, Config{Timeouts: tc.timeouts}, nil)
			end := make(chan struct{})
			f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
				io.WriteString(c, tc.head)
				<-end
				return false
			}))
			t.Cleanup(func() { close(end) })
			c := f.joined()
			sent := f.sent.Load()
			start := time.Now()
			c.send(get("/do"))
			s, _, err := c.answer("GET")
			if tc.status != 0 && (s != tc.status || err != nil) || tc.status == 0 && err == nil {
				t.Errorf("%d, %v, want %d", s, err, tc.status)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("it took %v", d)
			}
			if f.sent.Load() == sent {
				t.Error("no loop has sent it")
			}
			f.wantNothing()
			if rep := f.last(); rep.Code != cellway.CellTimeout {
				t.Errorf("code %q", rep.Code)
			}
			if tc.status != 0 {
				c.send(get("/next"))
				c.want(200, "/next")
				f.wantClients(1)
			}
		})
	}
}

// A client that takes nothing of its answer is cut off in its time.
func TestLoopCutsClientThatStopsReading(t *testing.T) {
	f := newLoopRig(t, 1, Config{Timeouts: Timeouts{Idle: 200 * time.Millisecond}}, func(s *ServerConfig, _ *CheckerConfig) {
		s.AnswerTimeout = 200 * time.Millisecond
	})
	body := strings.Repeat("x", 32<<20)
	f.self = func(c *Call) bool {
		if _, _, path, _ := c.Request(); path != "/self" {
			return false
		}
		c.Header()
		c.Answer(200, []byte(body))
		return true
	}
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return true
	}))
	for _, path := range []string{"/do", "/self"} {
		c := f.joined()
		c.send(get(path))
		eventually(t, path+": the connection is given up", func() bool { return f.s.Connections() == 0 })
		f.wantNothing()
		if path == "/do" {
			if rep := f.last(); rep.Err != errClientStuck {
				t.Errorf("report %q, %v", rep.Code, rep.Err)
			}
		}
		c.Close()
	}
}

// A client that sends no more still gets its answer, and then the end.
func TestLoopAnswersHalfClosedClient(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		time.Sleep(30 * time.Millisecond)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
		return true
	}))
	for range 5 {
		c := f.joined()
		start := time.Now()
		c.send(get("/do"))
		c.CloseWrite()
		c.want(200, "here")
		c.wantEnd()
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it took %v", d)
		}
		f.wantClients(0)
	}
	f.wantNothing()
}

// A client that breaks off ends its request, and soon.
func TestLoopEndsCallOfClientThatIsGone(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	arrived, gone := make(chan struct{}), make(chan struct{})
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		arrived <- struct{}{}
		io.Copy(io.Discard, c)
		gone <- struct{}{}
		return false
	}))
	for range 5 {
		c := f.joined()
		c.send(get("/do"))
		<-arrived
		f.wantClients(1)
		c.SetLinger(0)
		c.Close()
		select {
		case <-gone:
		case <-time.After(900 * time.Millisecond):
			t.Fatal("the cell works on for nobody")
		}
		f.wantNothing()
		if rep := f.last(); rep.Code != ClientGone {
			t.Errorf("code %q", rep.Code)
		}
		f.wantClients(0)
	}
}

// What a cell sends over a link that carries nothing is never taken for the answer to
// a request that comes at the same moment.
func TestLoopTakesNothingUnaskedForAnAnswer(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	var conns atomic.Pointer[net.TCPConn]
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		conns.Store(c.(*net.TCPConn))
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
		return true
	}))
	c := f.joined()
	busy := f.joined()
	for range 30 {
		c.send(get("/do"))
		c.want(200, "own")
		// The loop is kept busy, so that it hears of both at once.
		hold := make(chan struct{})
		f.s.loops[0].post(func() { <-hold })
		c.send(get("/next"))
		time.Sleep(time.Millisecond)
		io.WriteString(conns.Load(), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		time.Sleep(5 * time.Millisecond)
		close(hold)
		c.want(200, "/next")
	}
	busy.Close()
	f.wantNothing()
}

// What a cell sends behind an answer is never taken for the next one, wherever the
// answer ends in the loop's buffers.
func TestLoopTakesNothingBehindAnAnswerForTheNext(t *testing.T) {
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	answer := func(size int, chunked bool) string {
		body := strings.Repeat("x", size)
		if chunked {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body)
		}
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, body)
	}
	f := newLoopRig(t, 1, Config{}, nil)
	var next atomic.Pointer[string]
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		c.(*net.TCPConn).SetNoDelay(false)
		io.WriteString(c, *next.Load()+stray)
		return true
	}))
	c := f.joined()
	for _, chunked := range []bool{false, true} {
		room := largeBuffer - replyRoom
		sizes := []int{0, 1, 10_000, 40_000, 100_000}
		for _, whole := range []int{room, room + largeBuffer, room + 2*largeBuffer} {
			n := whole
			for len(answer(n, chunked)) > whole {
				n--
			}
			sizes = append(sizes, n-1, n, n+1) // n ends where a buffer does
		}
		for _, n := range sizes {
			a := answer(n, chunked)
			next.Store(&a)
			c.send(get("/do"))
			c.want(200, strings.Repeat("x", n))
			c.send(get("/next"))
			c.want(200, "/next")
			if t.Failed() {
				t.Fatalf("an answer of %d bytes, chunked %v", n, chunked)
			}
		}
	}
	f.wantNothing()
}
