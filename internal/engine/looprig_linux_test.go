package engine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A loopRig is a rig whose front has event loops, and that counts what became of
// the calls that they served.
type loopRig struct {
	*rig
	s    *Server
	self func(c *Call) bool         // answers a call itself, and reports whether it has; may be nil
	end  func(c *Call, rep *Report) // called first by EndCall; may be nil

	stepped, sent, ended, resumed, dropped atomic.Int64
}

// newLoopRig starts a front with so many loops.
func newLoopRig(t *testing.T, n int, cfg Config, set func(*ServerConfig, *CheckerConfig)) *loopRig {
	t.Helper()
	if loops == 0 {
		t.Skip("it is for the pass with event loops")
	}
	pools, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &loopRig{rig: &rig{t: t, pools: pools}}
	checks := CheckerConfig{}
	sc := ServerConfig{Handler: f, Loops: n}
	if set != nil {
		set(&sc, &checks)
	}
	sc.Checker = NewChecker(checks)
	f.s = NewServer(sc)
	l := f.listen("")
	f.addr = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() { f.s.Serve(Movable(l)) })
	t.Cleanup(func() { f.s.Close(); serving.Wait(); pools.Close() })
	return f
}

func (f *loopRig) ServeCall(c *Call) {
	if f.self == nil || !f.self(c) {
		f.rig.ServeCall(c)
	}
}

func (f *loopRig) StepCall(c *Call) Step {
	f.stepped.Add(1)
	if f.self != nil && f.self(c) {
		return Served
	}
	st := f.rig.StepCall(c)
	if st == Sent {
		f.sent.Add(1)
	}
	return st
}

func (f *loopRig) EndCall(c *Call, rep *Report) bool {
	f.ended.Add(1)
	if f.end != nil {
		f.end(c, rep)
	}
	return f.rig.EndCall(c, rep)
}

func (f *loopRig) ResumeCall(c *Call, rep *Report) {
	f.resumed.Add(1)
	if rep != nil {
		for rep.Swallowed && c.Rewind() {
			_, pool, o := f.prepare(c)
			o.Edit = nil
			rep = c.Forward(pool, o)
		}
		f.finishCall(c, rep)
		return
	}
	f.rig.ResumeCall(c, nil)
}

func (f *loopRig) DropCall(*Call) { f.dropped.Add(1) }

// eachLoop has look look at each loop, on that loop.
func (f *loopRig) eachLoop(look func(*loop)) {
	f.s.mu.Lock()
	all := f.s.loops
	f.s.mu.Unlock()
	for _, l := range all {
		done := make(chan struct{})
		l.post(func() {
			look(l)
			close(done)
		})
		<-done
	}
}

// inLoops returns how many clients the loops have, and how many links that carry
// nothing.
func (f *loopRig) inLoops() (clients, links int) {
	f.eachLoop(func(l *loop) {
		for i := range l.slots {
			if l.slots[i].c != nil {
				clients++
			}
		}
		for _, idle := range l.links {
			links += len(*idle)
		}
	})
	return clients, links
}

// wantClients waits until the loops have so many clients.
func (f *loopRig) wantClients(n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprint(n, " clients are in loops"), func() bool { c, _ := f.inLoops(); return c == n })
}

// wantLinks waits until the loops have so many links that carry nothing.
func (f *loopRig) wantLinks(n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprint(n, " links are in loops"), func() bool { _, l := f.inLoops(); return l == n })
}

// wantNothing waits until the figures say that nothing is under way.
func (f *loopRig) wantNothing() {
	f.t.Helper()
	defer func() {
		if f.t.Failed() {
			f.t.Logf("%+v", f.pools.Stats())
		}
	}()
	eventually(f.t, "nothing is in flight", func() bool {
		for _, s := range f.pools.Stats() {
			for _, e := range s.Endpoints {
				if e.InFlight != 0 {
					return false
				}
			}
			if s.InFlight != 0 || s.Pending != 0 || s.Tunnels != 0 {
				return false
			}
		}
		return true
	})
}

// A rawClient is a client that sends and reads as it likes.
type rawClient struct {
	*net.TCPConn
	t  *testing.T
	br *bufio.Reader
}

// raw connects to the front.
func (f *loopRig) raw() *rawClient {
	f.t.Helper()
	c := f.dial().(*net.TCPConn)
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return &rawClient{c, f.t, bufio.NewReader(c)}
}

// joined connects to the front and waits until a loop has the connection, and a
// link to the cell.
func (f *loopRig) joined() *rawClient {
	f.t.Helper()
	before, _ := f.inLoops()
	c := f.raw()
	c.send("GET /join HTTP/1.1\r\nHost: a\r\n\r\n")
	c.want(200, "/join")
	f.wantClients(before + 1)
	sent := f.sent.Load()
	c.send("GET /join HTTP/1.1\r\nHost: a\r\n\r\n")
	c.want(200, "/join")
	if f.sent.Load() == sent {
		f.t.Fatal("no loop has sent the request")
	}
	return c
}

func (c *rawClient) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.TCPConn, s); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

// answer reads an answer whole.
func (c *rawClient) answer(method string) (status int, body string, err error) {
	res, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// want reads an answer and compares it.
func (c *rawClient) want(status int, body string) {
	c.t.Helper()
	s, b, err := c.answer("GET")
	if err != nil || s != status || b != body {
		c.t.Fatalf("got %d %.60q, %v, want %d %.60q", s, b, err, status, body)
	}
}

// wantEnd waits for the end of the connection.
func (c *rawClient) wantEnd() {
	c.t.Helper()
	if b, err := c.br.ReadByte(); err == nil {
		c.t.Errorf("got %q, want the end", b)
	} else if os.IsTimeout(err) {
		c.t.Error("the connection stays open")
	}
}

// pathCell is a cell that answers with the path of each request. Those under
// /do it gives to do, whose result ends the connection if it is false.
func (f *loopRig) pathCell(do func(c net.Conn, req *http.Request) bool) string {
	return f.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if do != nil && strings.HasPrefix(req.URL.Path, "/do") {
				if !do(c, req) {
					return
				}
				continue
			}
			if req.Method == "POST" {
				b, err := io.ReadAll(req.Body)
				if err != nil {
					return
				}
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
				continue
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
		}
	})
}

// get is a request for path.
func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// shutdown shuts the front down and reports an error.
func (f *loopRig) shutdown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return f.s.Shutdown(ctx)
}

// descriptors returns how many this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// cellOf returns the figures of cell-a.
func (f *loopRig) cellOf() Stats { return f.pools.Cell(cellway.CellID("cell-a")).Stats() }
