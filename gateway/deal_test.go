package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// newDesigned starts workers with seats, dealt by a design: so many zones of so many,
// or in one zone as quadruples if zones is 1. Tenants n0, n1 and so on have numbers.
func newDesigned(t testing.TB, zones, seats, overlap, numbers int, change func(*Config)) *rig {
	t.Helper()
	list := listed{Deal: "reed-solomon", Overlap: new(overlap), Salt: "test", Size: zones, Numbers: map[string]uint64{}}
	if zones == 1 {
		list.Deal, list.Size = "quadruples", 4
	}
	for i := range numbers {
		list.Numbers[fmt.Sprint("n", i)] = uint64(i)
	}
	return newRigOf(t, list, func(r *rig) {
		for i := range zones * seats {
			r.add(fmt.Sprintf("w%02d", i+1), string(rune('a'+i/seats)), i+1)
			r.list.Workers[i].Seat = new(i % seats)
		}
	}, change)
}

// poisonFor has each worker die for a minute when it gets a request of a tenant.
func (r *rig) poisonFor(tenant string) {
	for _, m := range r.mills {
		m.set(forTenant(tenant, func(w http.ResponseWriter, req *http.Request) {
			reset(w, req)
			m.stop()
			time.AfterFunc(time.Minute, func() { r.start(m) })
		}, fine(10*time.Millisecond)))
	}
}

// A tenant whose requests kill workers takes its hand down. Where hands are of a
// design, nobody else loses more workers than the overlap, so nobody is down.
func TestApart(t *testing.T) {
	for name, c := range map[string]struct{ zones, seats, overlap, numbers int }{
		"reed-solomon, overlap 1": {3, 4, 1, 15},
		"reed-solomon, overlap 2": {4, 4, 2, 40},
		"quadruples, overlap 2":   {1, 8, 2, 13},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDesigned(t, c.zones, c.seats, c.overlap, c.numbers, nil)
				for range 10 {
					for i := range c.numbers {
						if res := r.get(fmt.Sprint("n", i)); res.status != 200 {
							t.Fatalf("answer %+v", res)
						}
					}
				}
				r.poisonFor("n0")
				hand := r.hand("n0")
				var all sync.WaitGroup
				all.Go(func() {
					for range 120 {
						r.get("n0")
						time.Sleep(500 * time.Millisecond)
					}
				})
				failed := 0
				for range 60 {
					for i := 1; i < c.numbers; i++ {
						if res := r.get(fmt.Sprint("n", i)); res.status != 200 {
							failed++
						}
					}
					time.Sleep(time.Second)
				}
				all.Wait()
				if failed > 0 {
					t.Errorf("%d requests of others failed", failed)
				}
				dead := 0
				for _, m := range r.mills {
					hit := slices.ContainsFunc(m.saw(), func(s seen) bool { return s.tenant == "n0" })
					if hit && !slices.Contains(hand, m) {
						t.Errorf("%s got poison and is not in its hand", m.id)
					}
					if hit {
						dead++
					}
				}
				if dead != len(hand) {
					t.Errorf("%d workers died of the poison, its hand has %d", dead, len(hand))
				}
				most := 0
				for i := 1; i < c.numbers; i++ {
					lost := 0
					for _, m := range r.hand(fmt.Sprint("n", i)) {
						if slices.Contains(hand, m) {
							lost++
						}
					}
					most = max(most, lost)
				}
				if most > c.overlap {
					t.Errorf("somebody shares %d workers with the poison, want at most %d", most, c.overlap)
				}
			})
		})
	}
}

