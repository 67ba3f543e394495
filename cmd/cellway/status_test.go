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

// Two changes of one cell within ten minutes count as two.
func TestChangesOfEndpointsAreCountedAndNotCells(t *testing.T) {
	for n, want := range map[uint32]string{1: "1 cell gets other endpoints", 2: "endpoints of cells change 2 times"} {
		if got := strings.Join(tellCounts(api.Counts{CellsRepointed: n}), ", "); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
