package control_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestEachVersionFollowsTheOneBefore(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 3)
	var last *routemap.Map
	for i := range 6 {
		_, c, err := s.Drain(t.Context(), by, "cell-001", uint8(90-i))
		if err != nil {
			t.Fatal(err)
		}
		m := published(t, s, c)
		if last != nil {
			if man := m.Manifest(); man.Parent != last.Version() || man.ParentDigest != last.Manifest().Digest() {
				t.Errorf("map %v follows %v, want %v", m.Version(), man.Parent, last.Version())
			}
			if err := routemap.Accept(last, m); err != nil {
				t.Error(err)
			}
		}
		last = m
	}
}

func TestOrdinaryChangesGatherAndDrainsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		time.Sleep(time.Second)
		start, first := time.Now(), s.Newest().Map.Version()
		var c control.Change
		for i := range 50 {
			var err error
			if _, c, err = s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		m := published(t, s, c)
		versions := int(m.Version() - first)
		if most := int(time.Since(start)/(200*time.Millisecond)) + 2; versions > most {
			t.Errorf("%d versions in %v", versions, time.Since(start))
		}
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "one-more"}, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start = time.Now()
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		published(t, s, c)
		if d := time.Since(start); d != 0 {
			t.Errorf("a drain waited %v for another's change", d)
		}
	})
}

func TestReopenedServiceGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := open(t, st)
		fleet(t, s, routemap.Settings{Strict: true}, 3)
		var c control.Change
		for i := range 20 {
			var err error
			if _, c, err = s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0); err != nil {
				t.Fatal(err)
			}
		}
		m := published(t, s, c)
		again := open(t, st)
		if got := again.Newest().Map; got.Version() < m.Version() {
			t.Fatalf("the new one starts at %v, %v was published", got.Version(), m.Version())
		}
		for i := range 20 {
			key := cellway.Key(fmt.Sprintf("t%d", i))
			was, is := m.Lookup(key), again.Accepted().Lookup(key)
			if was.Cell.ID != is.Cell.ID || was.Epoch != is.Epoch {
				t.Errorf("%s was in %s at %v, is in %s at %v", key, was.Cell.ID, was.Epoch, is.Cell.ID, is.Epoch)
			}
		}
		// Both write to the one store from now on.
		for i := range 10 {
			for _, node := range []*control.Service{s, again} {
				id := cellway.TenantID(fmt.Sprintf("more-%d-%p", i, node))
				if _, c, err := node.PutTenant(t.Context(), by, control.Tenant{ID: id}, 0); err != nil {
					t.Fatal(err)
				} else if r := published(t, again, c).Lookup(cellway.Key(id)); r.Code != "" {
					t.Errorf("%s answers %q", id, r.Code)
				}
			}
		}
	})
}

func TestWaitHoldsUntilEveryLiveRouterServesTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(control.Lease)
		report := func(id string, v cellway.Version) {
			t.Helper()
			if err := s.Report(t.Context(), id, control.Report{Version: v}); err != nil {
				t.Fatal(err)
			}
		}
		v := s.Newest().Map.Version()
		if r := s.Reach(v); r.Reached || r.Why == "" {
			t.Errorf("reached with no routers: %+v", r)
		}
		report("a", v)
		report("b", v)
		if r := s.Reach(v); !r.Reached || r.Routers != 2 {
			t.Errorf("both serve it: %+v", r)
		}
		_, c, err := s.Drain(t.Context(), by, "cell-001", 50)
		if err != nil {
			t.Fatal(err)
		}
		next := published(t, s, c).Version()
		report("a", next)
		if r := s.Reach(next); r.Reached || len(r.Behind) != 1 || r.Behind[0] != "b" {
			t.Errorf("b is behind: %+v", r)
		}
		go func() { time.Sleep(3 * time.Second); report("b", next) }()
		start := time.Now()
		got, r := s.Wait(t.Context(), c.Seq)
		if got != next || !r.Reached || time.Since(start) != 3*time.Second {
			t.Errorf("waited %v for %v: %+v", time.Since(start), got, r)
		}
		// b falls silent: named as missing, then no longer expected.
		time.Sleep(control.Lease)
		report("a", next)
		if r := s.Reach(next); r.Reached || len(r.Missing) != 1 || r.Missing[0] != "b" {
			t.Errorf("b is silent: %+v", r)
		}
		time.Sleep(10 * time.Minute)
		report("a", next)
		if r := s.Reach(next); !r.Reached {
			t.Errorf("b is long gone: %+v", r)
		}
	})
}

func TestReachIsFalseUntilALeaseAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		v := s.Newest().Map.Version()
		if err := s.Report(t.Context(), "a", control.Report{Version: v}); err != nil {
			t.Fatal(err)
		}
		if r := s.Reach(v); r.Reached {
			t.Error("vouched for routers it can't know of yet")
		}
	})
}

