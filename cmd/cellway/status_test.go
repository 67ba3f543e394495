package main

import (
	"strings"
	"testing"

	"github.com/cellway/cellway/api"
)

func TestNobodyIsUpToDateWithoutAMap(t *testing.T) {
	o := overview{Routers: map[string][]string{"up_to_date": {"router-1"}, "silent": {"router-2"}}}
	if got, want := (look{}).tellRouters(o), "1 waits for the first map, 1 silent (router-2)"; got != want {
		t.Errorf("before the first map: %q, want %q", got, want)
	}
	o.Map.Version = 7
	if got, want := (look{}).tellRouters(o), "1 up to date, 1 silent (router-2)"; got != want {
		t.Errorf("with a map: %q, want %q", got, want)
	}
}

// A router that has not reported the newest map yet is no trouble, until an alarm
// says that it takes too long.
func TestARouterIsBehindWhenAnAlarmSaysSo(t *testing.T) {
	o := overview{Routers: map[string][]string{"up_to_date": {"router-1"}, "behind": {"router-2", "router-3"}}}
	o.Map.Version = 7
	if got, want := (look{}).tellRouters(o), "1 up to date, 2 on the way to the newest map (router-2, router-3)"; got != want {
		t.Errorf("right after a change: %q, want %q", got, want)
	}
	o.Alarms = mended([]api.Alarm{{Code: "router_behind", Subject: "router/router-3"}, {Code: "router_behind", Subject: "cell/router-2"}})
	if got, want := (look{}).tellRouters(o), "1 up to date, 1 on the way to the newest map (router-2), 1 behind (router-3)"; got != want {
		t.Errorf("with an alarm: %q, want %q", got, want)
	}
}

func TestCellsWithOtherEndpointsAreCounted(t *testing.T) {
	for n, want := range map[uint32]string{1: "1 cell gets other endpoints", 2: "2 cells get other endpoints"} {
		if got := strings.Join(tellCounts(api.Counts{CellsRepointed: n}), ", "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestNothingFailedWhereNothingWasAsked(t *testing.T) {
	for want, c := range map[string]overviewCell{
		"":         {},
		"-":        {Routers: 2},
		"0 of 3":   {Routers: 1, Requests: 3},
		"12 of 12": {Routers: 1, Requests: 12, Failed: 12},
	} {
		if got := c.health(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

func TestWhatTheCausesCountIsToldOnce(t *testing.T) {
	for _, tt := range []struct {
		counts api.Counts
		told   bool
	}{
		{api.Counts{Entries: 9, Buckets: 16, Cells: 2, MappingChanged: true}, true},
		{api.Counts{Buckets: 16, BucketsMoved: 4, MappingChanged: true}, false},
		{api.Counts{EntriesAdded: 1, MappingChanged: true}, false},
	} {
		if got := toldByCauses(tt.counts, []api.Cause{{Name: "mapping_changed", Count: 1}}); got != tt.told {
			t.Errorf("%+v: %t", tt.counts, got)
		}
	}
}

func TestAKeyThatLeavesItsBucketIsNoShareOfTheEntries(t *testing.T) {
	for want, n := range map[string]api.Counts{
		"1 key gets another owner, 1 entry comes": {EntriesMoved: 1, EntriesAdded: 1},
		"1 entry of 3 moves":                      {EntriesMoved: 1, Entries: 3},
		"no key gets another owner":               {Entries: 3},
	} {
		if got := strings.Join(tellCounts(n), ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
