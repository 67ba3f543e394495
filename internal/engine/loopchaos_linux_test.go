package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// Clients and cells that do whatever comes to their minds leave nothing behind
// in the loops: no answer is another's, none is short, and no place, goroutine
// or descriptor is left.
func TestLoopChaosLeavesNothingBehind(t *testing.T) {
	if loops == 0 {
		t.Skip("it is for the pass with event loops")
	}
	length := time.Second
	if testing.Short() {
		length = 300 * time.Millisecond
	}
	fds, goroutines := descriptors(t), runtime.NumGoroutine()
	t.Run("run", func(t *testing.T) { loopChaos(t, length) })
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	eventually(t, "no descriptor is left", func() bool { return descriptors(t) <= fds+2 })
}

func loopChaos(t *testing.T, length time.Duration) {
	f := newLoopRig(t, 2, Config{
		Limits:   Limits{InFlight: 20, Pending: 10, QueueWait: 20 * time.Millisecond, IdleConns: 8},
		Timeouts: Timeouts{FirstByte: 150 * time.Millisecond, ClientBody: 150 * time.Millisecond, Idle: 200 * time.Millisecond, IdleConn: 100 * time.Millisecond},
		Breaker:  Breaker{Backoff: 5 * time.Millisecond, MaxBackoff: 10 * time.Millisecond},
		MaxConns: 30,
	}, func(s *ServerConfig, k *CheckerConfig) {
		s.AnswerTimeout, k.IdleTimeout, k.HeadTimeout = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	})
	f.self = func(c *Call) bool {
		_, _, path, _ := c.Request()
		if !strings.HasPrefix(path, "/self") {
			return false
		}
		c.Header()
		c.Answer(200, []byte(path))
		return true
	}
	f.options = func(req *http.Request) Options {
		n := 0
		return Options{Edit: edits{
			inspect: func(int, Header) bool { n++; return n == 1 && strings.HasSuffix(req.URL.Path, "7") },
			answer: func(int, Header) {
				if strings.HasSuffix(req.URL.Path, "99") {
					panic(http.ErrAbortHandler)
				}
			},
		}}
	}
	misbehave := func(c net.Conn, req *http.Request) bool {
		p := req.URL.Path
		rnd := rand.New(rand.NewPCG(uint64(len(p)), uint64(time.Now().UnixNano())))
		pause := func() { time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond) }
		switch strings.Split(p, "/")[2] {
		case "hang":
			time.Sleep(200 * time.Millisecond)
			return false
		case "reset":
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart"[:rnd.IntN(46)])
			pause()
			c.(*net.TCPConn).SetLinger(0)
			return false
		case "toend":
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
			pause()
			fmt.Fprint(c, p)
			return false
		case "closes":
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(p), p)
			return false
		case "pieces":
			m := fmt.Sprintf("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(p), p)
			for len(m) > 0 {
				n := 1 + rnd.IntN(len(m))
				io.WriteString(c, m[:n])
				m = m[n:]
				pause()
			}
			return true
		case "big":
			b := strings.Repeat(p, 20000)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return true
		}
		fmt.Fprint(c, "garbage\r\n\r\n")
		return false
	}
	ends := []string{f.pathCell(misbehave), f.pathCell(misbehave), f.pathCell(misbehave)}
	f.use(ends[:2]...)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	var good, bad atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(3, uint64(i)))
			for ctx.Err() == nil {
				chaosClient(ctx, t, f, rnd, &good, &bad)
			}
		})
	}
	why := errors.New("swept")
	for n := 0; ctx.Err() == nil; n++ {
		f.use(ends[n%2 : n%2+2]...)
		f.s.Sweep(false, func(cellway.Key, cellway.CellID) bool { return n%5 != 0 }, why)
		if time.Since(start) > length && good.Load() >= 50 && f.ended.Load() >= 20 {
			cancel() // a busy machine takes longer
		}
		time.Sleep(7 * time.Millisecond)
	}
	wg.Wait()
	f.wantNothing()
	t.Logf("%d good, %d bad, %d sent by loops, %d ended there, %d resumed", good.Load(), bad.Load(), f.sent.Load(), f.ended.Load(), f.resumed.Load())
	if good.Load() < 50 || f.ended.Load() < 20 {
		t.Error("hardly anything was served")
	}
	if err := f.shutdown(20 * time.Second); err != nil {
		t.Errorf("shutdown: %v; %d connections", err, f.s.Connections())
	}
	f.pools.Close()
	eventually(t, "no connection to a cell is left", func() bool { return f.pools.conns.Load() == 0 })
}

// chaosClient is one connection of a client, with some requests.
func chaosClient(ctx context.Context, t *testing.T, f *loopRig, rnd *rand.Rand, good, bad *atomic.Int64) {
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &rawClient{TCPConn: conn.(*net.TCPConn), t: t}
	c.br = bufio.NewReader(conn)
	for n := 0; ctx.Err() == nil && n < 30; n++ {
		kinds := []string{"", "", "", "", "/self", "/do/toend", "/do/closes", "/do/pieces", "/do/big", "/do/reset", "/do/hang", "/do/junk"}
		path := fmt.Sprintf("%s/%d", kinds[rnd.IntN(len(kinds))], rnd.IntN(1000))
		body, want := "", path
		if strings.HasPrefix(path, "/do/big") {
			want = strings.Repeat(path, 20000)
		}
		req := get(path)
		if rnd.IntN(4) == 0 && !strings.HasPrefix(path, "/do") && !strings.HasPrefix(path, "/self") {
			body = strings.Repeat(path, 1+rnd.IntN(20000))
			req = fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
			want = body
		}
		switch rnd.IntN(40) {
		case 0: // it goes in mid-request
			io.WriteString(conn, req[:rnd.IntN(len(req))])
			return
		case 1: // it does not wait for the answer
			io.WriteString(conn, req)
			c.SetLinger(rnd.IntN(2))
			return
		case 2: // it is rude
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost : x\r\n\r\n")
		case 3: // it sends no more
			io.WriteString(conn, req)
			c.CloseWrite()
		case 4: // it stops reading for a while
			io.WriteString(conn, req)
			time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		default:
			go io.WriteString(conn, req)
		}
		res, err := http.ReadResponse(c.br, nil)
		for err == nil && res.StatusCode == 103 {
			res, err = http.ReadResponse(c.br, nil)
		}
		if err != nil {
			bad.Add(1)
			return
		}
		b, err := io.ReadAll(res.Body)
		switch {
		case err != nil || res.StatusCode != 200:
			bad.Add(1)
		case string(b) == want:
			good.Add(1)
		default:
			t.Errorf("%s: got %.80q (%d bytes), want %.80q (%d bytes)", path, b, len(b), want, len(want))
			return
		}
		if err != nil || res.Close {
			return
		}
	}
}
