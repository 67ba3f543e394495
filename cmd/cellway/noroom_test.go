package main

import (
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

func TestWhatNoCellTakesIsToldHowItFindsOne(t *testing.T) {
	one := func(state cellway.CellState, change func(*api.Cell)) api.Cell {
		c := api.Cell{ID: "cell-001", Admit: 100}
		c.State, c.Endpoints = state, []string{"http://10.0.0.1:8080"}
		if change != nil {
			change(&c)
		}
		return c
	}
	for name, tt := range map[string]struct {
		in    api.TenantSettings
		cells []api.Cell
		want  string
	}{
		"no cell":          {api.TenantSettings{}, nil, "first cellway cell add CELL --endpoint URL --state active"},
		"a new cell":       {api.TenantSettings{}, []api.Cell{one(cellway.CellNew, nil)}, "first cellway cell activate cell-001"},
		"a drained cell":   {api.TenantSettings{Residency: "eu"}, []api.Cell{one(cellway.CellActive, func(c *api.Cell) { c.Admit = 25 })}, "first cellway undrain cell-001 --to 100"},
		"another region":   {api.TenantSettings{Residency: "e u"}, []api.Cell{one(cellway.CellActive, nil)}, "cellway cell set CELL --region 'e u'; else add one: cellway cell add CELL --endpoint URL --region 'e u' --state active"},
		"another tier":     {api.TenantSettings{Tier: "gold"}, []api.Cell{one(cellway.CellActive, func(c *api.Cell) { c.Tiers = []string{"free"} })}, "cellway cell set CELL --add-tier gold"},
		"no tier":          {api.TenantSettings{}, []api.Cell{one(cellway.CellActive, func(c *api.Cell) { c.Tiers = []string{"free"} })}, "give the tenant one with --tier"},
		"one cell for it":  {api.TenantSettings{Dedicated: true, Residency: "eu"}, []api.Cell{one(cellway.CellActive, func(c *api.Cell) { c.Region, c.Tenants = "eu", 3 })}, "to add one: cellway cell add CELL --endpoint URL --region eu --state active"},
		"full":             {api.TenantSettings{}, []api.Cell{one(cellway.CellActive, func(c *api.Cell) { c.Capacity = api.Vector{"tenants": 1} })}, "cellway cell set CELL --capacity RESOURCE=AMOUNT"},
		"taken by another": {api.TenantSettings{}, []api.Cell{one(cellway.CellActive, nil)}, "to add a cell: cellway cell add CELL --endpoint URL --state active"},
	} {
		if got := roomFor(tt.in, tt.cells); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
