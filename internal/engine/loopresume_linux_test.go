package engine

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What a handler does wrong ends its own connection only, and leaves nothing
// behind.
func TestLoopOutlivesPanics(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n0123456789")
		time.Sleep(10 * time.Millisecond)
		io.WriteString(c, "rest")
		return false
	}))
	var where atomic.Value
	where.Store("")
	boom := func(at string) {
		if where.Load() == at {
			panic("boom")
		}
	}
	f.self = func(c *Call) bool { boom("step"); return false }
	f.end = func(*Call, *Report) { boom("end") }
	f.options = func(*http.Request) Options {
		return Options{Edit: edits{
			request: func(Header) { boom("request") },
			inspect: func(int, Header) bool { boom("inspect"); return false },
			answer:  func(int, Header) { boom("answer") },
		}}
	}
	other := f.joined()
	for _, at := range []string{"step", "request", "inspect", "answer", "end"} {
		c := f.joined()
		dropped := f.dropped.Load()
		where.Store(at)
		c.send(get("/boom"))
		if s, b, err := c.answer("GET"); err == nil && (s != 200 || at != "end") {
			t.Errorf("%s: %d %q", at, s, b)
		}
		where.Store("")
		f.wantClients(1)
		f.wantNothing()
		if f.dropped.Load() != dropped+1 {
			t.Errorf("%s: the handler was not told", at)
		}
		other.send(get("/other"))
		other.want(200, "/other")
		f.wantClients(1) // it may have needed another link
	}
	// So does a goroutine, which a body without a length needs.
	for _, at := range []string{"request", "inspect", "answer"} {
		where.Store(at)
		c := f.raw()
		c.send("POST /boom HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
		if s, b, err := c.answer("GET"); err == nil {
			t.Errorf("%s: %d %q", at, s, b)
		}
		where.Store("")
		f.wantNothing()
	}
	eventually(t, "their connections are gone", func() bool { return f.s.Connections() == 1 })
}

// An answer that a panic cuts short is not taken for a whole one, even where only
// the end of the connection says what is whole.
func TestLoopResetsAnswerThatPanicCutsShort(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
		time.Sleep(20 * time.Millisecond)
		io.WriteString(c, "4\r\nmore\r\n0\r\n\r\n")
		return true
	}))
	var boom atomic.Bool
	f.end = func(*Call, *Report) {
		if boom.Load() {
			panic("boom")
		}
	}
	c := f.joined()
	ended := f.ended.Load()
	boom.Store(true)
	c.send("GET /do HTTP/1.0\r\nHost: a\r\n\r\n")
	s, b, err := c.answer("GET")
	if n := f.ended.Load() - ended; n != 1 {
		t.Fatalf("%d calls ended in the loop", n)
	}
	if err == nil {
		t.Errorf("%d %q looks whole", s, b)
	}
	f.wantNothing()
}

// A swallowed answer is followed by another try, which may wait.
func TestLoopResumesAfterSwallowedAnswer(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	swallow := false
	f.options = func(*http.Request) Options {
		return Options{Edit: edits{inspect: func(int, Header) bool { return swallow }}}
	}
	c := f.joined()
	swallow = true
	for range 3 {
		n := f.resumed.Load()
		c.send(get("/twice"))
		c.want(200, "/twice")
		if f.sent.Load() < 1 || f.resumed.Load() <= n {
			t.Error("no goroutine went on with it")
		}
		f.wantClients(1)
	}
	f.wantNothing()
}

// Where a request has to wait for a place, a goroutine does.
func TestLoopLeavesQueueToGoroutines(t *testing.T) {
	f := newLoopRig(t, 1, Config{Limits: Limits{InFlight: 1, Pending: 1, QueueWait: 5 * time.Second}}, nil)
	release := make(chan struct{})
	arrived := make(chan struct{}, 10)
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		arrived <- struct{}{}
		<-release
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
		return true
	}))
	a, b, d := f.joined(), f.joined(), f.joined()
	a.send(get("/do"))
	<-arrived
	b.send(get("/do"))
	eventually(t, "one waits", func() bool { return f.cellOf().Pending == 1 })
	d.send(get("/do"))
	d.want(503, "")
	close(release)
	a.want(200, "yes")
	b.want(200, "yes")
	f.wantClients(3)
	f.wantNothing()
}

// While a breaker has something to say, a goroutine asks it.
func TestLoopLeavesOpenBreakerToGoroutines(t *testing.T) {
	f := newLoopRig(t, 1, Config{Breaker: Breaker{Connects: 1, Backoff: 50 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}}, nil)
	l := f.listen("")
	addr := l.Addr().String()
	serve := func(l net.Listener) *http.Server {
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }), ErrorLog: quiet()}
		go s.Serve(l)
		return s
	}
	s := serve(l)
	f.use("http://" + addr)
	var all []*rawClient
	for range 8 {
		all = append(all, f.joined())
	}
	s.Close()
	for _, c := range all {
		c.send(get("/down"))
	}
	for _, c := range all {
		if s, _, err := c.answer("GET"); err != nil || s < 502 {
			t.Errorf("%d, %v", s, err)
		}
	}
	f.wantNothing()
	var err error
	eventually(t, "the port is free", func() bool { l, err = net.Listen("tcp", addr); return err == nil })
	s = serve(l)
	t.Cleanup(func() { s.Close() })
	for _, c := range all {
		eventually(t, "the cell is used again", func() bool {
			c.send(get("/up"))
			s, _, err := c.answer("GET")
			return err == nil && s == 200
		})
	}
	f.wantClients(len(all))
	f.wantNothing()
}

