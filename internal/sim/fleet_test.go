package sim

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// tenCells is a map of ten cells, two to a zone, which own ten buckets each.
func tenCells(t *testing.T) *routemap.Map {
	t.Helper()
	c := routemap.Content{Settings: routemap.Settings{
		Fleet: "shop", Mapping: routemap.Buckets, Buckets: 128,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}},
	}}
	for i := range 10 {
		c.Cells = append(c.Cells, cellway.Cell{
			ID: cellway.CellID(fmt.Sprintf("cell-%03d", i)), State: cellway.CellActive, Admit: 100, Zone: string(rune('a' + i/2)),
			Endpoints: []string{fmt.Sprintf("http://10.0.0.%d:80", i+1)}, Tags: map[string]string{"database": []string{"one", "two"}[i%2]},
		})
	}
	for b := range c.Buckets {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[b%10].ID})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func usual() FleetConfig {
	return FleetConfig{
		Workers: 20, Hand: 3, Trials: 40, Seed: 1, Detect: 5, Repair: 10, Waves: []int{10, 30, 100}, Bake: 30,
		Routers: 4, Soak: 0.5, Gate: 0.1, Utilization: 0.7,
		Storm: Storm{Outage: 30, Attempts: 4, Backoff: 1, Budget: 0.1, Waste: 1, Seconds: 900},
	}
}

func outcome(t *testing.T, r *FleetReport, kind, what string) Outcome {
	t.Helper()
	for _, o := range r.Outcomes {
		if o.Case == kind && o.What == what {
			return o
		}
	}
	t.Fatalf("no outcome %s, %s", kind, what)
	return Outcome{}
}

