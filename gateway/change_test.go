package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

func TestLossless(t *testing.T) {
	for name, change := range map[string]func(r *rig, turn int){
		"grow": func(r *rig, turn int) { r.add(fmt.Sprintf("x%02d", turn), "a", 20+turn) },
		"shrink": func(r *rig, turn int) {
			if len(r.list.Workers) > 4 {
				r.list.Workers = slices.Clone(r.list.Workers[1:])
			}
		},
		"drain": func(r *rig, turn int) {
			r.list.Workers = slices.Clone(r.list.Workers)
			for i := range r.list.Workers {
				r.list.Workers[i].Weight = new(1)
			}
			r.list.Workers[turn%len(r.list.Workers)].Weight = new(0)
		},
		"replace": func(r *rig, turn int) {
			r.list.Workers = slices.Clone(r.list.Workers[1:])
			r.add(fmt.Sprintf("x%02d", turn), "b", 20+turn)
		},
		"move": func(r *rig, turn int) { // the same id at another endpoint
			w := r.list.Workers[turn%8]
			r.list.Workers = slices.Clone(r.list.Workers)
			m := &mill{id: w.ID, addr: fmt.Sprintf("10.1.0.%d:80", turn)}
			m.set(fine(10 * time.Millisecond))
			r.mills[fmt.Sprint(w.ID, "-", turn)] = m
			r.start(m)
			r.list.Workers[turn%8].Endpoint = "http://" + m.addr
		},
		"resize": func(r *rig, turn int) { r.list.Size = 1 + (turn+1)%3 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 8, 2, func(c *Config) { c.Retries.Attempts = 1 }) // nothing is repaired by a retry
				stop := make(chan struct{})
				var all sync.WaitGroup
				var mu sync.Mutex
				n := 0
				for i := range 24 {
					all.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							method := []string{"GET", "POST"}[i%2]
							res := r.do(question{method: method, key: fmt.Sprint("t", i), body: "x"})
							if res.status != 200 {
								t.Errorf("a request was lost: %+v", res)
							}
							mu.Lock()
							n++
							mu.Unlock()
						}
					})
				}
				for turn := range 30 {
					time.Sleep(25 * time.Millisecond)
					change(r, turn)
					r.relist()
				}
				close(stop)
				all.Wait()
				if s := r.gw.Stats(); s.Swaps < 5 {
					t.Errorf("only %d lists were taken", s.Swaps)
				}
				if n < 500 {
					t.Errorf("only %d requests were served", n)
				}
			})
		})
	}
}

func TestHandsChangeByAtMostOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20, 3, nil)
		hands := func() (all [200][]string) {
			for i := range all {
				h, _ := r.gw.Hand(cellway.TenantID(fmt.Sprint("t", i)))
				for _, m := range h.Members {
					if !m.Former {
						all[i] = append(all[i], m.ID)
					}
				}
			}
			return all
		}
		for turn := range 12 {
			before := hands()
			if turn%2 == 0 {
				r.add(fmt.Sprintf("x%02d", turn), "b", 30+turn)
			} else {
				r.list.Workers = slices.Clone(r.list.Workers[1:])
			}
			r.relist()
			moved := 0
			for i, h := range hands() {
				gone := 0
				for _, id := range before[i] {
					if !slices.Contains(h, id) {
						gone++
					}
				}
				if gone > 1 || len(h) != 3 {
					t.Errorf("turn %d: hand %v became %v", turn, before[i], h)
				}
				moved += gone
			}
			if moved == 0 || moved > 100 {
				t.Errorf("turn %d: %d members of 600 changed", turn, moved)
			}
		}
	})
}

// A cell is doubled before its new workers are up. Tenants whose whole hand is new
// are served by their old one until the new workers answer.
func TestLooksBackAsLongAsANewHandHasNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 1, func(c *Config) { c.Probe = Probe{Path: "/healthz", Interval: time.Second} })
		tenants := make([]string, 60)
		for i := range tenants {
			tenants[i] = fmt.Sprint("t", i)
			r.get(tenants[i])
		}
		fresh := []*mill{}
		for i := range 4 {
			m := r.add(fmt.Sprintf("x%02d", i), "a", 10+i)
			m.stop() // not up yet
			fresh = append(fresh, m)
		}
		r.relist()
		for range 3 {
			for _, ten := range tenants {
				if res := r.get(ten); res.status != 200 {
					t.Errorf("%s got %+v while its new worker is not up", ten, res)
				}
			}
		}
		h, _ := r.gw.Hand(cellway.TenantID(tenants[0]))
		for _, ten := range tenants {
			if h, _ = r.gw.Hand(cellway.TenantID(ten)); len(h.Members) > 1 {
				break
			}
		}
		if len(h.Members) != 2 || !h.Members[1].Former {
			t.Errorf("no hand has a former member: %+v", h)
		}
		for _, m := range fresh {
			r.start(m)
		}
		time.Sleep(time.Minute)
		for _, m := range r.mills {
			m.hits.Store(0)
		}
		for _, ten := range tenants {
			r.get(ten)
			if h := r.hand(ten); len(h) != 1 || h[0].hits.Load() == 0 {
				t.Errorf("%s has a hand of %d, or was served by another when its worker is up", ten, len(h))
			}
		}
		// From here on a hand that is down is down.
		r.kill(fresh[0].id)
		time.Sleep(time.Minute)
		for _, ten := range tenants {
			if h := r.hand(ten); h[0] == fresh[0] {
				if res := r.get(ten); res.status != 503 {
					t.Errorf("%s got %+v though its hand is down", ten, res)
				}
			}
		}
	})
}

func TestGatewayWaitsForItsFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &Static{}
		r := newRig(t, 4, 2, func(c *Config) { c.Source = src })
		wantCode(t, r.get("acme"), 503, cellway.NotReady)
		if r.gw.Ready() == nil {
			t.Error("it is ready without a list")
		}
		src.put(r.workers())
		synctest.Wait()
		if err := r.gw.Ready(); err != nil {
			t.Error(err)
		}
		if res := r.get("acme"); res.status != 200 {
			t.Errorf("answer %+v", res)
		}
	})
}

// A worker that goes by newer hands refuses a tenant that is not in its hand any more.
func TestWorkerThatKnowsNewerHandsIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 1, nil)
		refuse := status(421, "X-Cell-Hand", "newer")
		r.hand("acme")[0].set(refuse)
		res := r.do(question{method: "POST", key: "acme", body: "x"})
		wantCode(t, res, 503, HandMismatch)
		if res.header.Get("Retry-After") == "" || r.hits() != 1 {
			t.Errorf("answer %v after %d attempts", res.header, r.hits())
		}
		// The list comes while the worker answers.
		old := r.hand("acme")[0]
		old.set(func(w http.ResponseWriter, req *http.Request) {
			time.Sleep(time.Second)
			refuse(w, req)
		})
		got := make(chan result, 1)
		go func() { got <- r.do(question{method: "POST", key: "acme", body: "x"}) }()
		time.Sleep(500 * time.Millisecond)
		r.list.Workers = slices.DeleteFunc(slices.Clone(r.list.Workers), func(w listedWorker) bool { return w.ID == old.id })
		r.relist()
		if res := <-got; res.status != 200 {
			t.Errorf("answer %+v, want the new hand's", res)
		}
	})
}
