package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

// A ledger knows which workers each tenant's requests have reached.
type ledger struct {
	mu      sync.Mutex
	reached map[string]map[string]bool // workers by tenant
}

// enter has all workers of r tell l whom their requests are of, and then misbehave at
// random.
func (l *ledger) enter(r *rig, rng *rand.Rand) {
	behave := []http.HandlerFunc{fine(time.Millisecond), fine(5 * time.Millisecond), fine(400 * time.Millisecond), status(500),
		status(503, "Retry-After", "1"), status(421, "X-Cell-Hand", "another"), status(429, "Retry-After", "1"), reset, hang}
	for _, id := range r.ids { // not by the map, whose order differs each time
		m, do := r.mills[id], behave[rng.IntN(len(behave))]
		m.set(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/orders" {
				l.note(req.Header.Get("X-Tenant-Id"), m.id)
			}
			do(w, req)
		})
	}
}

func (l *ledger) note(tenant, worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached[tenant] == nil {
		l.reached[tenant] = map[string]bool{}
	}
	l.reached[tenant][worker] = true
}

// clear begins a new page, and returns the last one.
func (l *ledger) clear() map[string]map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.reached
	l.reached = map[string]map[string]bool{}
	return page
}

// Where the list does not change, the workers that a tenant ever reaches are its hand,
// whatever they do: retries, probes, limits and the canary change nothing in that. With
// one change they are its hand before and its hand after it. Once the time to look
// back is over, they are its hand alone.
func TestNoTenantEverLeavesItsHand(t *testing.T) {
	changes := map[string]func(*rig){
		"a worker comes":    func(r *rig) { r.add("x01", "a", 40) },
		"a worker goes":     func(r *rig) { r.list.Workers = slices.Clone(r.list.Workers[1:]) },
		"hands grow":        func(r *rig) { r.list.Size = 3 },
		"hands shrink":      func(r *rig) { r.list.Size = 1 },
		"all hands change":  func(r *rig) { r.list.Salt = "other" },
		"a worker is moved": func(r *rig) { r.list.Workers = slices.Clone(r.list.Workers); r.list.Workers[2].Zone = "c" },
		"by a design": func(r *rig) {
			r.list.Deal, r.list.Overlap, r.list.Size = "reed-solomon", new(1), 3
			r.list.Workers = slices.Clone(r.list.Workers)
			for i := range r.list.Workers {
				r.list.Workers[i].Seat = new(i / 3)
			}
		},
	}
	tenants := make([]string, 20)
	for i := range tenants {
		tenants[i] = fmt.Sprint("t", i)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(len(name)), 3))
				r := newRig(t, 9, 2, func(c *Config) {
					c.Retries.TenantBurst, c.Retries.CellBurst, c.Retries.Attempts = 1000, 1000, 6
					c.Workers.Limits.InFlight, c.Workers.Limits.Pending = 3, -1
					c.Probe = Probe{Path: "/healthz", Interval: time.Second}
					c.Canary = Canary{Tenant: "canary"}
					c.Timeout = 5 * time.Second
				})
				book := &ledger{reached: map[string]map[string]bool{}}
				var all sync.WaitGroup
				storm := func(rounds int) {
					for range rounds {
						book.enter(r, rng)
						switch rng.IntN(4) {
						case 0:
							r.kill(r.ids[rng.IntN(len(r.ids))])
						case 1:
							m := r.mills[r.ids[rng.IntN(len(r.ids))]]
							m.stop()
							r.start(m)
						}
						for range 12 {
							tenant, method := tenants[rng.IntN(len(tenants))], []string{"GET", "POST", "PUT"}[rng.IntN(3)]
							all.Go(func() { r.do(question{method: method, key: tenant, body: "x"}) })
							all.Go(func() { r.get("canary") })
							time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
						}
					}
				}
				hands := func() map[string][]string {
					all := map[string][]string{}
					for _, tenant := range tenants {
						h, ok := r.gw.Hand(cellway.TenantID(tenant))
						if !ok {
							t.Fatalf("%s has no hand", tenant)
						}
						for _, m := range h.Members {
							if !m.Former {
								all[tenant] = append(all[tenant], m.ID)
							}
						}
					}
					return all
				}
				check := func(when string, allowed ...map[string][]string) {
					for tenant, reached := range book.clear() {
						if tenant == "canary" {
							continue
						}
						for id := range reached {
							if !slices.ContainsFunc(allowed, func(hands map[string][]string) bool { return slices.Contains(hands[tenant], id) }) {
								t.Errorf("%s: %s has reached %s, and may reach %v", when, tenant, id, allowed)
							}
						}
					}
				}

				before := hands()
				storm(25)
				all.Wait()
				check("before any change", before)

				for range 3 {
					storm(2)
				}
				change(r)
				r.relist()
				after := hands()
				storm(25)
				all.Wait()
				check("over one change", before, after)

				time.Sleep(11 * time.Minute)
				storm(25)
				all.Wait()
				check("after the look back", after)
			})
		})
	}
}

// A tenant whose new hand is new altogether, and has never answered, is served by its
// former hand for as long as is looked back, and not longer; a change of endpoints
// meanwhile makes that no longer.
func TestLookbackEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, 2, nil)
		r.get("acme")
		old := r.list.Workers
		r.list.Workers = nil
		for i := range 2 {
			m := r.add(fmt.Sprint("x", i), string(rune('a'+i)), 10+i)
			m.stop() // it never comes up
		}
		fresh := slices.Clone(r.list.Workers)
		// The former workers stay in the list, in nobody's hand but by chance: as an
		// own hand has it, only the fresh ones are of weight.
		r.list.Workers = append(slices.Clone(old), fresh...)
		r.list.Size = 2
		var ten string
		r.relist()
		for i := 0; ten == ""; i++ {
			if h := r.hand(fmt.Sprint("t", i)); h[0].id[0] == 'x' && h[1].id[0] == 'x' {
				ten = fmt.Sprint("t", i)
			}
		}
		for minute := range 14 {
			res := r.get(ten)
			if want := minute < 10; (res.status == 200) != want {
				t.Errorf("after %d minutes: answer %d %s", minute, res.status, res.code)
			}
			if minute == 5 { // only an endpoint changes
				r.list.Workers = slices.Clone(r.list.Workers)
				r.list.Workers[3].Endpoint = "http://10.7.7.7:80"
				version := r.gw.Stats().Version
				if r.relist(); r.gw.Stats().Version != version {
					t.Error("the version changed")
				}
			}
			time.Sleep(time.Minute)
		}
	})
}
