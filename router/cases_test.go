package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/routemap"
)

// everyWay runs f with a router by each way, and with clients that have had an
// answer before, so that their connections are where the server has those that
// are simple.
func everyWay(t *testing.T, config func(*Config), with func(*routemap.Content), f func(t *testing.T, c *conformer)) {
	t.Helper()
	if ownPath {
		t.Skip("it goes by every way itself")
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			c := newConformer(t, w, config, with)
			defer c.close()
			f(t, c)
		})
	}
}

// patient gives cells and clients more time than a busy machine takes from them.
func patient(c *Config) {
	c.Cells.Timeouts = Timeouts{FirstByte: 20 * time.Second, ClientBody: 20 * time.Second}
	c.Grace = 300 * time.Millisecond
	c.StopWait = -1
}

// serve makes cell number i serve h.
func (c *conformer) serve(i int, h http.HandlerFunc) {
	l := c.listen(fmt.Sprintf("10.0.0.%d:80", i))
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	c.end = append(c.end, func() { srv.Close(); <-done })
}

// serveConns makes cell number i serve each connection with f.
func (c *conformer) serveConns(i int, f func(net.Conn)) {
	l := c.listen(fmt.Sprintf("10.0.0.%d:80", i))
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			serving.Go(func() { defer conn.Close(); f(conn) })
		}
	})
	c.end = append(c.end, func() {
		l.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
}

// A caller is a connection of a client.
type caller struct {
	net.Conn
	t    *testing.T
	br   *bufio.Reader
	last bool // the latest answer says that the connection ends
}

// call connects, and has requests for tenant answered before it returns if
// there is a tenant.
func (c *conformer) call(t *testing.T, tenant string) *caller {
	t.Helper()
	conn, err := c.dial(context.Background(), "tcp", "front:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	k := &caller{Conn: conn, t: t, br: bufio.NewReader(conn)}
	if tenant != "" {
		for range 3 {
			k.send("GET /first HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: %s\r\n\r\n", tenant)
			if status, body := k.answer("GET"); status != 200 {
				t.Fatalf("at first: %d %s", status, body)
			}
		}
	}
	return k
}

func (k *caller) send(format string, args ...any) {
	k.t.Helper()
	if _, err := fmt.Fprintf(k, format, args...); err != nil {
		k.t.Error(err)
	}
}

// answer reads one answer to a request of that method, after interim ones. The
// status of one that breaks off is negative; 0 is none.
func (k *caller) answer(method string) (status int, body string) {
	k.t.Helper()
	for {
		res, err := http.ReadResponse(k.br, &http.Request{Method: method})
		if err != nil {
			return 0, err.Error()
		}
		if res.StatusCode < 200 && res.StatusCode != 101 {
			continue
		}
		if res.StatusCode == 101 {
			return 101, ""
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return -res.StatusCode, string(b)
		}
		k.last = res.Close
		return res.StatusCode, string(b)
	}
}

// closeWrite ends what the client sends.
func (k *caller) closeWrite() {
	k.t.Helper()
	if err := k.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		k.t.Error(err)
	}
}

// first answers what a caller asks at first, and has h serve all else.
func first(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			io.WriteString(w, "first")
			return
		}
		h(w, r)
	}
}

// Path, query, repeated fields, body and trailers arrive as they were sent.
func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	everyWay(t, patient, pinned("acme"), func(t *testing.T, c *conformer) {
		heads := make(chan string, 10)
		c.serveConns(1, func(conn net.Conn) {
			for br := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return
				}
				heads <- fmt.Sprintf("%s %s %s|%q|%s|%s", req.Method, req.RequestURI, req.Proto, req.Header["X-Twice"], body, req.Trailer.Get("X-Sum"))
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		k := c.call(t, "acme")
		for range 3 {
			<-heads
		}
		const target = `/a%2Fb//c/../d;x=1/%7E%20?q=%41&empty=&=&q=a+b;c[]=|`
		k.send("GET %s HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nX-Twice: 1\r\nX-Twice: 2\r\n\r\n", target)
		if status, _ := k.answer("GET"); status != 200 {
			t.Errorf("status %d", status)
		}
		if got, want := <-heads, "GET "+target+` HTTP/1.1|["1" "2"]||`; got != want {
			t.Errorf("the cell got %s, want %s", got, want)
		}
		k.send("POST %s HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n", target)
		if status, _ := k.answer("POST"); status != 200 {
			t.Errorf("status %d", status)
		}
		if got, want := <-heads, "POST "+target+` HTTP/1.1|[]|abcde|5`; got != want {
			t.Errorf("the cell got %s, want %s", got, want)
		}
	})
}

