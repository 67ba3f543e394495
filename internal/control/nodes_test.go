package control_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// Two control planes share a store. Each version has one number and one content,
// both announce all of them soon, nobody sees an error, and routers don't get a
// new base for each.
func TestTwoNodesPublishOneChainOfVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		a := open(t, st)
		fleet(t, a, routemap.Settings{Mapping: routemap.Full}, 4)
		time.Sleep(time.Second)
		b := open(t, st)
		if err := b.Fold(t.Context()); err != nil { // other bytes, the same map
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i, s := range []*control.Service{a, b} {
			wg.Go(func() {
				for j := range 60 {
					if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d-%d", i, j))}, 0); err != nil {
						t.Error(err)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(3 * time.Second)
		if va, vb := a.Newest(), b.Newest(); va.Map.Version() != vb.Map.Version() || va.Version.Manifest.Digest() != vb.Version.Manifest.Digest() {
			t.Errorf("one has %v, the other %v", va.Map.Version(), vb.Map.Version())
		}
		if a.Accepted().Keys() != 120 {
			t.Errorf("%d keys", a.Accepted().Keys())
		}
		bases := map[routemap.Digest]bool{}
		all, err := a.Versions(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			bases[v.Manifest.Base.Digest] = true
		}
		if len(bases) > 4 {
			t.Errorf("%d versions have %d bases", len(all), len(bases))
		}
		for _, s := range []*control.Service{a, b} {
			agree(t, s)
			if n := s.Stats().PublishErrors; n > 0 {
				t.Errorf("%d errors of publishing", n)
			}
			for _, alarm := range s.Alarms() {
				t.Errorf("alarm %+v", alarm)
			}
		}
	})
}

// A drain at one node reaches the routers of the other.
func TestOtherNodeServesWhatOnePublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		a := open(t, st)
		fleet(t, a, routemap.Settings{}, 3)
		time.Sleep(time.Second)
		b := open(t, st)
		_, c, err := a.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if published(t, b, c).Cell("cell-001").Admit != 0 {
			t.Error("not drained")
		}
		if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// A node that was paused in the middle of publishing comes back with an old
// plan: it can't make it the newest, and takes over what is.
func TestPausedPublisherDoesNotBringBackAnOldMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		a := open(t, inner)
		fleet(t, a, routemap.Settings{Mapping: routemap.Full}, 3)
		time.Sleep(time.Second)
		paused := &pausing{Store: inner, resume: make(chan struct{})}
		b := open(t, paused)
		paused.arm.Store(true)
		if _, _, err := b.PutTenant(t.Context(), by, control.Tenant{ID: "old"}, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // b hangs before its parts are written
		for i := range 10 {
			register(t, a, cellway.TenantID(fmt.Sprintf("t%d", i)))
			time.Sleep(time.Second)
		}
		newest := a.Newest().Map.Version()
		close(paused.resume)
		time.Sleep(3 * time.Second)
		if got := b.Newest().Map.Version(); got != newest {
			t.Errorf("the paused one has %v, the newest is %v", got, newest)
		}
		agree(t, a)
		agree(t, b)
	})
}