// Requests that are with a cell when it dies leave nothing behind, whatever the
// breaker makes of it meanwhile.
func TestLoopSurvivesCellThatDiesUnderManyRequests(t *testing.T) {
	f := newLoopRig(t, 2, Config{Breaker: Breaker{Connects: 1, Backoff: time.Minute}}, nil)
	l := f.listen("")
	var arrived atomic.Int64
	die := make(chan struct{})
	done := make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
			go func() {
				br := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					if req.URL.Path != "/do" {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/join")
						continue
					}
					arrived.Add(1)
					<-die
					c.(*net.TCPConn).SetLinger(0)
					c.Close()
					return
				}
			}()
		}
	}()
	f.use("http://" + l.Addr().String())
	var all []*rawClient
	for range 30 {
		c := f.joined()
		all = append(all, c)
	}
	for _, c := range all {
		c.send(get("/do"))
	}
	eventually(t, "all are with the cell", func() bool { return arrived.Load() == 30 })
	l.Close()
	<-done
	close(die)
	for _, c := range all {
		if s, _, err := c.answer("GET"); err != nil || s < 502 {
			t.Errorf("%d, %v", s, err)
		}
	}
	f.wantNothing()
	eventually(t, "no connection to the cell is left", func() bool { return f.pools.conns.Load() == 0 })
	for _, c := range conns {
		c.Close()
	}
}

// A link that was closed while no loop had it does not trouble the loop that
// takes it, whatever the number of its descriptor.
func TestLoopTakesNoStaleLinks(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	stop := make(chan struct{})
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		<-stop
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		c.Close()
		return false
	}))
	c := f.joined()
	// Goroutines have many links, which the cell closes with its answers.
	const many = 150
	var slow []*rawClient
	for range many {
		s := f.raw()
		s.send(get("/do"))
		slow = append(slow, s)
	}
	eventually(t, "all are under way", func() bool { return f.cellOf().InFlight == many })
	c.send(get("/keep"))
	c.want(200, "/keep")
	close(stop)
	for _, s := range slow {
		s.want(200, "ok")
	}
	for _, s := range slow {
		s.send(get("/next"))
		s.want(200, "/next")
		s.send("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
		s.want(200, "body")
	}
	f.wantClients(many + 1)
	f.wantNothing()
}

// Nor do many at once, which have higher descriptors than any that it has seen.
func TestLoopTakesNoneOfManyStaleLinks(t *testing.T) {
	const many = 300
	f := newLoopRig(t, 1, Config{Limits: Limits{IdleConns: many}}, nil)
	f.use(f.pathCell(func(net.Conn, *http.Request) bool { return false }))
	c := f.joined()
	e := (*f.pools.Cell("cell-a").endpoints.Load())[0]
	for _, l := range f.s.loops {
		l.post(func() { l.closeIdle(e) })
	}
	f.wantLinks(0)
	for range many {
		l, err := e.dialLink(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(l.conn, get("/do"))
		eventually(t, "the cell has closed it", func() bool { return l.flow.look() != peekNothing })
		l.keep(time.Now())
	}
	for range 3 {
		c.send(get("/next"))
		c.want(200, "/next")
	}
	f.wantClients(1)
	f.wantNothing()
	eventually(t, "all of them are closed", func() bool { return e.conns.Load() <= 2 })
}

// The end of a request that a cell takes slowly follows while it answers already.
func TestLoopSendsRestOfRequestThatIsAnsweredEarly(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.rawCell("", func(c net.Conn) {
		br := bufio.NewReaderSize(c, 16)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if req.Method == "GET" {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
				continue
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", req.ContentLength)
			time.Sleep(5 * time.Millisecond)
			io.Copy(c, req.Body)
		}
	}))
	c := f.joined()
	body := strings.Repeat("0123456789abcdef", 4<<10-64)
	for range 5 {
		c.send(fmt.Sprintf("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		c.want(200, body)
	}
	f.wantClients(1)
	f.wantNothing()
}

// A connection whose requests go to a cell behind TLS stays with its goroutine: to come
// and go with each request would cost more than loops save.
func TestLoopLeavesCellsBehindTLSToGoroutines(t *testing.T) {
	ca := newAuthority(t)
	f := newLoopRig(t, 1, Config{TLS: TLS{Roots: ca.pool}}, nil)
	f.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, false, func(w http.ResponseWriter, req *http.Request) {
		io.WriteString(w, req.URL.Path)
	}))
	c := f.raw()
	for range 10 {
		c.send(get("/secure"))
		c.want(200, "/secure")
	}
	if n := f.stepped.Load(); n != 1 {
		t.Errorf("a loop has begun with %d requests", n)
	}
	f.use(f.pathCell(nil))
	for range 3 {
		c.send(get("/clear"))
		c.want(200, "/clear")
	}
	f.wantClients(1)
	f.wantNothing()
}