// A worker that takes another one's seat takes its place, and no request is lost.
// So it is if all hands change, as another method deals.
func TestChangesOfADesignLoseNothing(t *testing.T) {
	for name, change := range map[string]func(r *rig, turn int){
		"replace": func(r *rig, turn int) {
			i := turn % 9
			seat, zone := r.list.Workers[i].Seat, r.list.Workers[i].Zone
			r.list.Workers = slices.Clone(r.list.Workers)
			r.add(fmt.Sprintf("x%02d", turn), zone, 20+turn)
			last := len(r.list.Workers) - 1
			r.list.Workers[i] = r.list.Workers[last]
			r.list.Workers[i].Seat = seat
			r.list.Workers = r.list.Workers[:last]
		},
		"drain": func(r *rig, turn int) {
			r.list.Workers = slices.Clone(r.list.Workers)
			for i := range r.list.Workers {
				r.list.Workers[i].Weight = nil
			}
			r.list.Workers[turn%9].Weight = new(0)
		},
		"method": func(r *rig, turn int) {
			r.list.Workers = slices.Clone(r.list.Workers)
			if turn%2 == 0 {
				r.list.Deal, r.list.Overlap = "hrw-1", nil
			} else {
				r.list.Deal, r.list.Overlap = "reed-solomon", new(1)
			}
			for i := range r.list.Workers {
				if r.list.Workers[i].Seat = nil; turn%2 == 1 {
					r.list.Workers[i].Seat = new(i % 3)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDesigned(t, 3, 3, 1, 0, func(c *Config) { c.Retries.Attempts = 1 })
				stop := make(chan struct{})
				var all sync.WaitGroup
				for i := range 24 {
					all.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							if res := r.do(question{method: []string{"GET", "POST"}[i%2], key: fmt.Sprint("t", i), body: "x"}); res.status != 200 {
								t.Errorf("a request was lost: %+v", res)
							}
						}
					})
				}
				for turn := range 20 {
					time.Sleep(25 * time.Millisecond)
					before, _ := r.gw.Hand("t1")
					change(r, turn)
					r.relist()
					after, _ := r.gw.Hand("t1")
					if before.Version == after.Version || after.Seq != before.Seq+1 {
						t.Errorf("version %s, %d after %s, %d", after.Version, after.Seq, before.Version, before.Seq)
					}
				}
				close(stop)
				all.Wait()
			})
		})
	}
}

// A drained worker keeps its seat and gets no requests, unless a whole hand is drained:
// then it is asked all the same.
func TestDrainedSeatIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDesigned(t, 3, 3, 1, 8, nil)
		hand := r.hand("n3")
		drain := func(n int) {
			r.list.Workers = slices.Clone(r.list.Workers)
			for i := range r.list.Workers {
				for _, m := range hand[:n] {
					if r.list.Workers[i].ID == m.id {
						r.list.Workers[i].Weight = new(0)
					}
				}
			}
			r.relist()
		}
		drain(1)
		for range 50 {
			if res := r.get("n3"); res.status != 200 {
				t.Fatalf("answer %+v", res)
			}
		}
		if n := hand[0].hits.Load(); n > 0 {
			t.Errorf("a drained worker got %d requests", n)
		}
		if now := r.hand("n3"); !slices.Equal(now, hand[1:]) {
			t.Errorf("its hand is %v", now)
		}
		drain(3)
		for range 50 {
			if res := r.get("n3"); res.status != 200 {
				t.Fatalf("answer %+v where all of the hand is drained", res)
			}
		}
		if hand[0].hits.Load() == 0 {
			t.Error("the drained worker got no requests where all of the hand is drained")
		}
		for _, id := range r.ids {
			if m := r.mills[id]; !slices.Contains(hand, m) && m.hits.Load() > 0 {
				t.Errorf("%s got requests and is not in the hand", id)
			}
		}
	})
}

// What a gateway shows says by which method hands are dealt.
func TestStatsSayHowHandsAreDealt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDesigned(t, 3, 3, 1, 2, nil)
		s := r.gw.Stats()
		if s.Deal.Method != ReedSolomon || s.Deal.Overlap != 1 || len(s.Deal.Numbers) != 2 || !strings.HasPrefix(s.Version, "reed-solomon-") {
			t.Errorf("%+v of version %s", s.Deal, s.Version)
		}
	})
}

// A flaky dealer deals as another one does, as long as it is well.
type flaky struct {
	shuffle.Dealer
	fails, slow *atomic.Bool
	asked       *atomic.Int64
}

var errStore = errors.New("the store can't be reached")

func (f flaky) DealHand(ctx context.Context, dst []shuffle.Worker, tenant string) ([]shuffle.Worker, error) {
	f.asked.Add(1)
	if f.slow.Load() {
		<-ctx.Done()
		return dst, context.Cause(ctx)
	}
	if f.fails.Load() {
		return dst, errStore
	}
	return f.Dealer.DealHand(ctx, dst, tenant)
}

