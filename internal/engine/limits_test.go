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

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// A queued request gets the place of one that ends, and one whose client left
// gives its own away.
func TestQueueIsServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{limit: 1, pending: 3, wait: time.Minute}
		if err := g.enter(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var order []int
		gone, leave := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				ctx := t.Context()
				if i == 1 {
					ctx = gone
				}
				if err := g.enter(ctx, 0); err != nil {
					if i != 1 || !errors.Is(err, errDone) {
						t.Errorf("%d: %v", i, err)
					}
					return
				}
				order = append(order, i)
				g.leave()
			})
			synctest.Wait()
		}
		if err := g.enter(t.Context(), 0); err != errFull {
			t.Errorf("a fourth waiter: %v", err)
		}
		leave(errDone)
		synctest.Wait()
		g.leave()
		wg.Wait()
		if fmt.Sprint(order) != "[0 2]" {
			t.Errorf("served in order %v", order)
		}
		if in, waiting := g.load(); in != 0 || waiting != 0 {
			t.Errorf("%d in, %d waiting", in, waiting)
		}
	})
}

// Time limits of a request, each with its own answer.
func TestTimeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{
			Timeouts: Timeouts{Connect: 2 * time.Second, FirstByte: 5 * time.Second, Idle: 7 * time.Second, Whole: 60 * time.Second},
			Breaker:  Breaker{Connects: 1000},
		})
		r.pools.cfg.Dial = func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
			return func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == "10.0.0.9:80" { // a host that swallows packets
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return dial(ctx, network, addr)
			}
		}(r.pools.cfg.Dial)
		cell := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			rc := http.NewResponseController(w)
			switch req.URL.Path {
			case "/late":
				time.Sleep(6 * time.Second)
			case "/stall":
				io.WriteString(w, "half")
				rc.Flush()
				<-req.Context().Done()
			case "/endless":
				for req.Context().Err() == nil {
					io.WriteString(w, "tick")
					rc.Flush()
					time.Sleep(time.Second)
				}
			}
		})
		c := r.client(false)
		ask := func(path string) (status int, body string, took time.Duration, err error) {
			start := time.Now()
			resp, err := c.Get(r.url(path))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			return resp.StatusCode, string(b), time.Since(start), err
		}
		r.use("http://10.0.0.9:80")
		if status, _, took, _ := ask("/"); status != 502 || took != 2*time.Second {
			t.Errorf("no connection: %d after %v", status, took)
		}
		r.use("http://10.0.0.9:80", cell)
		if status, _, took, _ := ask("/"); status != 200 || took > 2*time.Second {
			t.Errorf("no connection to one endpoint: %d after %v", status, took)
		}
		r.use(cell)
		if status, _, took, _ := ask("/late"); status != 504 || took != 5*time.Second || r.last().Code != cellway.CellTimeout {
			t.Errorf("no head: %d after %v, %+v", status, took, r.last())
		}
		if status, b, took, err := ask("/stall"); status != 200 || b != "half" || err == nil || took != 7*time.Second || r.last().Code != cellway.CellTimeout {
			t.Errorf("a stalled answer: %d %q %v after %v, %+v", status, b, err, took, r.last())
		}
		if status, _, took, err := ask("/endless"); status != 200 || err == nil || took != 60*time.Second {
			t.Errorf("an endless answer: %d %v after %v, %+v", status, err, took, r.last())
		}
		time.Sleep(10 * time.Second)
	})
}

// A cell that takes no more of a body is late, however long the body.
func TestCellThatStopsReadingTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{FirstByte: 5 * time.Second}})
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			io.ReadFull(c, make([]byte, 5000))
			time.Sleep(time.Minute)
		}))
		start := time.Now()
		c := r.dial()
		go io.Copy(c, io.MultiReader(strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"), zeros{}))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 504 || time.Since(start) != 5*time.Second {
			t.Errorf("%v %v after %v", resp, err, time.Since(start))
		}
		c.Close()
		time.Sleep(time.Minute)
	})
}

