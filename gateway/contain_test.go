package gateway

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

func TestContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12, 3, nil)
		others := make([]string, 40)
		for i := range others {
			others[i] = fmt.Sprint("t", i)
		}
		for range 10 {
			for _, ten := range others {
				r.get(ten)
			}
		}
		// A worker that gets poison goes down for a minute.
		for _, m := range r.mills {
			m.set(forTenant("poison", func(w http.ResponseWriter, req *http.Request) {
				reset(w, req)
				m.stop()
				time.AfterFunc(time.Minute, func() { r.start(m) })
			}, fine(10*time.Millisecond)))
			m.hits.Store(0)
		}
		hand := r.hand("poison")
		var all sync.WaitGroup
		all.Go(func() {
			for range 240 {
				r.get("poison")
				time.Sleep(500 * time.Millisecond)
			}
		})
		failed := map[string]int{}
		for range 120 {
			for _, ten := range others {
				if res := r.get(ten); res.status != 200 {
					failed[ten]++
				}
			}
			time.Sleep(time.Second)
		}
		all.Wait()
		for _, m := range r.mills {
			for _, s := range m.saw() {
				if s.tenant == "poison" && !slices.Contains(hand, m) {
					t.Fatalf("%s got poison and is not in its hand", m.id)
				}
			}
		}
		covered := 0
		for _, ten := range others {
			if h := r.hand(ten); !slices.ContainsFunc(h, func(m *mill) bool { return !slices.Contains(hand, m) }) {
				covered++ // its hand is the poison's
			} else if failed[ten] > 0 {
				t.Errorf("%s has members that get no poison, and %d of its 120 requests failed", ten, failed[ten])
			}
		}
		if s := r.gw.Stats(); s.Attempts.Suspicions == 0 {
			t.Error("nobody was suspected of poison")
		}
		t.Logf("%d of %d tenants had the poison's hand; failures %v", covered, len(others), failed)
	})
}

// Whatever workers do, and whatever becomes of the list, no worker ever gets a
// request of a tenant in whose hand it is not, by the list of that moment or, as
// long as no member of the new hand has answered, by one before.
func TestInside(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			r := newRig(t, 10, 3, func(c *Config) {
				c.Retries.TenantBurst, c.Retries.CellBurst = 1000, 1000
				c.Retries.Attempts = 5
				c.Probe = Probe{Path: "/healthz", Interval: time.Second}
			})
			var mu sync.Mutex
			var snapshots []*shuffle.Snapshot // that were in use at some time
			may := func(tenant, worker string) bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.ContainsFunc(snapshots, func(s *shuffle.Snapshot) bool {
					return slices.ContainsFunc(s.AppendHand(nil, tenant), func(w shuffle.Worker) bool { return w.ID == worker })
				})
			}
			snapshots = append(snapshots, r.src.Current().Hands())
			behave := []http.HandlerFunc{fine(time.Millisecond), fine(400 * time.Millisecond), status(500), status(503, "Retry-After", "1"), reset, hang}
			misuse := func(m *mill) {
				do := behave[rng.IntN(len(behave))]
				m.set(func(w http.ResponseWriter, req *http.Request) {
					if ten := req.Header.Get("X-Tenant-Id"); req.URL.Path != "/healthz" && !may(ten, m.id) {
						t.Errorf("%s got a request of %s, in whose hand it never was", m.id, ten)
					}
					do(w, req)
				})
			}
			for _, id := range r.ids {
				misuse(r.mills[id])
			}
			next := 11
			var all sync.WaitGroup
			for range 300 {
				tenant := fmt.Sprint("t", rng.IntN(25))
				method := []string{"GET", "POST", "PUT"}[rng.IntN(3)]
				all.Go(func() { r.do(question{method: method, key: tenant, body: "x"}) })
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				switch rng.IntN(12) {
				case 0:
					misuse(r.mills[r.ids[rng.IntN(len(r.ids))]])
				case 1:
					r.kill(r.ids[rng.IntN(len(r.ids))])
				case 2:
					id := fmt.Sprintf("w%02d", next)
					misuse(r.add(id, string(rune('a'+rng.IntN(3))), next))
					next++
					fallthrough
				case 3:
					if len(r.list.Workers) > 6 {
						i := rng.IntN(len(r.list.Workers))
						r.list.Workers = slices.Delete(slices.Clone(r.list.Workers), i, i+1)
					}
					mu.Lock()
					snapshots = append(snapshots, r.workers().Hands())
					mu.Unlock()
					r.relist()
				}
			}
			all.Wait()
			if len(snapshots) < 10 {
				t.Errorf("only %d lists were in use", len(snapshots))
			}
		})
	}
}

