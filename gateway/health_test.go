package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// onProbe does one thing for probes and canaries, another for the rest.
func onProbe(do, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			do(w, r)
			return
		}
		rest(w, r)
	}
}

func TestProbesTakeAWorkerOutAndBack(t *testing.T) {
	for name, do := range map[string]http.HandlerFunc{"fails": status(500), "hangs": hang, "resets": reset} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 4, 4, func(c *Config) {
					c.Probe = Probe{Path: "/healthz", Interval: time.Second, Timeout: 500 * time.Millisecond}
				})
				for _, m := range r.mills {
					m.set(onProbe(fine(time.Millisecond), fine(10*time.Millisecond)))
				}
				time.Sleep(5 * time.Second)
				r.mills["w02"].set(onProbe(do, fine(10*time.Millisecond)))
				time.Sleep(10 * time.Second)
				served := func() (n int) {
					for _, m := range r.mills {
						m.mu.Lock()
						m.seen = nil
						m.mu.Unlock()
					}
					for range 100 {
						if res := r.get("acme"); res.status != 200 {
							t.Errorf("answer %+v", res)
						}
					}
					for _, s := range r.mills["w02"].saw() {
						if s.tenant == "acme" {
							n++
						}
					}
					return n
				}
				if n := served(); n != 0 {
					t.Errorf("a worker that is out was asked %d times", n)
				}
				s := r.gw.Stats()
				if w := s.Workers[1]; !w.Out || !w.Aside || w.ProbesFailed < 3 || s.Workers[0].Out {
					t.Errorf("w02 is %v, w01 %v", w.Out, s.Workers[0].Out)
				}
				r.mills["w02"].set(onProbe(fine(time.Millisecond), fine(10*time.Millisecond)))
				time.Sleep(20 * time.Second)
				if n := served(); n == 0 {
					t.Error("a worker that is back is not asked")
				}
			})
		})
	}
}

// A probe that fails everywhere says more of itself than of the workers.
func TestProbesNeverTakeAWholeHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, func(c *Config) { c.Probe = Probe{Path: "/healthz", Interval: time.Second} })
		for _, m := range r.mills {
			m.set(onProbe(status(404), fine(10*time.Millisecond)))
		}
		time.Sleep(time.Minute)
		for i := range 50 {
			if res := r.get(fmt.Sprint("t", i)); res.status != 200 {
				t.Errorf("answer %+v", res)
			}
		}
	})
}

func TestCanaryTestsEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, func(c *Config) {
			c.Canary = Canary{Tenant: "canary", Ask: "/healthz"}
			c.Tenant = TenantLimits{Rate: 1, Burst: 1}
		})
		ask := func(key string) (a CanaryAnswer, res result) {
			res = r.do(question{key: key, path: "/cellway/canary"})
			if err := json.Unmarshal([]byte(res.body), &a); err != nil {
				t.Errorf("%q: %v", res.body, err)
			}
			return a, res
		}
		seen := map[string]int{}
		for range 12 {
			a, res := ask("canary")
			if res.status != 200 || !a.OK || a.Cell != "cell-001" || a.Hands != r.gw.Stats().Version || a.Workers != 6 || a.Took < 9 {
				t.Errorf("answer %d %+v", res.status, a)
			}
			if res.header.Get("X-Cell-Worker") != a.Worker || res.header.Get("X-Cell-Hand") != a.Hands {
				t.Errorf("headers %v", res.header)
			}
			seen[a.Worker]++
		}
		if len(seen) != 6 || seen["w01"] != 2 {
			t.Errorf("asked %v, want each worker twice", seen)
		}
		r.mills["w03"].set(status(500))
		r.kill("w04")
		if a, res := ask("canary/w03"); res.status != 503 || a.OK || a.Status != 500 || a.Worker != "w03" || a.Code != CanaryFailed {
			t.Errorf("a worker that fails: %d %+v", res.status, a)
		}
		if a, res := ask("canary/w04"); res.status != 503 || a.OK || a.Status != 0 || a.Error == "" || a.Code != CanaryFailed {
			t.Errorf("a worker that is down: %d %+v", res.status, a)
		}
		if a, res := ask("canary/w99"); res.status != 404 || a.Code != WorkerUnknown || a.Worker != "w99" {
			t.Errorf("a worker that is not: %d %+v", res.status, a)
		}
		// What is not the canary's path is the worker's to answer, as everybody's is.
		if res := r.do(question{method: "POST", key: "canary/w05", body: "tweet"}); res.status != 200 || res.header.Get("X-Cell-Worker") != "w05" {
			t.Errorf("answer %+v", res)
		}
		wantCode(t, r.do(question{key: "canary/w04"}), 503, HandUnreachable)
		wantCode(t, r.do(question{key: "canary/w99"}), 404, WorkerUnknown)
		if res := r.do(question{key: "canary/w03"}); res.status != 500 {
			t.Errorf("answer %+v", res)
		}
		hits := r.mills["w03"].hits.Load()
		r.do(question{key: "canary/w03"})
		if r.mills["w03"].hits.Load() != hits+1 {
			t.Error("a request of the canary was tried again")
		}
		if s := r.gw.Stats(); s.Canaries < 20 || len(s.Loads) != 0 {
			t.Errorf("%d canaries, loads %v", s.Canaries, s.Loads)
		}
	})
}

func TestStatsTellWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, nil)
		for range 30 {
			r.do(question{method: "PUT", key: "acme", body: "12345"})
		}
		hand := r.hand("acme")
		hand[0].set(status(500))
		for range 30 {
			r.do(question{method: "PUT", key: "acme", body: "12345"})
		}
		s := r.gw.Stats()
		if len(s.Requests) != 1 || s.Requests[0] != (CodeCount{"", 60}) || s.Statuses[2] != 60 || s.BytesIn != 300 || s.BytesOut != 120 {
			t.Errorf("requests %v, statuses %v, bytes %d and %d", s.Requests, s.Statuses, s.BytesIn, s.BytesOut)
		}
		if s.Version == "" || s.Seq != 1 || s.HandSize != 2 || s.Swaps != 1 || s.Swapped.IsZero() || s.InFlight != 0 || s.Stopping {
			t.Errorf("%q seq %d size %d swaps %d", s.Version, s.Seq, s.HandSize, s.Swaps)
		}
		var unable, good uint64
		for _, w := range s.Workers {
			good += w.Outcomes[0]
			unable += w.Outcomes[4]
			if w.Endpoint != "http://"+r.mills[w.ID].addr || w.Weight != 1 || w.Zone != r.mills[w.ID].zone || string(w.Bulkhead.Cell) != w.ID {
				t.Errorf("worker %s %s %d %s %s", w.ID, w.Endpoint, w.Weight, w.Zone, w.Bulkhead.Cell)
			}
		}
		if good != 60 || unable == 0 || unable != s.Retries {
			t.Errorf("%d good and %d failed attempts, %d retries", good, unable, s.Retries)
		}
		if len(s.Loads) != 1 || s.Loads[0] != (Load{Name: "acme", Requests: 60}) {
			t.Errorf("loads %v", s.Loads)
		}
		var counted uint64
		for _, n := range s.Added.Counts {
			counted += n
		}
		if counted != 60 {
			t.Errorf("%d durations", counted)
		}
	})
}

func TestHandTellsWhoItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, func(c *Config) { c.Canary.Tenant = "canary" })
		h, ok := r.gw.Hand("acme")
		if !ok || len(h.Members) != 3 || h.Version != r.src.Current().Version() || h.Seq != 1 {
			t.Errorf("%+v", h)
		}
		// It is the hand of all keys of a tenant, whatever their parts.
		for range 20 {
			r.get("acme/eu")
			r.get("acme/us")
		}
		for _, m := range r.mills {
			in := false
			for _, one := range h.Members {
				in = in || one.ID == m.id
			}
			if (m.hits.Load() > 0) && !in {
				t.Errorf("%s got a request and is not in the hand", m.id)
			}
		}
	})
}

func TestWorkersAnswerTellsNothingOfCellsUnlessAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, 2, nil)
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Cell-Epoch", "1.9")
				w.WriteHeader(421)
				io.WriteString(w, "not mine")
			})
		}
		// A guard of the worker's own is heard by the router.
		res := r.get("acme")
		if res.status != 421 || res.header.Get("X-Cell-Epoch") != "1.9" || res.body != "not mine" || r.hits() != 1 {
			t.Errorf("answer %+v", res)
		}
		for _, name := range []string{"X-Cell-Hand", "X-Cell-Worker", "X-Cell-Attempt"} {
			if res.header.Get(name) != "" {
				t.Errorf("the answer has %s", name)
			}
		}
	})
}
