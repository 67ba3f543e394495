package control_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestCellThatRoutersGetNoAnswerFromRaisesAnAlarmThatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		report := func(id string, requests, failed int64) {
			t.Helper()
			rep := control.Report{Traffic: []control.CellTraffic{{Cell: "cell-001", Requests: requests, Failed: failed}, {Cell: "cell-002", Requests: requests}}}
			if err := s.Report(t.Context(), id, rep); err != nil {
				t.Fatal(err)
			}
		}
		report("a", 1000, 9) // below one in a hundred
		if a := alarm(s, control.AlarmCell); a != nil {
			t.Errorf("alarm %+v for the odd failure", a)
		}
		begin := time.Now()
		report("a", 20, 5)
		report("b", 10, 1)
		a := alarm(s, control.AlarmCell)
		if a == nil || a.Subject != "cell/cell-001" || !a.Since.Equal(begin) || !strings.Contains(a.Message, "6 of 30 requests") || !strings.Contains(a.Message, "a, b") {
			t.Fatalf("alarm %+v", a)
		}
		// Behind an open breaker hardly a request tries.
		for range 5 {
			time.Sleep(20 * time.Second)
			report("a", 1000, 1)
			report("b", 1000, 0)
		}
		if a := alarm(s, control.AlarmCell); a == nil || !a.Since.Equal(begin) {
			t.Errorf("alarm %+v, want the one of the start", a)
		}
		for range 3 {
			report("a", 1000, 0)
			time.Sleep(20 * time.Second)
		}
		if a := alarm(s, control.AlarmCell); a != nil {
			t.Errorf("alarm %+v a minute after the last failure", a)
		}
	})
}

func TestCellWhoseGuardRefusesWhatTheMapSendsRaisesAnAlarmThatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		report := func(id string, mismatches int64) {
			t.Helper()
			rep := control.Report{Traffic: []control.CellTraffic{{Cell: "cell-001", Requests: 1000}, {Cell: "cell-002", Requests: 1000, Mismatches: mismatches}}}
			if err := s.Report(t.Context(), id, rep); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		report("a", 1) // each is one too many
		time.Sleep(10 * time.Second)
		report("b", 7)
		a := alarm(s, control.AlarmMismatch)
		if a == nil || a.Subject != "cell/cell-002" || !a.Since.Equal(begin) || !strings.Contains(a.Message, "8 of 2000 requests") || !strings.Contains(a.Message, "a, b") {
			t.Fatalf("alarm %+v", a)
		}
		if a := alarm(s, control.AlarmCell); a != nil {
			t.Errorf("alarm %+v of a cell that answers", a)
		}
		for range 4 {
			report("a", 0)
			report("b", 0)
			time.Sleep(20 * time.Second)
		}
		if a := alarm(s, control.AlarmMismatch); a != nil {
			t.Errorf("alarm %+v a minute after the last mismatch", a)
		}
	})
}

func TestStartOfAControlPlaneRaisesNoAlarmForRoutersItHasNotHeardYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		if err := s.Report(t.Context(), "a", control.Report{Version: cellway.Version(0)}); err != nil {
			t.Fatal(err)
		}
		stop()
		time.Sleep(2 * time.Minute)
		again := open(t, st)
		time.Sleep(control.Lease - time.Second)
		for _, a := range again.Alarms() {
			t.Errorf("alarm %+v within the first lease", a)
		}
		time.Sleep(2 * time.Second)
		for _, code := range []control.AlarmCode{control.AlarmMissing, control.AlarmNoRouter} {
			if alarm(again, code) == nil {
				t.Errorf("no alarm %s after the first lease", code)
			}
		}
	})
}
