package router

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/alike"
)

// stopped runs Stop with time for all, and returns what it said and when.
func (b *bench) stopped(limit time.Duration, servers ...Server) <-chan error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		defer cancel()
		done <- b.rt.Stop(ctx, servers...)
	}()
	synctest.Wait()
	return done
}

func TestStopFailsReadinessFirstAndServesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait = 10 * time.Second })
		b.serve(1, echo(1))
		front, client := b.front(), b.client()
		start := time.Now()
		done := b.stopped(time.Minute, front)
		if err := b.rt.Ready(); !errors.Is(err, cellway.ErrNotReady) {
			t.Errorf("Ready = %v", err)
		}
		for range 3 {
			res, err := client.Do(acmes("/"))
			if err != nil || res.StatusCode != 200 || res.Close {
				t.Fatalf("while load balancers take notice: %v, %v", res, err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			time.Sleep(3 * time.Second)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got < 10*time.Second || got > 11*time.Second {
			t.Errorf("stopped after %v, want 10 s", got)
		}
		if _, err := client.Do(acmes("/")); err == nil {
			t.Error("served after Stop")
		}
	})
}

func TestStopLetsRequestsEndAndClosesTheirConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait = -1 })
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { time.Sleep(20 * time.Second); io.WriteString(w, "done") })
		front := b.front()
		var wg sync.WaitGroup
		wg.Go(func() {
			res, err := b.client().Do(acmes("/"))
			if err != nil {
				t.Error(err)
				return
			}
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "done" || !res.Close {
				t.Errorf("got %q, %v, connection closes: %v", body, err, res.Close)
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := <-b.stopped(time.Minute, front); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if got := time.Since(start); got < 20*time.Second || got > 21*time.Second {
			t.Errorf("stopped after %v, want 20 s", got)
		}
	})
}

func TestStopTellsTunnelsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait, c.StopSpread = -1, 10*time.Second })
		b.serve(1, alike.Echo)
		front := b.front()
		const n = 40
		for range n {
			c, br := b.dial("acme")
			defer c.Close()
			go io.Copy(io.Discard, br)
		}
		done := b.stopped(time.Minute, front)
		time.Sleep(5 * time.Second)
		if open := b.rt.Stats().Tunnels; open < n/4 || open > 3*n/4 {
			t.Errorf("%d of %d tunnels after half of the time", open, n)
		}
		start := time.Now()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got > 6*time.Second {
			t.Errorf("took %v more", got)
		}
		if s := b.rt.Stats(); s.Tunnels != 0 || s.Ended != n || !s.Stopping {
			t.Errorf("figures %+v", s)
		}
	})
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait = time.Second })
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		front := b.front()
		var wg sync.WaitGroup
		wg.Go(func() {
			res, err := b.client().Do(acmes("/"))
			if err != nil {
				t.Error(err)
				return
			}
			wantProblem(t, res, cellway.CellProtocol) // it may have run
		})
		synctest.Wait()
		start := time.Now()
		if err := <-b.stopped(5*time.Second, front); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop = %v, want that it cut something off", err)
		}
		if got := time.Since(start); got < 5*time.Second || got > 6*time.Second {
			t.Errorf("stopped after %v, want 5 s", got)
		}
		wg.Wait()
	})
}

func TestStopTellsHTTP2ConnectionsToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait = -1 })
		release := make(chan struct{})
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { <-release; io.WriteString(w, "done") })
		front := b.front()
		tr := &http.Transport{DialContext: b.net.DialContext, Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		get := func() (string, error) {
			res, err := tr.RoundTrip(acmes("/"))
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			return res.Proto + " " + string(body), err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := get(); got != "HTTP/2.0 done" {
				t.Errorf("what was under way: %q, %v", got, err)
			}
		})
		synctest.Wait()
		done := b.stopped(time.Minute, front)
		// The connection has been told: a new request needs a new one, and there is none.
		if got, err := get(); err == nil {
			t.Errorf("the old connection took another request: %q", got)
		}
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// An Upgrade field alone makes no tunnel: Java's client sends one with every
// request, and a cell may answer what it likes.
func TestStopLetsRequestsEndThatCarryAnUpgrade(t *testing.T) {
	for name, fields := range map[string]string{
		"h2c":       "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n",
		"bare":      "Upgrade: websocket\r\n",
		"websocket": "Connection: Upgrade\r\nUpgrade: websocket\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, func(c *Config) { c.StopWait = -1 })
				b.serve(1, func(w http.ResponseWriter, r *http.Request) { time.Sleep(20 * time.Second); echo(1)(w, r) })
				front := b.front()
				c, err := b.net.DialContext(t.Context(), "tcp", "front:80")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				io.WriteString(c, "POST / HTTP/1.1\r\nHost: front\r\nX-Tenant-Id: acme\r\nContent-Length: 3\r\n"+fields+"\r\ntea")
				synctest.Wait()
				stopped := b.stopped(time.Minute, front)
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(res.Body); res.StatusCode != 200 || err != nil || string(body) != "cell 1: tea" {
					t.Errorf("got %d %q, %v", res.StatusCode, body, err)
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What becomes a tunnel after all others were ended is ended as well.
func TestStopEndsTunnelsThatBeginLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait, c.StopSpread = -1, -1 })
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { time.Sleep(5 * time.Second); alike.Echo(w, r) })
		front := b.front()
		var wg sync.WaitGroup
		wg.Go(func() {
			c, br := b.dial("acme")
			defer c.Close()
			if _, err := br.ReadByte(); err == nil {
				t.Error("the tunnel carries a byte that nobody sent")
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := <-b.stopped(time.Minute, front); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got < 5*time.Second || got > 6*time.Second {
			t.Errorf("stopped after %v, want 5 s", got)
		}
		wg.Wait()
	})
}

// A code that means that the request was not sent must be true.
func TestRequestEndedByTheRouterIsNotCalledUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *Config) {
			c.Grace = -1
			c.Cells.Limits = Limits{InFlight: 1, Pending: 1, QueueWait: time.Minute}
		}, pinned("acme"))
		var ran atomic.Int64
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { ran.Add(1); <-r.Context().Done() })
		sent, queued := make(chan *http.Response, 1), make(chan *http.Response, 1)
		go func() { sent <- b.ask(request("POST", "/", "acme")).Result() }()
		synctest.Wait()
		go func() { queued <- b.ask(request("POST", "/", "acme")).Result() }()
		synctest.Wait()
		b.swap(b.content(2, pinned("other", "acme")))
		for name, got := range map[string]*http.Response{"sent": <-sent, "queued": <-queued} {
			want := cellway.CellDrained
			if name == "sent" {
				want = cellway.CellProtocol
			}
			t.Log(name)
			wantProblem(t, got, want)
		}
		if ran.Load() != 1 {
			t.Errorf("%d ran, want 1", ran.Load())
		}
	})
}