// Hands that are kept in a registry are dealt, and bound what tenants share. While
// the store fails, or takes its time, tenants keep the hands that they have.
func TestDealerThatFailsLeavesHandsAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, err := shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: &shuffle.MemRegistry{}, Overlap: 1})
		if err != nil {
			t.Fatal(err)
		}
		var fails, slow atomic.Bool
		var asked atomic.Int64
		r := newRig(t, 12, 3, func(c *Config) {
			c.Dealer = func(s *shuffle.Snapshot) (shuffle.Dealer, error) {
				if fails.Load() {
					return nil, errStore
				}
				return flaky{registry.Dealer(s), &fails, &slow, &asked}, nil
			}
		})
		var hands [12][]*mill
		for i := range hands {
			for range 10 {
				if res := r.get(fmt.Sprint("t", i)); res.status != 200 {
					t.Fatalf("answer %+v", res)
				}
			}
			hands[i] = r.hand(fmt.Sprint("t", i))
			for j, other := range hands[:i] {
				n := 0
				for _, m := range hands[i] {
					if slices.Contains(other, m) {
						n++
					}
				}
				if n > 1 {
					t.Errorf("tenants %d and %d share %d workers", i, j, n)
				}
			}
		}
		// The list changes while the store is away: it is not taken, and then it is.
		fails.Store(true)
		before := r.gw.Stats()
		r.add("x01", "a", 30)
		r.relist()
		if s := r.gw.Stats(); s.Version != before.Version || !errors.Is(s.ListError, errStore) {
			t.Errorf("version %s, error %v", s.Version, s.ListError)
		}
		fails.Store(false)
		time.Sleep(2 * listAgain)
		synctest.Wait()
		if s := r.gw.Stats(); s.Version == before.Version || s.ListError != nil {
			t.Errorf("version %s, error %v", s.Version, s.ListError)
		}
		// With the new list in use the store fails once more. Who had a hand keeps it.
		for nobody, f := range map[string]*atomic.Bool{"nobody": &fails, "nobody-else": &slow} {
			f.Store(true)
			for _, m := range r.mills {
				m.hits.Store(0)
			}
			for range 20 {
				if res := r.get("t1"); res.status != 200 || res.took > 2*time.Second {
					t.Fatalf("answer %+v", res)
				}
			}
			for _, m := range r.mills {
				if m.hits.Load() > 0 && !slices.Contains(hands[1], m) {
					t.Errorf("%s got requests of a tenant in whose hand it is not", m.id)
				}
			}
			// Who had none has none, and is not asked for with every request.
			n := asked.Load()
			for range 20 {
				res := r.get(nobody)
				wantCode(t, res, 503, HandUnreachable)
			}
			if n = asked.Load() - n; n > 3 {
				t.Errorf("the dealer was asked %d times", n)
			}
			f.Store(false)
			time.Sleep(2 * dealAgain)
			if res := r.get(nobody); res.status != 200 {
				t.Errorf("answer %+v when the store is back", res)
			}
			r.list.Sizes = map[string]int{nobody: 2}
			r.relist()
		}
		if s := r.gw.Stats(); s.Undealt == 0 {
			t.Error("no failure was counted")
		}
	})
}

// A dealer that hangs holds up one request of a tenant at a time: it asks again, and
// the others go by the hand that the tenant has.
func TestDealerThatHangsHoldsUpOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails, slow atomic.Bool
		var asked atomic.Int64
		r := newRig(t, 6, 2, func(c *Config) {
			c.Dealer = func(s *shuffle.Snapshot) (shuffle.Dealer, error) { return flaky{s, &fails, &slow, &asked}, nil }
		})
		r.get("acme")
		r.add("x01", "a", 30) // so that it is dealt again
		slow.Store(true)
		r.relist()
		r.get("acme")
		for range 5 {
			time.Sleep(dealAgain + time.Millisecond)
			var all sync.WaitGroup
			var held atomic.Int64
			for range 20 {
				all.Go(func() {
					switch res := r.get("acme"); {
					case res.status != 200:
						t.Errorf("answer %+v", res)
					case res.took >= dealWait:
						held.Add(1)
					}
				})
			}
			if all.Wait(); held.Load() != 1 {
				t.Errorf("%d of 20 requests waited for the dealer", held.Load())
			}
		}
		if n := asked.Load(); n != 1+2*6 { // each time for the former hand, too
			t.Errorf("dealers were asked %d times", n)
		}
	})
}

// A gateway that starts while its store is away waits for it.
func TestGatewayWaitsForItsDealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well atomic.Bool
		r := newRig(t, 4, 2, func(c *Config) {
			c.Dealer = func(s *shuffle.Snapshot) (shuffle.Dealer, error) {
				if !well.Load() {
					return nil, errStore
				}
				return s, nil
			}
		})
		wantCode(t, r.get("acme"), 503, cellway.NotReady)
		if err := r.gw.Ready(); !errors.Is(err, errStore) || !errors.Is(err, cellway.ErrNotReady) {
			t.Errorf("ready: %v", err)
		}
		well.Store(true)
		time.Sleep(2 * listAgain)
		synctest.Wait()
		if err := r.gw.Ready(); err != nil {
			t.Error(err)
		}
		if res := r.get("acme"); res.status != 200 {
			t.Errorf("answer %+v", res)
		}
	})
}