func TestReachWaitsForNobodyElseWhereAllRoutersAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t, memstore.New())
		cfg.Routers = []string{"a", "b"}
		s, stop := startWith(t, cfg)
		defer stop()
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		v := s.Newest().Map.Version()
		for _, tt := range []struct {
			router string
			all    bool
		}{{"a", false}, {"b", true}} {
			if err := s.Report(t.Context(), tt.router, control.Report{Version: v}); err != nil {
				t.Fatal(err)
			}
			if r := s.Reach(v); r.Reached != tt.all {
				t.Errorf("after the report of %s: %+v", tt.router, r)
			}
		}
	})
}

func TestRollbackRestoresRecordsAndNoOwner(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	ctx := t.Context()
	acme, c, err := s.PutTenant(ctx, by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := published(t, s, c)
	bad := cell(1)
	bad.Endpoints = []string{"http://127.0.0.1:1"}
	status, _ := s.Cell(ctx, "cell-001")
	if _, _, err := s.PutCell(ctx, by, bad, status.Revision); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutTenant(ctx, by, control.Tenant{ID: "later"}, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Drain(ctx, by, "cell-002", 0); err != nil {
		t.Fatal(err)
	}
	// The mistake and its mending are of one cell: nobody is asked.
	r, c, err := s.RollbackTo(ctx, by, old.Version())
	if err != nil {
		t.Fatal(err)
	}
	m := published(t, s, c)
	if m.Version() <= old.Version() {
		t.Errorf("rolled back to %v as %v", old.Version(), m.Version())
	}
	if got := m.Cell("cell-001").Endpoints[0]; got != old.Cell("cell-001").Endpoints[0] {
		t.Errorf("endpoint is %s", got)
	}
	if status, _ := s.Cell(ctx, "cell-001"); status.Endpoints[0] != old.Cell("cell-001").Endpoints[0] {
		t.Errorf("the record says %s", status.Endpoints[0])
	}
	if m.Cell("cell-002").Admit != 0 || len(r.LeftCells) != 1 || r.LeftCells[0] != "cell-002" {
		t.Errorf("the drain since: admit %d, left %v", m.Cell("cell-002").Admit, r.LeftCells)
	}
	if len(r.LeftKeys) != 1 || r.LeftKeys[0] != "later" || m.Lookup("later").Code != "" {
		t.Errorf("the tenant since: left %v, answers %q", r.LeftKeys, m.Lookup("later").Code)
	}
	if got := m.Lookup("acme"); got.Cell.ID != acme.Cell {
		t.Errorf("acme went to %s", got.Cell.ID)
	}
}

func TestRestoredStoreLetsOnlyDrainsOutUntilConfirmed(t *testing.T) {
	st := memstore.New()
	first := open(t, st)
	fleet(t, first, routemap.Settings{Mapping: routemap.Full}, 4)
	_, c, err := first.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := published(t, first, c)
	if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
		t.Fatal(err)
	}
	s := open(t, st)
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta"}, 0); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("placement after a restore: %v", err)
	}
	_, _, err = s.Drain(t.Context(), by, "cell-001", 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Await(t.Context(), old.Version())
	if err != nil || p.Map.Cell("cell-001").Admit != 0 {
		t.Fatalf("drain after a restore: %v", err)
	}
	if p.Map.Version().Incarnation() <= old.Version().Incarnation() {
		t.Errorf("version %v after %v", p.Map.Version(), old.Version())
	}
	// A router has gone further than the store knows.
	ahead := cellway.NewVersion(p.Map.Version().Incarnation()+7, 3)
	if err := s.Report(t.Context(), "r1", control.Report{Version: ahead, Digest: routemap.Digest{1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.ConfirmRestore(t.Context(), by, p.Map.Version(), p.Version.Manifest.Digest(), true); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("confirmed a map that is not the newest: %v", err)
	}
	if err := s.ConfirmRestore(t.Context(), by, ahead, routemap.Digest{1}, true); err != nil {
		t.Fatal(err)
	}
	next, err := s.Await(t.Context(), p.Map.Version())
	if err != nil || next.Map.Version() <= ahead {
		t.Fatalf("after the confirmation %v was published, routers have %v", next.Map.Version(), ahead)
	}
	if next.Map.Cell("cell-001").Admit != 0 {
		t.Error("the drain was lost")
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta"}, 0); err != nil {
		t.Errorf("placement after the confirmation: %v", err)
	}
	if e := s.Accepted().Lookup("beta").Epoch; e.Incarnation() <= ahead.Incarnation() {
		t.Errorf("epoch %v may have been used before %v", e, ahead)
	}
}

func TestRouterWithAHigherVersionHaltsPublishing(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	v := s.Newest()
	for v == nil {
		v, _ = s.Await(t.Context(), 0)
	}
	if err := s.Report(t.Context(), "r1", control.Report{Version: v.Map.Version() + 1000}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a write with another memory ahead: %v", err)
	}
	st, err := s.RestoreState(t.Context())
	if err != nil || st.Restored == nil || st.Highest.Router != "r1" {
		t.Errorf("state %+v, %v", st, err)
	}
}
