package control_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestReviewThatPassesRaisesAnAlarmAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		o := override("acme", cellway.Quarantine, "")
		due := time.Now().Add(time.Hour).Truncate(time.Second)
		o.ReviewBy = due
		put(t, s, o)
		time.Sleep(time.Hour - time.Minute)
		before := s.Accepted()
		if a := alarm(s, control.AlarmOverdue); a != nil || s.Stats().Overdue != 0 {
			t.Errorf("too early: %+v", a)
		}
		time.Sleep(3 * time.Minute)
		a := alarm(s, control.AlarmOverdue)
		if a == nil || a.Subject != "override/acme" || !a.Since.Equal(due) || s.Stats().Overdue != 1 {
			t.Errorf("alarm %+v, %d overdue", a, s.Stats().Overdue)
		}
		if s.Accepted() != before {
			t.Error("the map changed")
		}
		o.ReviewBy = due.Add(720 * time.Hour)
		put(t, s, o)
		time.Sleep(time.Second) // looked at right after
		if a := alarm(s, control.AlarmOverdue); a != nil {
			t.Errorf("after a review: %+v", a)
		}
	})
}

func TestAlarmsForRoutersThatAreBehindOrSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		defer stop()
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		old := s.Newest().Map.Version()
		report := func(id string, v cellway.Version) {
			t.Helper()
			if err := s.Report(t.Context(), id, control.Report{Version: v}); err != nil {
				t.Fatal(err)
			}
		}
		report("a", old)
		report("b", old)
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := s.Newest().Map.Version()
		for range 6 { // a follows, b does not
			report("a", next)
			report("b", old)
			time.Sleep(15 * time.Second)
		}
		report("b", old)
		if a := alarm(s, control.AlarmBehind); a == nil || a.Subject != "router/b" || time.Since(a.Since) < time.Minute {
			t.Errorf("alarm %+v", a)
		}
		if st := s.Stats(); st.RoutersLive != 2 || st.RoutersBehind != 1 {
			t.Errorf("%d live, %d behind", st.RoutersLive, st.RoutersBehind)
		}
		report("b", next)
		time.Sleep(control.Lease + time.Second)
		report("b", next)
		if a := alarm(s, control.AlarmMissing); a == nil || a.Subject != "router/a" {
			t.Errorf("alarm %+v", a)
		}
		if a := alarm(s, control.AlarmBehind); a != nil {
			t.Errorf("alarm %+v though b has followed", a)
		}
		time.Sleep(time.Minute)
		if a := alarm(s, control.AlarmNoRouter); a == nil {
			t.Error("no alarm though none is live")
		}
		// Gone in order is no alarm; silent for long is forgotten.
		if err := s.Report(t.Context(), "b", control.Report{Version: next, Leaving: true}); err != nil {
			t.Fatal(err)
		}
		stop()
		time.Sleep(8 * 24 * time.Hour)
		again := open(t, st)
		if got := again.Routers(); len(got) != 1 || got[0].ID != "a" {
			t.Errorf("known are %+v, want a, which did not leave", got)
		}
		time.Sleep(2 * time.Minute)
		if got := again.Routers(); len(got) != 0 {
			t.Errorf("known are still %+v", got)
		}
		for _, a := range again.Alarms() {
			t.Errorf("alarm %+v", a)
		}
	})
}

func TestStoreAndPublishingThatFailRaiseAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faultstore.New(memstore.New())
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		st.SetDown(true)
		time.Sleep(5 * time.Minute)
		for _, code := range []control.AlarmCode{control.AlarmStore, control.AlarmPublishing} {
			if a := alarm(s, code); a == nil || time.Since(a.Since) < 4*time.Minute || a.Message == "" {
				t.Errorf("%s: alarm %+v", code, a)
			}
		}
		if stats := s.Stats(); stats.StoreErrors == 0 || stats.PublishErrors == 0 || stats.Alarms == 0 {
			t.Errorf("stats %+v", stats)
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); !errors.Is(err, cellway.ErrStoreDown) {
			t.Errorf("drain: %v", err)
		}
		st.SetDown(false)
		time.Sleep(2 * time.Second)
		// Reads work; whether writes do shows when one has succeeded.
		if a := alarm(s, control.AlarmStore); a == nil || a.Subject != "writes" {
			t.Errorf("alarm %+v before anything was written", a)
		}
		if err := s.Report(t.Context(), "r1", control.Report{}); err != nil {
			t.Fatal(err)
		}
		for _, code := range []control.AlarmCode{control.AlarmStore, control.AlarmPublishing} {
			if a := alarm(s, code); a != nil {
				t.Errorf("alarm %+v though it works again", a)
			}
		}
		if err := s.Report(t.Context(), "r1", control.Report{Leaving: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for _, a := range s.Alarms() {
			t.Errorf("alarm %+v though it works again", a)
		}
	})
}

func TestStatsTellOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		if _, _, err := s.PutCell(t.Context(), by, control.Cell{Cell: cellway.Cell{ID: "cell-009"}}, 0); err != nil {
			t.Fatal(err)
		}
		for _, id := range []cellway.TenantID{"a", "b", "c"} {
			register(t, s, id)
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		st := s.Stats()
		if st.Keys != 3 || st.Cells["active"] != 2 || st.Cells["cordoned"] != 1 || st.Cells["new"] != 1 {
			t.Errorf("%d keys, cells %v", st.Keys, st.Cells)
		}
		if st.Versions == 0 || st.Waiting != 0 || st.OverlayBytes == 0 || st.BaseBytes == 0 || st.Halted {
			t.Errorf("stats %+v", st)
		}
		end, err := s.LoggedChange(t.Context(), s.Newest().Seq)
		if err != nil || st.PublishLatency.Count != end.Seq || st.PublishLatency.AtMost[.2] != st.PublishLatency.Count {
			t.Errorf("latencies %+v of %d changes, %v", st.PublishLatency, end.Seq, err)
		}
	})
}