// A body that waits for a 100 gets the cell's, and events come one by one, on a
// connection that was simple until then.
func TestConnectionsThatWereSimpleCanDoMore(t *testing.T) {
	everyWay(t, patient, pinned("acme"), func(t *testing.T, c *conformer) {
		more := make(chan struct{})
		c.serve(1, first(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/events":
				for range 3 {
					io.WriteString(w, "event\n")
					http.NewResponseController(w).Flush()
					<-more
				}
			case "/t":
				alike.Echo(w, r)
			default:
				io.Copy(w, r.Body)
			}
		}))
		k := c.call(t, "acme")
		k.send("POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		if line, err := k.br.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		k.br.ReadString('\n')
		k.send("hello")
		if status, body := k.answer("POST"); status != 200 || body != "hello" {
			t.Errorf("got %d %q", status, body)
		}
		k.send("GET /events HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
		res, err := http.ReadResponse(k.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewReader(res.Body)
		for range 3 {
			if line, err := events.ReadString('\n'); err != nil || line != "event\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			more <- struct{}{}
		}
		if _, err := io.Copy(io.Discard, events); err != nil {
			t.Error(err)
		}
		k.send("GET /t HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if status, _ := k.answer("GET"); status != 101 || !alive(k, k.br) {
			t.Errorf("the tunnel: status %d", status)
		}
	})
}

// With one endpoint that is well among many that are not, no request fails.
func TestDeadEndpointsCostNoRequest(t *testing.T) {
	more := func(c *Config) { patient(c); c.Cells.Breaker.Connects = 100 }
	dead := func(c *routemap.Content) {
		pinned("acme")(c)
		c.Cells[0].Endpoints = []string{"http://10.0.0.91:80", "http://10.0.0.92:80", "http://10.0.0.1:80"}
	}
	everyWay(t, more, nil, func(t *testing.T, c *conformer) {
		var served atomic.Int64
		c.serve(1, first(func(w http.ResponseWriter, r *http.Request) { served.Add(1); io.Copy(w, r.Body) }))
		m := fleet(4, func(m *routemap.Content) {
			for i := range m.Cells {
				m.Cells[i].Endpoints = []string{fmt.Sprintf("http://10.0.0.%d:80", i+1)}
			}
			dead(m)
		})
		if err := c.rt.Swap(build(t, m)); err != nil {
			t.Fatal(err)
		}
		k := c.call(t, "acme")
		for i := range 40 {
			k.send("POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 2\r\n\r\nhi")
			if status, body := k.answer("POST"); status != 200 || body != "hi" {
				t.Fatalf("request %d: %d %q", i, status, body)
			}
		}
		if served.Load() != 40 {
			t.Errorf("served %d times", served.Load())
		}
	})
}

// A request that may have run is not sent again, to its cell or another. A safe
// one is, if the cell had closed the connection.
func TestOnlySafeRequestsAreSentAgain(t *testing.T) {
	everyWay(t, patient, pinned("acme", "zenith"), func(t *testing.T, c *conformer) {
		var posts, gets, others atomic.Int64
		c.serveConns(1, func(conn net.Conn) {
			for br, n := bufio.NewReader(conn), 0; ; n++ {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				switch {
				case req.Method == "POST":
					io.Copy(io.Discard, req.Body)
					posts.Add(1)
					return // it has run, and says nothing
				case req.URL.Path == "/once" && n > 0:
					return // on a used connection only
				case req.URL.Path == "/once":
					gets.Add(1)
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		c.serve(2, func(http.ResponseWriter, *http.Request) { others.Add(1) })
		for range 5 {
			k := c.call(t, "acme")
			k.send("POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 2\r\n\r\nhi")
			if status, body := k.answer("POST"); status != 502 || !strings.Contains(body, "cell_protocol_error") {
				t.Errorf("the POST: %d %s", status, body)
			}
			k = c.call(t, "acme")
			k.send("GET /once HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
			if status, body := k.answer("GET"); status != 200 || body != "ok" {
				t.Errorf("the GET: %d %s", status, body)
			}
		}
		if posts.Load() != 5 || gets.Load() != 5 || others.Load() != 0 {
			t.Errorf("%d POSTs and %d GETs ran, want 5 each; the other cell got %d requests", posts.Load(), gets.Load(), others.Load())
		}
	})
}

// While one cell hangs, another one's requests go well, on connections that the
// two share the server's goroutines with.
func TestHungCellLeavesOthersAlone(t *testing.T) {
	few := func(c *Config) { patient(c); c.Cells.Limits = Limits{InFlight: 20, Pending: 20} }
	everyWay(t, few, pinned("acme", "zenith"), func(t *testing.T, c *conformer) {
		release := make(chan struct{})
		c.serve(1, first(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		c.serve(2, first(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }))
		var hung []*caller
		for range 60 {
			hung = append(hung, c.call(t, "acme"))
		}
		for _, k := range hung {
			k.send("GET /hang HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				k := c.call(t, "zenith")
				for i := range 100 {
					k.send("GET /%d HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: zenith\r\n\r\n", i)
					if status, body := k.answer("GET"); status != 200 || body != fmt.Sprintf("/%d", i) {
						t.Errorf("request %d: %d %s", i, status, body)
					}
				}
			})
		}
		all.Wait()
		// All but those that the cell has are refused, some after a wait.
		refused := make(chan int, len(hung))
		for _, k := range hung {
			all.Go(func() {
				if status, _ := k.answer("GET"); status == 503 {
					refused <- status
				}
			})
		}
		for range 40 {
			<-refused
		}
		close(release)
		all.Wait()
		if len(refused) > 0 {
			t.Errorf("%d more were refused than the limit asks for", len(refused))
		}
	})
}

// What is under way for a key that moves may end within the grace. What does not
// is broken off, and nothing of it comes to the new cell.
func TestWhatIsUnderWayWhenAKeyMoves(t *testing.T) {
	everyWay(t, patient, pinned("acme", "zenith"), func(t *testing.T, c *conformer) {
		var others atomic.Int64
		old := first(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/t":
				alike.Echo(w, r)
			case "/wait":
				<-r.Context().Done()
			default:
				n, err := io.Copy(io.Discard, r.Body)
				if err == nil {
					fmt.Fprintf(w, "%d bytes", n)
				}
			}
		})
		c.serve(1, old)
		c.serve(2, func(w http.ResponseWriter, r *http.Request) {
			others.Add(1)
			io.Copy(w, r.Body)
		})
		const size = 1 << 20
		half := strings.Repeat("x", size/2)
		upload := func() *caller {
			k := c.call(t, "acme")
			k.send("PUT /up HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: %d\r\n\r\n%s", size, half)
			return k
		}
		ends, stays, waits, tunnel := upload(), upload(), c.call(t, "acme"), c.call(t, "acme")
		waits.send("GET /wait HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
		tunnel.send("GET /t HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if status, _ := tunnel.answer("GET"); status != 101 || !alive(tunnel, tunnel.br) {
			t.Fatalf("the tunnel: %d", status)
		}
		for c.rt.Stats().InFlight < 3 {
			time.Sleep(time.Millisecond)
		}
		c.swap(func(m *routemap.Content) {
			m.Entries = []cellway.Entry{{Key: "acme", Cell: m.Cells[1].ID, Epoch: 2}}
		})
		ends.send("%s", half)
		if status, body := ends.answer("PUT"); status != 200 || body != fmt.Sprintf("%d bytes", size) {
			t.Errorf("the upload that ends within the grace: %d %s", status, body)
		}
		if others.Load() != 0 {
			t.Errorf("the new cell has got %d requests", others.Load())
		}
		if status, body := stays.answer("PUT"); status != 502 || !strings.Contains(body, "cell_protocol_error") {
			t.Errorf("the upload that outlasts the grace: %d %s", status, body)
		}
		if status, body := waits.answer("GET"); status != 502 {
			t.Errorf("the request that outlasts the grace: %d %s", status, body)
		}
		if _, err := tunnel.br.ReadByte(); err == nil {
			t.Error("the tunnel still carries something")
		}
		if others.Load() != 0 {
			t.Errorf("the new cell has got %d requests of what was under way", others.Load())
		}
		if ends.last {
			ends = c.call(t, "")
		}
		// A connection that stood goes on with the new cell.
		ends.send("POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 3\r\n\r\nnew")
		if status, body := ends.answer("POST"); status != 200 || body != "new" || others.Load() != 1 {
			t.Errorf("after the move: %d %s", status, body)
		}
		for end := time.Now().Add(5 * time.Second); c.rt.Stats().Ended != 3 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // it is counted after the client has heard of it
		}
		if s := c.rt.Stats(); s.Ended != 3 {
			t.Errorf("%d were ended, want 3", s.Ended)
		}
	})
}

// A router that is told to stop is not ready at once, serves on meanwhile, lets
// what is under way end, says goodbye on connections, and tells tunnels.
func TestStopsInOrder(t *testing.T) {
	slow := func(c *Config) { patient(c); c.StopWait, c.StopSpread = 300*time.Millisecond, 50*time.Millisecond }
	everyWay(t, slow, pinned("acme"), func(t *testing.T, c *conformer) {
		release := make(chan struct{})
		c.serve(1, first(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/t" {
				alike.Echo(w, r)
				return
			}
			<-release
			io.WriteString(w, "done")
		}))
		idle, works, tunnel := c.call(t, "acme"), c.call(t, "acme"), c.call(t, "acme")
		works.send("GET /work HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
		tunnel.send("GET /t HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if status, _ := tunnel.answer("GET"); status != 101 {
			t.Fatalf("the tunnel: %d", status)
		}
		for c.rt.Stats().InFlight < 1 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- c.rt.Stop(ctx, c.srv) }()
		for c.rt.Ready() == nil {
			time.Sleep(time.Millisecond)
		}
		if !errors.Is(c.rt.Ready(), cellway.ErrNotReady) {
			t.Errorf("Ready = %v", c.rt.Ready())
		}
		// While load balancers take notice, all goes on.
		idle.send("GET /first HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
		if status, _ := idle.answer("GET"); status != 200 {
			t.Errorf("after readiness has failed: %d", status)
		}
		if !alive(tunnel, tunnel.br) {
			t.Error("the tunnel was ended at once")
		}
		// Then idle connections and tunnels end, and what is under way doesn't.
		if _, err := idle.br.ReadByte(); err != io.EOF {
			t.Errorf("the idle connection: %v", err)
		}
		if _, err := tunnel.br.ReadByte(); err == nil {
			t.Error("the tunnel still carries something")
		}
		select {
		case err := <-stopped:
			t.Fatalf("stopped with a request under way: %v", err)
		default:
		}
		close(release)
		res, err := http.ReadResponse(works.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "done" || !res.Close {
			t.Errorf("what was under way: %q, %v, closes %v", body, err, res.Close)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// A client that sends no more than its request gets the answer; so do several
// requests. What it began and did not end is no request.
func TestClientsThatCloseTheirHalf(t *testing.T) {
	everyWay(t, patient, pinned("acme"), func(t *testing.T, c *conformer) {
		if !c.way.loopback {
			t.Skip("for net/http such a client has gone, and in memory there is no half")
		}
		var served atomic.Int64
		c.serve(1, first(func(w http.ResponseWriter, r *http.Request) {
			if b, err := io.ReadAll(r.Body); err == nil {
				served.Add(1)
				time.Sleep(20 * time.Millisecond) // so that the end of the client's half is there first
				fmt.Fprintf(w, "%s %s", r.URL.Path, b)
			}
		}))
		for _, before := range []string{"", "acme"} {
			k := c.call(t, before)
			k.send("POST /1 HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 2\r\n\r\nhi")
			k.closeWrite()
			if status, body := k.answer("POST"); status != 200 || body != "/1 hi" {
				t.Errorf("one request: %d %q", status, body)
			}
			if _, err := k.br.ReadByte(); err != io.EOF {
				t.Errorf("after it: %v", err)
			}
			k = c.call(t, before)
			for i := range 5 {
				k.send("GET /%d HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n", i)
			}
			k.closeWrite()
			for i := range 5 {
				if status, body := k.answer("GET"); status != 200 || body != fmt.Sprintf("/%d ", i) {
					t.Errorf("request %d: %d %q", i, status, body)
				}
			}
			if _, err := k.br.ReadByte(); err != io.EOF {
				t.Errorf("after all: %v", err)
			}
		}
		was := served.Load()
		for _, cut := range []string{
			"POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 3\r\n\r\nab",
			"POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
		} {
			for _, before := range []string{"", "acme"} {
				k := c.call(t, before)
				k.send("%s", cut)
				k.closeWrite()
				if status, body := k.answer("POST"); status >= 200 && status < 400 {
					t.Errorf("%q is answered %d %q", cut, status, body)
				}
			}
		}
		if served.Load() != was {
			t.Errorf("%d of what was no request was served", served.Load()-was)
		}
		for c.rt.Stats().InFlight > 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// However requests of all kinds lie in one stream, and in whatever pieces it
// comes, answers come in order, each to its request.
func TestMixedPipelinesAreAnsweredInOrder(t *testing.T) {
	everyWay(t, patient, pinned("acme", "zenith"), func(t *testing.T, c *conformer) {
		echo := func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			answer := fmt.Sprintf("%s %s %d:", r.Method, r.URL.Path, len(b))
			switch {
			case strings.HasPrefix(r.URL.Path, "/large"):
				answer += strings.Repeat("y", 200_000)
			case strings.HasPrefix(r.URL.Path, "/chunks"):
				io.WriteString(w, answer)
				http.NewResponseController(w).Flush()
				answer = "more"
			case strings.HasPrefix(r.URL.Path, "/none"):
				w.WriteHeader(http.StatusNoContent)
				return
			}
			io.WriteString(w, answer)
		}
		c.serve(1, first(echo))
		c.serve(2, first(echo))
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		for round := range 6 {
			type want struct {
				method string
				status int
				body   string
				sent   []byte
			}
			var wants []want
			for i := range 40 {
				tenant := []string{"acme", "zenith"}[random.IntN(2)]
				path := fmt.Sprintf("/%s/%d", []string{"small", "small", "small", "large", "chunks", "none"}[random.IntN(6)], i)
				method, status, said := "GET", 200, ""
				body := strings.Repeat("b", []int{0, 1, 100, 100_000}[random.IntN(4)])
				fields := "X-Tenant-Id: " + tenant + "\r\n"
				switch random.IntN(6) {
				case 0:
					method = "HEAD"
				case 1:
					method = "POST"
				case 2:
					method = "PUT"
				case 3:
					fields, status = "", 400 // the router's own
				}
				sends := method == "POST" || method == "PUT"
				if !sends {
					body = ""
				}
				switch {
				case status != 200:
				case strings.HasPrefix(path, "/none"):
					status = 204
				case method == "HEAD":
				default:
					said = fmt.Sprintf("%s %s %d:", method, path, len(body))
					if strings.HasPrefix(path, "/large") {
						said += strings.Repeat("y", 200_000)
					}
					if strings.HasPrefix(path, "/chunks") {
						said += "more"
					}
				}
				var stream bytes.Buffer
				fmt.Fprintf(&stream, "%s %s HTTP/1.1\r\nHost: a\r\n%s", method, path, fields)
				switch {
				case method == "POST":
					fmt.Fprintf(&stream, "Content-Length: %d\r\n\r\n%s", len(body), body)
				case sends:
					stream.WriteString("Transfer-Encoding: chunked\r\n\r\n")
					w := httputil.NewChunkedWriter(&stream)
					io.WriteString(w, body)
					w.Close()
					stream.WriteString("\r\n")
				default:
					stream.WriteString("\r\n")
				}
				wants = append(wants, want{method, status, said, stream.Bytes()})
			}
			for i := 0; i < len(wants); {
				k := c.call(t, []string{"", "acme"}[round%2])
				var all []byte
				for _, want := range wants[i:] {
					all = append(all, want.sent...)
				}
				piece := random.IntN(20_000) + 1
				var sending sync.WaitGroup
				sending.Go(func() {
					for part := range slices.Chunk(all, piece) {
						if _, err := k.Write(part); err != nil {
							return // the answers tell
						}
					}
				})
				for k.last = false; i < len(wants) && !k.last; i++ { // it may be closed after any answer that says so
					want := wants[i]
					status, body := k.answer(want.method)
					if status != want.status || status != 400 && body != want.body {
						t.Fatalf("seed %d, round %d, answer %d to %s: %d with %d bytes %.60q, want %d with %d bytes %.60q",
							seed, round, i, want.method, status, len(body), body, want.status, len(want.body), want.body)
					}
				}
				k.Close()
				sending.Wait()
			}
		}
	})
}