func TestBudgeted(t *testing.T) {
	for name, do := range map[string]http.HandlerFunc{"all answer 500": status(500), "all reset": reset, "all hang": hang, "all refuse": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 9, 3, func(c *Config) {
					c.Timeout = 5 * time.Second
					c.Tenant.InFlight = -1
				})
				tenants := make([]string, 20)
				for i := range tenants {
					tenants[i] = fmt.Sprint("t", i)
				}
				for range 30 {
					for _, ten := range tenants {
						r.get(ten)
					}
				}
				for _, m := range r.mills {
					if do == nil {
						m.stop()
					} else {
						m.set(do)
					}
					m.hits.Store(0)
				}
				before := r.gw.Stats()
				began := time.Now()
				var all sync.WaitGroup
				for range 50 {
					for _, ten := range tenants {
						all.Go(func() { r.get(ten) })
					}
					time.Sleep(200 * time.Millisecond)
				}
				all.Wait()
				spent := time.Since(began).Seconds()
				after := r.gw.Stats()
				retries := after.Retries - before.Retries
				if most := 100 + spent + 1; float64(retries) > most {
					t.Errorf("%d retries, want at most the burst of 100 and one a second, %v", retries, most)
				}
				if do != nil {
					if got, most := r.hits(), int64(1000+retries); got > most {
						t.Errorf("workers got %d requests for 1000 and %d retries", got, retries)
					}
				}
				t.Logf("amplification %.3f", float64(1000+retries)/1000)
			})
		})
	}
}

// The measured shares of tenants that a poison takes down, and that it hurts, are
// those that arithmetic tells.
func TestPoisonTakesDownAsManyAsPredicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants = 2000
		r := newRig(t, 9, 2, nil)
		hand := r.hand("poison")
		down, hurt := 0, 0
		for i := range tenants {
			shared := 0
			for _, m := range r.hand(fmt.Sprint("t", i)) {
				if slices.Contains(hand, m) {
					shared++
				}
			}
			switch shared {
			case 1:
				hurt++
			case 2:
				down++
			}
		}
		predicted, err := shuffle.ZoneOverlap([]int{3, 3, 3}, 2)
		if err != nil {
			t.Fatal(err)
		}
		for shared, n := range map[int]int{1: hurt, 2: down} {
			got, want := float64(n)/tenants, predicted[shared]
			if sigma := math.Sqrt(want * (1 - want) / tenants); math.Abs(got-want) > 4*sigma {
				t.Errorf("%.4f of tenants share %d members, predicted are %.4f", got, shared, want)
			}
		}
		t.Logf("down %.4f, hurt %.4f; predicted %.4f", float64(down)/tenants, float64(hurt)/tenants, predicted)
	})
}

func TestTenantsWithoutAKeyShareOneHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 8, 2, nil)
		for range 50 {
			if res := r.do(question{}); res.status != 200 {
				t.Fatalf("answer %+v", res)
			}
		}
		n := 0
		for _, m := range r.mills {
			if m.hits.Load() > 0 {
				n++
			}
		}
		if n > 2 {
			t.Errorf("%d workers got requests without a key, want one hand", n)
		}
		if _, ok := r.gw.Hand(cellway.TenantID("")); !ok {
			t.Error("they have no hand")
		}
	})
}
