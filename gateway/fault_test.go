package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

// Whatever one member of a hand does, requests that may be sent again are answered
// well, and the member is left alone after a while.
func TestOneBadMember(t *testing.T) {
	for name, do := range map[string]func(r *rig, m *mill){
		"answers 500":         func(_ *rig, m *mill) { m.set(status(500)) },
		"answers 503":         func(_ *rig, m *mill) { m.set(status(503, "Retry-After", "1")) },
		"resets":              func(_ *rig, m *mill) { m.set(reset) },
		"never answers":       func(_ *rig, m *mill) { m.set(hang) },
		"refuses connections": func(r *rig, m *mill) { r.kill(m.id) },
		"drops connections":   func(r *rig, m *mill) { r.drop.Store(m.addr, true); r.kill(m.id) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 9, 3, nil)
				tenants := make([]string, 30)
				for i := range tenants {
					tenants[i] = fmt.Sprint("t", i)
				}
				for range 20 { // the usual
					for _, ten := range tenants {
						if res := r.get(ten); res.status != 200 {
							t.Fatalf("answer %+v", res)
						}
					}
				}
				bad := r.mills["w05"]
				do(r, bad)
				bad.hits.Store(0)
				failed, slowest := 0, time.Duration(0)
				for range 25 {
					for _, ten := range tenants {
						res := r.get(ten)
						slowest = max(slowest, res.took)
						if res.status != 200 {
							failed++
						}
					}
				}
				if failed > 0 {
					t.Errorf("%d of 750 requests failed", failed)
				}
				if slowest > 2*time.Second {
					t.Errorf("the slowest took %v", slowest)
				}
				s := r.gw.Stats()
				for _, w := range s.Workers {
					if w.ID == bad.id && !w.Aside && bad.hits.Load() > 10 {
						t.Errorf("the bad member is not set aside: %+v", w)
					}
				}
				t.Logf("slowest %v, retries %d of 750, set aside %d times", slowest, s.Retries, s.Attempts.SetAside)
			})
		})
	}
}

func TestSlowMemberIsAskedLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 3, nil)
		for range 100 {
			r.get("acme")
		}
		r.mills["w02"].set(fine(300 * time.Millisecond))
		for _, m := range r.mills {
			m.hits.Store(0)
		}
		for range 300 {
			if res := r.get("acme"); res.status != 200 {
				t.Fatalf("answer %+v", res)
			}
		}
		if n := r.mills["w02"].hits.Load(); n > 60 {
			t.Errorf("the slow member got %d of 300 requests", n)
		}
	})
}

func TestPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, nil)
		r.get("acme")
		for _, m := range r.hand("acme") {
			r.kill(m.id)
		}
		others := r.hits()
		var last result
		for i := range 50 {
			last = r.do(question{method: http.MethodPost, key: "acme", body: "x"})
			wantCode(t, last, 503, HandUnreachable)
			if last.took > 200*time.Millisecond {
				t.Errorf("request %d waited %v", i, last.took)
			}
		}
		if last.took > 0 || last.header.Get("Retry-After") != "1" {
			t.Errorf("a hand that is known to be down was answered after %v, Retry-After %q", last.took, last.header.Get("Retry-After"))
		}
		if r.hits() != others {
			t.Error("another worker got a request")
		}
		// They come back.
		for _, m := range r.hand("acme") {
			r.start(m)
		}
		time.Sleep(time.Minute)
		for range 20 {
			r.get("acme")
		}
		if res := r.get("acme"); res.status != 200 {
			t.Errorf("answer %+v when the hand is back", res)
		}
	})
}

func TestNothingIsSentTwiceThatMayNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		q    question
		do   http.HandlerFunc
		hits int64
		code cellway.Code
		as   int
	}{
		"POST after a reset":                 {question{method: "POST", body: "x"}, reset, 1, HandProtocol, 502},
		"POST after a timeout":               {question{method: "POST", body: "x"}, hang, 1, HandTimeout, 504},
		"POST after 500":                     {question{method: "POST", body: "x"}, status(500), 1, "", 500},
		"POST after 503 with Retry-After":    {question{method: "POST", body: "x"}, status(503, "Retry-After", "1"), 3, "", 503},
		"POST after 503 without Retry-After": {question{method: "POST", body: "x"}, status(503), 1, "", 503},
		"POST with a key after a reset":      {question{method: "POST", body: "x", header: header("Idempotency-Key", "k")}, reset, 3, HandProtocol, 502},
		"GET after a reset":                  {question{method: "GET"}, reset, 3, HandProtocol, 502},
		"GET after 500":                      {question{method: "GET"}, status(500), 3, "", 500},
		"GET after 404":                      {question{method: "GET"}, status(404), 1, "", 404},
		"GET after 429":                      {question{method: "GET"}, status(429, "Retry-After", "1"), 1, "", 429},
		"PUT after 502":                      {question{method: "PUT", body: "x"}, status(502), 3, "", 502},
	} {
		// A connection that was used before may have been closed by the worker: one
		// that breaks then is no other one than a fresh one.
		for _, warm := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", warm ", warm), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 6, 3, func(c *Config) { c.Timeout = 3 * time.Second })
					for range 30 {
						if warm {
							r.get("acme")
						}
					}
					for _, m := range r.mills {
						m.set(c.do)
						m.hits.Store(0)
					}
					c.q.key = "acme"
					res := r.do(c.q)
					wantCode(t, res, c.as, c.code)
					if n := r.hits(); n != c.hits {
						t.Errorf("%d requests reached workers, want %d", n, c.hits)
					}
					for _, m := range r.mills {
						if n := m.hits.Load(); n > 1 {
							t.Errorf("%s got it %d times", m.id, n)
						}
					}
				})
			})
		}
	}
}

// A failure that was swallowed, since another member was to be asked, is told if
// that one turns out to be down. From then on it is known to be, and the answer goes
// back as it is.
func TestFailureIsToldIfNobodyElseCanBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, nil)
		for range 10 {
			r.get("acme")
		}
		hand := r.hand("acme")
		hand[0].set(status(500))
		r.kill(hand[1].id)
		r.gw.state.Load().workers[hand[1].id].SetOut(true) // it is asked second
		res := r.get("acme")
		wantCode(t, res, 502, HandProtocol)
		if !strings.Contains(res.body, "answered that it failed") {
			t.Errorf("answer %s does not tell of the failure", res.body)
		}
		for range 30 {
			if res := r.get("acme"); res.status != 500 || res.code != "" {
				t.Errorf("answer %d %s, want the worker's own", res.status, res.code)
			}
		}
	})
}

func TestBodyIsSentWholeEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, nil)
		body := fmt.Sprintf("%060000d", 7)
		first := true
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if first {
					first = false
					w.WriteHeader(500)
				}
			})
		}
		if res := r.do(question{method: http.MethodPut, key: "acme", body: body}); res.status != 200 {
			t.Fatalf("answer %+v", res)
		}
		n := 0
		for _, m := range r.mills {
			for _, s := range m.saw() {
				n++
				if s.body != body {
					t.Errorf("%s got %d bytes", m.id, len(s.body))
				}
			}
		}
		if n != 2 {
			t.Errorf("%d workers saw it, want 2", n)
		}
	})
}

func TestAnswerThatBreaksOffLooksBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 2, nil)
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				w.Write([]byte("half"))
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
		}
		if res := r.get("acme"); res.err == nil {
			t.Errorf("answer %+v looks whole", res)
		}
		synctest.Wait()
		if n := r.hits(); n != 1 {
			t.Errorf("%d workers were asked", n)
		}
		var broke uint64
		for _, w := range r.gw.Stats().Workers {
			broke += w.BrokeOff
		}
		if broke != 1 {
			t.Errorf("%d answers are counted as broken off", broke)
		}
	})
}
