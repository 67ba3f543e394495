package handhttp_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/shuffle"
)

// However hands are dealt, a transport stays inside them.
func TestTransportTakesAnyDealer(t *testing.T) {
	for name, deal := range map[string]func(t *testing.T, s *shuffle.Snapshot) shuffle.Dealer{
		"hrw-1": func(_ *testing.T, s *shuffle.Snapshot) shuffle.Dealer { return s },
		"registry": func(t *testing.T, s *shuffle.Snapshot) shuffle.Dealer {
			return newRegistry(t, new(shuffle.MemRegistry)).Dealer(s)
		},
		"algebraic": func(t *testing.T, s *shuffle.Snapshot) shuffle.Dealer {
			design, err := shuffle.NewQuadruples(16)
			if err != nil {
				t.Fatal(err)
			}
			d, err := shuffle.NewSeated(design, s.Config().Workers, func(_ context.Context, tenant string) (uint64, error) {
				return strconv.ParseUint(strings.TrimPrefix(tenant, "t"), 10, 64)
			})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, 16, 4)
				s, err := shuffle.NewSnapshot(c.config)
				if err != nil {
					t.Fatal(err)
				}
				d := deal(t, s)
				hands, err := handhttp.NewDealt(d, c.urls)
				if err != nil {
					t.Fatal(err)
				}
				rt := c.transport(handhttp.Config{Hands: hands})
				c.all(status(503))
				for i := range 20 {
					tenant := fmt.Sprint("t", i)
					get(rt, tenant)
					hand, err := d.DealHand(t.Context(), nil, tenant)
					if err != nil {
						t.Fatal(err)
					}
					inside := 0
					for _, w := range hand {
						for _, s := range c.workers[w.ID].seen {
							if s.tenant == tenant && s.hand == d.Version() {
								inside++
							}
						}
					}
					if inside != 3 {
						t.Errorf("%s: %d requests inside its hand, want all 3", tenant, inside)
					}
				}
				if n := c.hits(); n != 60 {
					t.Errorf("%d requests, want 60", n)
				}
			})
		})
	}
}

// A flaky store works until it is told not to.
type flakyStore struct {
	shuffle.MemRegistry
	down  bool
	asked int
}

func (s *flakyStore) Holding(ctx context.Context, tenant string) (shuffle.Holding, error) {
	s.asked++
	if s.down {
		return shuffle.Holding{}, errors.New("disk on fire")
	}
	return s.MemRegistry.Holding(ctx, tenant)
}

func newRegistry(t *testing.T, store shuffle.RegistryStore) *shuffle.Registry {
	t.Helper()
	r, err := shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: store, Overlap: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// While the store of new hands is down, tenants keep their old ones, and the
// store is not asked by every request.
func TestTenantsKeepTheirHandsWhileNewOnesCantBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		store := new(flakyStore)
		r := newRegistry(t, store)
		hands := func() *handhttp.Dealt {
			s, err := shuffle.NewSnapshot(c.config)
			if err != nil {
				t.Fatal(err)
			}
			h, err := handhttp.NewDealt(r.Dealer(s), c.urls)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		rt := c.transport(handhttp.Config{Hands: hands()})
		if r := get(rt, "acme"); !r.ok() {
			t.Fatalf("%+v", r)
		}
		c.config.Workers[0].Weight = 2 // another version
		store.down = true
		rt.Use(hands())
		store.asked = 0
		for range 100 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if store.asked > 2 {
			t.Errorf("the store was asked %d times within %s", store.asked, time.Second)
		}
		stopOf(t, get(rt, "newcomer").err, shuffle.ErrStore)
		store.down = false
		time.Sleep(2 * time.Second)
		get(rt, "acme")
		store.asked = 0
		for range 100 {
			get(rt, "acme")
		}
		if store.asked != 0 {
			t.Errorf("the store was asked %d times for a hand that is known", store.asked)
		}
	})
}

// A member that is gone and has no address is no failure of a call.
func TestMembersWithoutAddress(t *testing.T) {
	workers := shuffle.Even("w1", "w2", "w3")
	workers[1].Weight = 0
	s, err := shuffle.NewSnapshot(shuffle.Config{Size: 2, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	all, err := shuffle.NewSnapshot(shuffle.Config{Size: 3, Workers: shuffle.Even("w1", "w2", "w3")})
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t, new(shuffle.MemRegistry))
	if _, err := r.Deal(t.Context(), all, "acme"); err != nil {
		t.Fatal(err)
	}
	hands, err := handhttp.NewDealt(r.Dealer(s), map[string]string{"w1": "http://w1", "w3": "http://w3"})
	if err != nil {
		t.Fatal(err)
	}
	members, err := hands.Hand(t.Context(), "acme")
	if err != nil || len(members) != 2 {
		t.Errorf("members are %v, %v; want the two that are there", members, err)
	}
	if _, err := handhttp.NewDealt(s, map[string]string{"w1": "http://w1"}); !errors.Is(err, shuffle.ErrInvalid) {
		t.Errorf("a worker without an address: %v", err)
	}
}