// A client that reads slowly holds the cell back and costs no memory; one that
// stops reading is let go.
func TestSlowReaderHoldsTheCellBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{Idle: 20 * time.Second}})
		var sent atomic.Int64
		ended := make(chan error, 1)
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			readHead(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
			for {
				n, err := c.Write(make([]byte, 10000))
				sent.Add(int64(n))
				if err != nil {
					ended <- err
					return
				}
			}
		}))
		c := r.dial()
		io.WriteString(c, ok11)
		read := 0
		for range 20 {
			n, err := c.Read(make([]byte, 10000))
			if err != nil {
				t.Fatal(err)
			}
			read += n
			time.Sleep(10 * time.Second)
			if ahead := sent.Load() - int64(read); ahead > 200<<10 {
				t.Fatalf("the router holds %d bytes for a slow client", ahead)
			}
		}
		start := time.Now()
		<-ended
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("a client that does not read was let go after %v", took)
		}
		synctest.Wait()
		if rep := r.last(); rep.Code != cellway.ClientTimeout || !rep.HeadSent {
			t.Errorf("report %+v", rep)
		}
		c.Close()
	})
}

// The rest of a body that a handler leaves unread may follow soon, and is never
// taken for a request.
func TestUnreadBodyIsNeverARequest(t *testing.T) {
	onlyNetHTTP(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		var paths []string
		r.handle = func(w http.ResponseWriter, req *http.Request) {
			paths = append(paths, req.URL.Path)
			w.WriteHeader(404)
		}
		post := "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 39\r\n\r\n"
		inner := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n....."[:39]
		expect404 := func(br *bufio.Reader, after time.Duration) *http.Response {
			t.Helper()
			start := time.Now()
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != 404 || time.Since(start) != after {
				t.Fatalf("%v %v after %v, want after %v", resp, err, time.Since(start), after)
			}
			return resp
		}
		// It comes in time: the connection goes on.
		c := r.dial()
		br := bufio.NewReader(c)
		io.WriteString(c, post)
		go func() {
			time.Sleep(time.Second)
			io.WriteString(c, inner+ok11)
		}()
		expect404(br, time.Second)
		expect404(br, 0)
		c.Close()
		// It comes late: the connection is closed.
		c = r.dial()
		br = bufio.NewReader(c)
		io.WriteString(c, post+inner[:4])
		go func() {
			time.Sleep(drainTime + 100*time.Millisecond)
			io.WriteString(c, inner[4:]+ok11)
		}()
		if resp := expect404(br, drainTime); !resp.Close {
			t.Error("the connection is said to go on")
		}
		if b, err := br.ReadByte(); err == nil {
			t.Errorf("read %q after the answer", b)
		}
		c.Close()
		time.Sleep(time.Second)
		if got := fmt.Sprint(paths); got != "[/a /ok /a]" {
			t.Errorf("served %v", got)
		}
	})
}

// A server that shuts down lets requests end and closes idle connections.
func TestShutdownWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(memnet.Net)
		k := NewChecker(CheckerConfig{})
		s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/slow" {
				time.Sleep(10 * time.Second)
			}
		})}
		k.Install(s)
		go s.Serve(k.Listen(n.Listen("front")))
		idle, busy := dialFront(t, n), dialFront(t, n)
		io.WriteString(idle, ok11)
		ibr := bufio.NewReader(idle)
		if _, err := http.ReadResponse(ibr, nil); err != nil {
			t.Fatal(err)
		}
		io.WriteString(busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(t.Context()) }()
		start := time.Now()
		if _, err := ibr.ReadByte(); err != io.EOF || time.Since(start) > time.Second {
			t.Errorf("the idle connection: %v after %v", err, time.Since(start))
		}
		resp, err := http.ReadResponse(bufio.NewReader(busy), nil)
		if err != nil || resp.StatusCode != 200 || !resp.Close {
			t.Errorf("the request under way: %v %v", resp, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNewRefusesSenselessLimits(t *testing.T) {
	for _, cfg := range []Config{
		{Limits: Limits{InFlight: -1}}, {Breaker: Breaker{Backoff: -1}}, {Attempts: -1}, {TLS: TLS{Peer: 9}},
	} {
		if _, err := New(cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
