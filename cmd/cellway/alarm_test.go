package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/boot"
)

func TestEveryAlarmHasItsMend(t *testing.T) {
	text, err := os.ReadFile("../../internal/control/alarms.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`AlarmCode = "([a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
		if alarmMends[m[1]] == "" {
			t.Errorf("alarm %s has no mend", m[1])
		}
	}
	for code := range alarmMends {
		if !known[code] {
			t.Errorf("there is no alarm %s to mend", code)
		}
	}
	if len(known) < 10 {
		t.Errorf("only %d alarms were found", len(known))
	}
}

func TestAMendNamesWhatTheAlarmIsAbout(t *testing.T) {
	got := mended([]api.Alarm{{Code: "router_missing", Subject: "router/eu-1"}, {Code: "of_tomorrow", Subject: "x"}})
	if !strings.HasSuffix(got[0].Mend, "cellway router forget eu-1") || got[1].Mend == "" {
		t.Errorf("%+v", got)
	}
}

// A place with a newer map than this store takes none until the restore is
// confirmed; its disk is well.
func TestTheMendOfAPlaceThatTakesNoMapIsTheRestoreWhileItWaits(t *testing.T) {
	sink := api.Alarm{Code: "sink_failing", Subject: "sink/dir"}
	if got := mended([]api.Alarm{sink}); !strings.HasPrefix(got[0].Mend, "make the folder") {
		t.Error(got[0].Mend)
	}
	if got := mended([]api.Alarm{{Code: "publishing_halted"}, sink}); !strings.HasPrefix(got[1].Mend, "confirm the restore") {
		t.Error(got[1].Mend)
	}
}

func TestALargeFleetIsStillOneGlance(t *testing.T) {
	var o overview
	for range 200 {
		o.Cells = append(o.Cells, overviewCell{ID: "cell-x", State: 1, Admit: 100})
	}
	o.Cells[7].Admit = 5
	o.Cells[8].add(api.CellTraffic{Requests: 10, RefusedOpen: 9, TransportFailures: 1, Breaker: "open"})
	o.Cells[9].add(api.CellTraffic{Requests: 10, Mismatches: 4, Breaker: "closed"})
	var out strings.Builder
	a := &app{output: "table", out: boot.NewOutput(&out)}
	a.tellOverview(o, time.Now())
	if n := strings.Count(out.String(), "\n"); n > 15 || !strings.Contains(out.String(), "and 197 more, active and admitting 100 %") || !strings.Contains(out.String(), "█·········") ||
		!strings.Contains(out.String(), "10 of 10         open at 1 of 1") || !strings.Contains(out.String(), "0 of 10                          4") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