func drawn(t *testing.T, deviation float64) (*Model, *FleetReport) {
	t.Helper()
	m, err := DrawModel(t.Context(), tenCells(t), 20_000, deviation, 1, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fleet(t.Context(), m, usual(), Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

func TestCellsContainWhatGoesWrong(t *testing.T) {
	_, r := drawn(t, 0)
	cell := outcome(t, r, "cell", "a cell")
	near(t, "mean cell", cell.Down.Tenants, 0.1, 1e-9)
	near(t, "tenant-minutes of a cell", cell.Lost, 0.1*20_000*15, 1e-9)
	near(t, "load-minutes of a cell", cell.LostLoad, 0.1*15, 1e-9)
	if cell.Worst.Tenants < 0.1 || cell.Worst.Tenants > 0.13 {
		t.Errorf("the fullest cell has %v of the tenants, want a little above a tenth", cell.Worst.Tenants)
	}
	if o := outcome(t, r, "cell", "one stack for all"); o.Lost != 20_000*15 {
		t.Errorf("one stack loses %v tenant-minutes, want all of 15 minutes", o.Lost)
	}
	zone := outcome(t, r, "dependency", "zone a (cell-000, cell-001)")
	near(t, "a zone of two cells", zone.Down.Tenants, 0.2, 0.15)
	database := outcome(t, r, "dependency", "database one (cell-000, cell-002, cell-004, 2 more)")
	near(t, "a database of five cells", database.Down.Tenants, 0.5, 0.1)
}

func TestHandsContainAPoisonTenant(t *testing.T) {
	_, r := drawn(t, 0)
	cells, hands := outcome(t, r, "poison", "cells"), outcome(t, r, "poison", "cells, hands of 3 of 20")
	near(t, "a poison tenant's cell", cells.Down.Tenants, 0.1, 0.1)
	// 1 of 1,140 hands, and the tenant itself.
	near(t, "whole hands", hands.Down.Tenants, 0.1/1140+1./20_000, 0.5)
	near(t, "parts of hands", hands.Degraded.Tenants, 0.1*(1-680./1140), 0.1)
	if hands.Lost >= cells.Lost/50 {
		t.Errorf("hands lose %v tenant-minutes, cells alone %v", hands.Lost, cells.Lost)
	}
}

func TestWavesContainABadRelease(t *testing.T) {
	m, r := drawn(t, 0)
	first := outcome(t, r, "deploy", "in waves, shows from wave 1 (10 %)")
	near(t, "first wave", first.Down.Tenants, 0.1, 0.1)
	third := outcome(t, r, "deploy", "in waves, shows from wave 3 (100 %)")
	near(t, "last wave", third.Down.Tenants, 1, 1e-9)

	// Detected too late, the next wave has it, too: for as much less as it came later.
	cfg := usual()
	cfg.Detect = 45
	late, err := Fleet(t.Context(), m, cfg, Run{})
	if err != nil {
		t.Fatal(err)
	}
	o := outcome(t, late, "deploy", "in waves, shows from wave 1 (10 %)")
	near(t, "two waves", o.Down.Tenants, 0.3, 0.1)
	near(t, "tenant-minutes of two waves", o.Lost, 20_000*(0.1*55+0.2*25), 0.1)
}

func TestTheGateAndRingZeroContainABadMap(t *testing.T) {
	m, r := drawn(t, 0)
	gate := outcome(t, r, "map", "passes the gate, all routers at once")
	near(t, "what passes the gate", gate.Down.Tenants, 0.1, 0.05)
	soaked := outcome(t, r, "map", "passes the gate and a soak of 0.5 min")
	near(t, "found after the soak", soaked.Lost, gate.Down.Tenants*20_000*(14.5+0.5/4), 1e-9)
	// Whoever finds it in the soak is quicker than those who take five minutes.
	near(t, "found in the soak", outcome(t, r, "map", "passes the gate, caught in ring 0").Lost, gate.Down.Tenants*20_000*10.5/4, 1e-9)
	cfg := usual()
	cfg.Detect = 0.25
	quick, err := Fleet(t.Context(), m, cfg, Run{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range quick.Outcomes {
		if strings.Contains(o.What, "a soak of") {
			t.Errorf("a map that is found within the soak has the outcome %q", o.What)
		}
	}
	ring := outcome(t, quick, "map", "passes the gate, caught in ring 0")
	near(t, "found in ring 0", ring.Lost, gate.Down.Tenants*20_000*10.25/4, 1e-9)
	if ring.Down.Tenants != 0 || ring.Degraded.Tenants != gate.Down.Tenants {
		t.Errorf("in ring 0 %+v; want nobody down, those moved degraded", ring)
	}
}

func TestARetryBudgetEndsAStorm(t *testing.T) {
	m, r := drawn(t, 0)
	if o := outcome(t, r, "storm", "a cell, 4 attempts"); o.Minutes < 0.75 || !r.Storms[0].Recovers {
		t.Errorf("at 70 %% of the capacity, 4 attempts: %+v; want a storm that outlives the outage, and ends", o)
	}
	cfg := usual()
	cfg.Utilization = 0.85
	r, err := Fleet(t.Context(), m, cfg, Run{})
	if err != nil {
		t.Fatal(err)
	}
	free, held := r.Storms[0], r.Storms[1]
	if free.Recovers || free.Amplification < 2 {
		t.Errorf("without a budget: %v times the tries, recovers %v; want a storm that feeds itself", free.Amplification, free.Recovers)
	}
	if !held.Recovers || held.Amplification > 1.1+1e-9 || held.Minutes > 1 {
		t.Errorf("with a budget: %v times the tries, recovers %v after %v min; want 1.1 times, and well within a minute", held.Amplification, held.Recovers, held.Minutes)
	}
	var sum float64
	for _, v := range held.Served {
		sum += v
	}
	// All requests are answered, given up, or still to come again.
	if got := sum/0.85/60 + held.Failed; math.Abs(got-15) > 0.1 {
		t.Errorf("%v minutes of requests are accounted for, want 15", got)
	}
}

func TestHeadroomOfNPlusOne(t *testing.T) {
	_, r := drawn(t, 0)
	h := r.Headroom
	if !h.Fits || h.After < 0.7 || h.After > 0.9 {
		t.Errorf("ten cells at 70 %%: %+v; want about 78 %% afterwards", h)
	}
	even := func(loads ...float64) (all []vessel) {
		for _, l := range loads {
			all = append(all, vessel{l, 10})
		}
		return all
	}
	if got := fill(even(1, 5, 2), 3); got != 0.5 {
		t.Errorf("3 over 1, 2, 5 of 10: level %v, want 0.5, since the emptier ones take all", got)
	}
	if got := fill(even(1, 5, 2), 13); got != 0.7 {
		t.Errorf("13 over 1, 2, 5 of 10: level %v, want 0.7", got)
	}
	if got := fill([]vessel{{50, 100}, {1, 10}}, 26); got != 0.7 {
		t.Errorf("26 over 50 of 100 and 1 of 10: level %v, want 0.7", got)
	}
}

func TestHeadroomGoesByCapacitiesWhereTheyAreKnown(t *testing.T) {
	m, equal := drawn(t, 0)
	all := map[cellway.CellID]float64{}
	for _, c := range m.Cells {
		all[c.ID] = 2 * c.Load
	}
	play := func() Headroom {
		t.Helper()
		if err := m.SetCapacities(all); err != nil {
			t.Fatal(err)
		}
		r, err := Fleet(t.Context(), m, usual(), Run{Cores: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.Headroom
	}
	h := play()
	if h.Known != len(m.Cells) || h.Before != 0.5 || math.Abs(h.After-0.5*10/9) > 0.01 || h.Utilization < 0.89 || !h.Fits {
		t.Errorf("ten cells filled to one half: %+v", h)
	}
	// One as large as all others: they can't take its load, though it has room for any of theirs.
	large := m.Cells[0].ID
	all[large] = 20 * m.Cells[0].Load
	m.Cells[0].Load *= 18
	for i := 1; i < len(m.Cells); i++ {
		all[m.Cells[i].ID] = 1.1 * m.Cells[i].Load
	}
	if h := play(); h.Cell != large || h.Fits || h.Spare > 0.1 {
		t.Errorf("a large cell: %+v", h)
	}
	m.Cells[0].Load /= 18
	delete(all, large)
	if h := play(); h.Known != len(m.Cells)-1 || h.Fits {
		t.Errorf("one capacity is not known: %+v", h)
	}
	clear(all)
	if h := play(); h != equal.Headroom || h.Known != 0 {
		t.Errorf("none is known: %+v, want %+v", h, equal.Headroom)
	}
	all[large] = 0
	if err := m.SetCapacities(all); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a capacity of 0: %v", err)
	}
}

func TestLoadAndTenantsDifferWhereSomeAreHeavy(t *testing.T) {
	m, r := drawn(t, 2.5)
	even, err := DrawModel(t.Context(), tenCells(t), 50_000, 1, 3, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean weight", even.load/50_000, 1, 0.03) // five standard errors
	if r.Heaviest.Cell.Load <= r.Heaviest.Cell.Tenants {
		t.Errorf("heaviest cell %+v: with heavy tenants, its load is above its tenants", r.Heaviest.Cell)
	}
	again, err := Fleet(t.Context(), m, usual(), Run{Cores: 7})
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("on seven cores another report: %v", err)
	}
}

func TestRegisteredTenantsAreWhereTheMapSays(t *testing.T) {
	rm := tenCells(t)
	m, err := NewModel(rm, []Tenant{{"acme", 3}, {"initech", 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := rm.Lookup("acme").Cell.ID
	for _, c := range m.Cells {
		if c.ID == want && c.Load < 3 {
			t.Errorf("%s carries %v, want acme's 3", c.ID, c.Load)
		}
	}
	if m.Tenants() != 2 {
		t.Errorf("%d tenants, want 2", m.Tenants())
	}
	// Weights are in any unit, large or small, and some may be 0.
	for _, unit := range []float64{1e-300, 1e300} {
		m, err := NewModel(rm, []Tenant{{"acme", 3 * unit}, {"initech", unit}, {"idle", 0}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Fleet(t.Context(), m, usual(), Run{})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "share of the heaviest tenant", r.Heaviest.Tenant, 0.75, 1e-12)
	}
	for _, bad := range [][]Tenant{nil, {{"acme", -1}}, {{"acme", math.NaN()}}, {{"acme", math.Inf(1)}}, {{"acme", 0}}, {{"acme", 1e308}, {"initech", 1e308}}} {
		if _, err := NewModel(rm, bad); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("tenants %v: %v, want an ErrInvalid", bad, err)
		}
	}
}

func TestFleetRefusesWhatCannotBe(t *testing.T) {
	m, _ := drawn(t, 0)
	for what, spoil := range map[string]func(*FleetConfig){
		"workers": func(c *FleetConfig) { c.Workers = 0 }, "hand": func(c *FleetConfig) { c.Hand = 21 }, "trials": func(c *FleetConfig) { c.Trials = 0 },
		"times": func(c *FleetConfig) { c.Detect = math.NaN() }, "bake": func(c *FleetConfig) { c.Bake = 0 }, "waves": func(c *FleetConfig) { c.Waves = []int{50, 20, 100} },
		"no end": func(c *FleetConfig) { c.Waves = []int{50} }, "routers": func(c *FleetConfig) { c.Routers = 0 }, "use": func(c *FleetConfig) { c.Utilization = 1.5 },
		"storm": func(c *FleetConfig) { c.Storm.Backoff = 0 }, "gate": func(c *FleetConfig) { c.Gate = math.NaN() }, "soak": func(c *FleetConfig) { c.Soak = math.Inf(1) },
		"outage": func(c *FleetConfig) { c.Storm.Outage = 900 }, "attempts": func(c *FleetConfig) { c.Storm.Attempts = 11 }, "played": func(c *FleetConfig) { c.Storm.Seconds = 1 },
		"budget": func(c *FleetConfig) { c.Storm.Budget = math.NaN() }, "waste": func(c *FleetConfig) { c.Storm.Waste = 2 }, "ages": func(c *FleetConfig) { c.Detect = 2e6 },
	} {
		cfg := usual()
		spoil(&cfg)
		if _, err := Fleet(t.Context(), m, cfg, Run{}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v, want an ErrInvalid", what, err)
		}
	}
}
