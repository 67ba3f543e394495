package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many attempts there are, and whenever they begin, no answer is waited for
// beyond the timeout.
func TestTimeoutBoundsAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, func(c *Config) { c.Timeout = 4 * time.Second })
		for range 120 { // so that it is known what is usual
			r.get("acme")
		}
		for _, m := range r.mills {
			m.set(hang)
		}
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				method := []string{"GET", "POST", "PUT"}[i%3]
				res := r.do(question{method: method, key: []string{"acme", fmt.Sprint("t", i)}[i%2], body: "x"})
				wantCode(t, res, 504, HandTimeout)
				if res.took > 4600*time.Millisecond {
					t.Errorf("%s was answered after %v", method, res.took)
				}
			})
		}
		all.Wait()
	})
}

// A cell that has become slow, all of it, is waited for when the budget is spent:
// slowness must not become an outage.
func TestSlowCellIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, nil)
		for range 40 {
			for i := range 10 {
				r.get(fmt.Sprint("t", i))
			}
		}
		for _, m := range r.mills {
			m.set(fine(time.Second))
		}
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				if res := r.get(fmt.Sprint("t", i%10)); res.status != 200 {
					t.Errorf("answer %d %s after %v", res.status, res.code, res.took)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		// What is usual is learnt anew meanwhile.
		if s := r.gw.Stats(); s.Retries > 300 {
			t.Errorf("%d retries of 400 requests", s.Retries)
		}
	})
}

// An attempt that takes long is left for another one only if there is one to ask.
// Where the others of the hand are down, a late answer is the best there is.
func TestSlowAnswerIsWaitedForWhereNobodyElseIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, nil)
		for range 60 { // so that it is known what is usual
			r.get("acme")
		}
		hand := r.hand("acme")
		r.kill(hand[1].id)
		for range 20 {
			r.get("acme")
		}
		hand[0].set(fine(3 * time.Second))
		for range 20 {
			if res := r.get("acme"); res.status != 200 {
				t.Fatalf("answer %d %s after %v", res.status, res.code, res.took)
			}
		}
		// It comes back, and slowness is repaired again.
		r.start(hand[1])
		time.Sleep(time.Minute)
		for range 20 {
			r.get("acme")
		}
		if res := r.get("acme"); res.status != 200 || res.took > 2*time.Second {
			t.Errorf("answer %d after %v", res.status, res.took)
		}
	})
}

// An attempt that was left since it was slow is made again if the one that took its
// place breaks off or can't be reached: its member was well.
func TestSlowMemberIsAskedAgainIfItsSubstituteBreaks(t *testing.T) {
	for name, fails := range map[string]func(r *rig, m *mill){
		"resets":  func(_ *rig, m *mill) { m.set(reset) },
		"refuses": func(r *rig, m *mill) { r.kill(m.id) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 6, 2, func(c *Config) { c.Workers.Breaker.Connects = 1000 })
				for range 60 { // so that it is known what is usual
					r.get("acme")
				}
				hand := r.hand("acme")
				r.gw.state.Load().workers[hand[1].id].SetOut(true) // it is asked second
				hand[0].set(fine(3 * time.Second))
				fails(r, hand[1])
				r.client.CloseIdleConnections()
				if res := r.get("acme"); res.status != 200 || res.took > 5*time.Second {
					t.Errorf("answer %d %s after %v", res.status, res.code, res.took)
				}
				if res := r.do(question{method: "POST", key: "acme", body: "x"}); res.status != 200 {
					t.Errorf("POST: answer %d %s after %v", res.status, res.code, res.took)
				}
			})
		})
	}
}

// One that comes back meanwhile is asked: an attempt that hangs is not waited for to the
// end because there was nobody else when it began to be late.
func TestMemberThatComesBackTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, func(c *Config) { c.Probe = Probe{Path: "/healthz", Interval: time.Second, Rise: 1, Fall: 1} })
		for range 60 { // so that it is known what is usual
			r.get("acme")
		}
		hand := r.hand("acme")
		r.kill(hand[1].id)
		time.Sleep(5 * time.Second)
		for _, m := range hand {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if m == hand[0] && req.URL.Path != "/healthz" {
					hang(w, req)
					return
				}
				fine(10*time.Millisecond)(w, req)
			})
		}
		time.AfterFunc(time.Second, func() { r.start(hand[1]) })
		res := r.get("acme")
		if res.status != 200 || res.took < time.Second || res.took > 8*time.Second {
			t.Errorf("answer %d %s after %v", res.status, res.code, res.took)
		}
		t.Logf("answered after %v", res.took)
	})
}

// The wait for a place in a worker is part of the wait for an answer: neither it nor
// what follows it goes on beyond the timeout.
func TestTimeoutBoundsTheWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []time.Duration{1500 * time.Millisecond, 10 * time.Second} {
			r := newRig(t, 2, 2, func(c *Config) {
				c.Timeout = 2 * time.Second
				c.Workers.Limits = Limits{InFlight: 1, QueueWait: wait}
			})
			for _, m := range r.mills {
				m.set(hang)
			}
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					res := r.do(question{method: []string{"GET", "POST"}[i%2], key: fmt.Sprint("t", i), body: "x"})
					if res.took > 2600*time.Millisecond || res.code != string(HandTimeout) && res.code != string(HandSaturated) {
						t.Errorf("with a wait of %v, %d was answered %d %s after %v", wait, i, res.status, res.code, res.took)
					}
				})
			}
			all.Wait()
		}
	})
}

// The way to a worker is part of the wait for an answer, however the request came and
// whether or not it may be tried again. What goes on beyond the timeout is a connection
// that was begun before, and nothing after it.
func TestTimeoutBoundsTheWayToAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, connect = 2 * time.Second, 600 * time.Millisecond
		r := newRig(t, 4, 2, func(c *Config) {
			c.Timeout = timeout
			c.Workers.Timeouts.Connect = connect
			dial := c.Workers.Dial
			c.Workers.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				time.Sleep(connect - 50*time.Millisecond)
				return dial(ctx, network, addr)
			}
		})
		for _, m := range r.mills {
			m.set(hang)
		}
		one, two := r.client, r.overHTTP2()
		for name, q := range map[string]struct {
			by *http.Client
			question
		}{
			"GET":              {one, question{key: "a"}},
			"POST":             {one, question{key: "b", method: "POST", body: "x"}},
			"GET over HTTP/2":  {two, question{key: "c"}},
			"POST over HTTP/2": {two, question{key: "d", method: "POST", body: "x"}},
			"gRPC": {two, question{key: "e", method: "POST", path: "/pkg.Service/Call", body: "\x00\x00\x00\x00\x00",
				header: header("Content-Type", "application/grpc", "Te", "trailers")}},
		} {
			r.client = q.by
			if res := r.do(q.question); res.took < timeout-10*time.Millisecond || res.took > timeout+250*time.Millisecond {
				t.Errorf("%s: answered %d %s %s after %v", name, res.status, res.code, res.header.Get("Grpc-Message"), res.took)
			} else {
				t.Logf("%s: %v", name, res.took)
			}
		}
	})
}
