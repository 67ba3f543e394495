package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/engine"
)

// A way is one that requests of HTTP/1 take over loopback, from their client's
// connection to the gateway.
type way struct {
	name  string
	own   bool // by the engine's own server, not that of net/http
	loops int  // of that server

	loopback
	steps steps
}

// everyWay runs f with a rig of n workers by each way.
func everyWay(t *testing.T, n, size int, change func(*Config), f func(t *testing.T, r *rig)) {
	t.Helper()
	if ownPath {
		t.Skip("it goes by every way itself")
	}
	for _, w := range []*way{{name: "net/http"}, {name: "engine", own: true}, {name: "loops", own: true, loops: 2}} {
		t.Run(w.name, func(t *testing.T) {
			if w.loops > 0 && runtime.GOOS != "linux" {
				t.Skip("there are no loops")
			}
			f(t, newRigBy(t, w, n, size, change))
		})
	}
}

// byLoops returns a rig whose clients loops serve.
func byLoops(t *testing.T, n, size int, change func(*Config)) *rig {
	t.Helper()
	if ownPath || runtime.GOOS != "linux" {
		t.Skip("it is about loops")
	}
	return newRigBy(t, &way{name: "loops", own: true, loops: 2}, n, size, change)
}

// newRigBy is newRig on loopback. Workers answer at once.
func newRigBy(t *testing.T, w *way, n, size int, change func(*Config)) *rig {
	t.Helper()
	return newRigOf(t, listed{Salt: "test", Size: size}, func(r *rig) {
		r.way, r.net = w, w
		for i := range n {
			r.add(fmt.Sprintf("w%02d", i+1), string(rune('a'+i%3)), i+1).set(echoes)
		}
	}, change)
}

// echoes answers with what it was asked for.
func echoes(w http.ResponseWriter, req *http.Request) {
	fmt.Fprintf(w, "%s %s", req.Method, req.URL.Path)
}

// A loopback is a network on which addresses stand for those that listeners have.
type loopback struct {
	mu   sync.Mutex
	real map[string]string
}

func (n *loopback) Listen(addr string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.real == nil {
		n.real = make(map[string]string)
	}
	n.real[addr] = l.Addr().String()
	return l
}

func (n *loopback) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	at, ok := n.real[addr]
	n.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("nobody listens at %s", addr)}
	}
	return new(net.Dialer).DialContext(ctx, network, at)
}

// front makes l, which wraps connections as those of a router, one for loops.
func (w *way) front(l net.Listener) net.Listener {
	if w.loops == 0 {
		return l
	}
	return fromRouter{engine.Movable(l.(fromRouter).Listener)}
}

// NetConn lets a loop find the connection.
func (c routerConn) NetConn() net.Conn { return c.Conn }

// steps count what became of calls that loops have served.
type steps struct {
	callHandler
	sent, ended, dropped atomic.Int64
	boom                 atomic.Value // where to panic, a string
}

func (s *steps) StepCall(c *engine.Call) engine.Step {
	st := s.callHandler.StepCall(c)
	if st == engine.Sent {
		s.sent.Add(1)
		s.panicAt("sent")
	}
	return st
}

func (s *steps) EndCall(c *engine.Call, rep *engine.Report) bool {
	s.ended.Add(1)
	s.panicAt("ended")
	return s.callHandler.EndCall(c, rep)
}

func (s *steps) panicAt(where string) {
	if s.boom.Load() == where {
		panic(http.ErrAbortHandler)
	}
}

func (s *steps) DropCall(c *engine.Call) {
	s.dropped.Add(1)
	s.callHandler.DropCall(c)
}

// A caller is a router, with one connection at a time.
type caller struct {
	net.Conn
	rig  *rig
	t    testing.TB
	br   *bufio.Reader
	last bool // the latest answer says that the connection ends
}

// call connects.
func (r *rig) call() *caller {
	r.t.Helper()
	c := &caller{rig: r, t: r.t}
	c.connect()
	return c
}

func (c *caller) connect() {
	c.t.Helper()
	conn, err := c.rig.net.DialContext(context.Background(), "tcp", "front:80")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	c.Conn, c.br, c.last = conn, bufio.NewReader(conn), false
}

// head is the head of a tenant's request, as a router sends it, with more fields.
func head(method, path, tenant string, fields ...string) string {
	all := append([]string{
		method + " " + path + " HTTP/1.1", "Host: a", "X-Cell-Id: cell-001", "X-Cell-Epoch: 1.1", "X-Cell-Key: " + tenant, "X-Tenant-Id: " + tenant,
	}, fields...)
	return strings.Join(all, "\r\n") + "\r\n\r\n"
}

func (c *caller) send(s string) {
	c.t.Helper()
	if c.last {
		c.connect()
	}
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Errorf("send: %v", err)
	}
}

// answer reads an answer whole.
func (c *caller) answer(method string) (status int, body string, err error) {
	res, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		return 0, "", err
	}
	c.last = res.Close
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// get asks for a path, and wants it echoed.
func (c *caller) get(path, tenant string) {
	c.t.Helper()
	c.send(head("GET", path, tenant))
	c.want(200, "GET "+path)
}

func (c *caller) want(status int, body string) {
	c.t.Helper()
	if s, b, err := c.answer("GET"); err != nil || s != status || b != body {
		c.t.Errorf("answer %d %.80q, %v, want %d %.80q", s, b, err, status, body)
	}
}

// wantCode wants a problem of the gateway's.
func (c *caller) wantCode(status int, code string) {
	c.t.Helper()
	if s, b, err := c.answer("GET"); err != nil || s != status || !strings.Contains(b, `"code":"`+code+`"`) {
		c.t.Errorf("answer %d %.200q, %v, want %d %s", s, b, err, status, code)
	}
}

// wantNothing waits until nothing is under way, and checks that no place among the
// tenants' requests is taken.
func (r *rig) wantNothing(tenants ...string) {
	r.t.Helper()
	r.eventually("nothing is under way", func() bool {
		s := r.gw.Stats()
		busy := s.InFlight + s.Tunnels
		for _, w := range s.Workers {
			busy += int64(w.InFlight) + int64(w.Bulkhead.InFlight)
		}
		return busy == 0
	})
	for _, name := range tenants {
		place, ok := r.gw.limiter.running.Acquire(name, 1)
		if !ok {
			r.t.Errorf("%s has a request under way", name)
		}
		place.Release()
	}
}

// eventually waits until ok.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			r.t.Fatalf("it does not come about that %s; %+v", what, r.gw.Stats())
		}
		time.Sleep(time.Millisecond)
	}
}
