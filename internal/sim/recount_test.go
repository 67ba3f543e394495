package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// These tests count again, in the simplest way there is, what simulations count.

func TestPoisonIsCountedTenantByTenant(t *testing.T) {
	var tenants []Tenant
	for i := range 300 {
		tenants = append(tenants, Tenant{cellway.TenantID(fmt.Sprint("t", i)), float64(i % 7)})
	}
	m, err := NewModel(tenCells(t), tenants)
	if err != nil {
		t.Fatal(err)
	}
	cfg := usual()
	cfg.Workers, cfg.Hand, cfg.Trials = 6, 2, 50
	r, err := Fleet(t.Context(), m, cfg, Run{Cores: 3})
	if err != nil {
		t.Fatal(err)
	}
	load := 0.0
	for _, one := range tenants {
		load += one.Weight
	}
	hands := map[int][]string{}
	for i, one := range tenants {
		s, _, err := ShuffleConfig{Workers: 6, Hand: 2, Zones: 1, Seed: cfg.Seed + uint64(m.cell[i])}.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range s.AppendHand(nil, string(one.ID)) {
			hands[i] = append(hands[i], w.ID)
		}
	}
	var cells, total, worst, degraded Reach
	for trial := range cfg.Trials {
		random := streamOf(cfg.Seed, 20, uint64(trial))
		bad := random.below(len(tenants))
		var down Reach
		for i, one := range tenants {
			if m.cell[i] != m.cell[bad] {
				continue
			}
			reach := Reach{1. / 300, one.Weight / load}
			cells.add(reach, 1./50)
			shared := 0
			for _, w := range hands[i] {
				if slices.Contains(hands[bad], w) {
					shared++
				}
			}
			switch shared {
			case 2:
				down.add(reach, 1)
			case 1:
				degraded.add(reach, 1./50)
			}
		}
		total.add(down, 1./50)
		worst.most(down)
	}
	o := outcome(t, r, "poison", "cells, hands of 2 of 6")
	for what, pair := range map[string][2]Reach{
		"cells": {outcome(t, r, "poison", "cells").Down, cells}, "total": {o.Down, total}, "worst": {o.Worst, worst}, "degraded": {o.Degraded, degraded},
	} {
		near(t, what+", tenants", pair[0].Tenants, pair[1].Tenants, 1e-9)
		near(t, what+", load", pair[0].Load, pair[1].Load, 1e-9)
	}
	near(t, "tenant-minutes", o.Lost, total.Tenants*300*15, 1e-9)
}

// Cells of one size are equally many, whichever come first.
func TestWavesReachSoManyCells(t *testing.T) {
	for _, tt := range []struct{ percent, cells, want int }{{0, 10, 1}, {1, 10, 1}, {10, 10, 1}, {11, 10, 2}, {50, 3, 2}, {100, 3, 3}, {1, 1000, 10}, {100, 1, 1}} {
		if got := upTo(tt.percent, tt.cells); got != tt.want {
			t.Errorf("%d %% of %d cells are %d, want %d", tt.percent, tt.cells, got, tt.want)
		}
	}
	m := &Model{mapped: 40}
	for range 4 {
		m.Cells = append(m.Cells, ModelCell{Tenants: 10, Load: 10})
	}
	m.load = 40
	cfg := usual()
	cfg.Waves, cfg.Bake, cfg.Detect, cfg.Repair = []int{25, 50, 100}, 10, 20, 5
	for trial := range 20 {
		// The fault of the first wave is known after 20 minutes: the second has begun
		// after 10, and the third would begin just then.
		d := m.deploy(cfg, trial, 0)
		near(t, "down", d.down.Tenants, 0.5, 1e-12)
		near(t, "lost", d.lost.Load, 0.25*25+0.25*15, 1e-12)
		d = m.deploy(cfg, trial, 1)
		near(t, "down from the second wave", d.down.Tenants, 1, 1e-12)
		near(t, "lost from the second wave", d.lost.Load, 0.5*25+0.5*15, 1e-12)
	}
}

// A storm without a budget, far below the capacity, is arithmetic: requests come
// again after 1, 2 and 4 seconds, so those of the outage's last seven find
// their answer.
func TestAStormBelowTheCapacityIsArithmetic(t *testing.T) {
	s := Storm{Load: 0.01, Outage: 30, Attempts: 4, Backoff: 1, Waste: 1, Seconds: 600}
	c := s.play(false)
	near(t, "given up", c.Failed, 23./60, 1e-9)
	near(t, "minutes", c.Minutes, 0.5, 1e-9)
	near(t, "tries", c.Amplification, 4, 1e-9)
	if !c.Recovers {
		t.Error("it is not well again")
	}
	sum := 0.0
	for _, v := range c.Served {
		sum += v
	}
	near(t, "answered and given up", sum/0.01/60+c.Failed, 10, 1e-9)

	// With nothing to retry from, or one attempt, every request of the outage is lost.
	one := s
	one.Attempts = 1
	for _, c := range []Course{s.play(true), one.play(false)} {
		near(t, "given up without retries", c.Failed, 0.5, 1e-9)
		near(t, "tries without retries", c.Amplification, 1, 1e-9)
	}
	// The last hundredth counts: 1.8, 1.3 and 1.1 times the capacity come before all
	// succeed again.
	slow := Storm{Load: 0.9, Outage: 1, Attempts: 2, Backoff: 1, Waste: 0, Seconds: 60}
	near(t, "minutes of a small excess", slow.play(false).Minutes, 4./60, 1e-9)
	// Work that is turned away for nothing leaves the whole capacity.
	free := Storm{Load: 0.5, Outage: 1, Attempts: 2, Backoff: 1, Waste: 0, Seconds: 10}
	if got := free.serve(5, 3); got != 1 {
		t.Errorf("3 times the capacity is offered, %v served, want 1", got)
	}
}

func TestFillingIsTheLevelThatHoldsEverything(t *testing.T) {
	random := streamOf(9)
	for range 200 {
		var all []vessel
		highest := 0.0
		for range 1 + random.below(6) {
			v := vessel{10 * random.float(), 1 + 10*random.float()}
			all = append(all, v)
			highest = max(highest, v.level())
		}
		more := 20 * random.float()
		low, high := 0.0, 100.0 // by bisection: how much fits below a level
		for range 100 {
			level, room := (low+high)/2, 0.0
			for _, v := range all {
				room += max(0, level*v.capacity-v.load)
			}
			if room < more {
				low = level
			} else {
				high = level
			}
		}
		near(t, fmt.Sprint("level of ", all), fill(slices.Clone(all), more), max(high, highest), 1e-9)
	}
}

func TestPairsWithOneHandAreCounted(t *testing.T) {
	random := streamOf(4)
	for range 20 {
		const k = 2
		hands := make([]uint16, 60*k)
		for i := 0; i < len(hands); i += k {
			a := random.below(5)
			hands[i], hands[i+1] = uint16(a), uint16((a+1+random.below(4))%5)
		}
		want := 0
		for i := 0; i < len(hands); i += k {
			for j := 0; j < i; j += k {
				if hands[i] == hands[j] && hands[i+1] == hands[j+1] || hands[i] == hands[j+1] && hands[i+1] == hands[j] {
					want++
				}
			}
		}
		if got := samePairs(hands, k); got != want {
			t.Errorf("%d pairs, want %d", got, want)
		}
	}
}

// The simulation agrees with the arithmetic within its ± as often as two standard
// errors promise, with few tenants and with many, few trials and many.
func TestErrorsAreAsLargeAsTheySay(t *testing.T) {
	const seeds = 200
	for _, tt := range []struct{ tenants, trials int }{{20, 400}, {50, 60}, {2000, 3}} {
		within := 0
		for seed := range seeds {
			r, err := Shuffle(t.Context(), ShuffleConfig{Workers: 12, Hand: 3, Tenants: tt.tenants, Trials: tt.trials, Overlap: -1, Seed: uint64(seed)}, Run{})
			if err != nil {
				t.Fatal(err)
			}
			if o := r.Overlap[1]; math.Abs(o.Simulated-o.Exact) <= o.Error {
				within++
			}
		}
		// 95 % of 200, and four standard deviations below; three trials tell less of
		// their spread.
		least := 178
		if tt.trials < 5 {
			least = 150
		}
		if within < least {
			t.Errorf("%d tenants, %d trials: %d of %d seeds are within the error, want %d or more", tt.tenants, tt.trials, within, seeds, least)
		}
	}
}

func TestHeadroomIsThatOfTheWorstLoss(t *testing.T) {
	m := &Model{mapped: 16, load: 16, Cells: []ModelCell{{ID: "a", Load: 9, Tenants: 9}, {ID: "b", Load: 5, Tenants: 5}, {ID: "c", Load: 2, Tenants: 2}}}
	r := &FleetReport{Config: FleetConfig{Utilization: 0.9}}
	r.headroom(m)
	// Cells of ten: b and c have to carry 16 of 20.
	h := r.Headroom
	if h.Cell != "a" || h.Takers != 2 || !h.Fits {
		t.Errorf("headroom %+v, want that of the loss of a", h)
	}
	near(t, "fullest before", h.Before, 0.5, 1e-12)
	near(t, "after", h.After, 0.8, 1e-12)
	near(t, "fullest may be at", h.Utilization, 1, 1e-12) // 0.9/0.8 would be more than full
	near(t, "spare", h.Spare, 13./9, 1e-12)
}

// cells is a map of few cells with what is to be looked at.
func cells(t *testing.T, all ...cellway.Cell) *routemap.Map {
	t.Helper()
	c := routemap.Content{Settings: routemap.Settings{
		Fleet: "shop", Mapping: routemap.Buckets, Buckets: 64, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}},
	}}
	for i, cell := range all {
		cell.ID, cell.Endpoints = cellway.CellID(fmt.Sprintf("cell-%d", i)), []string{fmt.Sprintf("http://10.0.0.%d:80", i+1)}
		if cell.State == 0 {
			cell.State, cell.Admit = cellway.CellActive, 100
		}
		c.Cells = append(c.Cells, cell)
	}
	for b := range c.Buckets {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[int(b)%len(all)].ID})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func played(t *testing.T, rm *routemap.Map, cfg FleetConfig) *FleetReport {
	t.Helper()
	m, err := DrawModel(t.Context(), rm, 4_000, 0, 1, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fleet(t.Context(), m, cfg, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNoCellIsInAGroupTwice(t *testing.T) {
	r := played(t, cells(t,
		cellway.Cell{Region: "eu", Zone: "a", Tags: map[string]string{"region": "eu"}},
		cellway.Cell{Region: "us", Zone: "a", Tags: map[string]string{"zone": "a"}},
		cellway.Cell{Region: "us", Zone: "a"},
		cellway.Cell{Region: "us", Zone: "c", Tags: map[string]string{"zone": "c"}},
	), usual())
	// Zone a of one region is not that of another.
	for what, want := range map[string]float64{
		"region eu (cell-0)": 0.25, "zone a of region eu (cell-0)": 0.25, "zone a of region us (cell-1, cell-2)": 0.5, "zone c (cell-3)": 0.25,
		"region us (cell-1, cell-2, cell-3)": 0.75, "zone a (cell-1)": 0.25,
	} {
		near(t, what, outcome(t, r, "dependency", what).Down.Tenants, want, 0.1)
	}
	for _, o := range r.Outcomes {
		if o.Worst.Tenants > 1+1e-9 || o.Worst.Load > 1+1e-9 || o.Down.Tenants > o.Worst.Tenants+1e-9 {
			t.Errorf("%s, %s: %+v is more than there is", o.Case, o.What, o)
		}
	}
}

func TestClosedCellsTakeNobody(t *testing.T) {
	open, cordoned, drained := cellway.Cell{}, cellway.Cell{State: cellway.CellCordoned, Admit: 100}, cellway.Cell{State: cellway.CellActive, Admit: 0}
	h := played(t, cells(t, open, open, cordoned, drained), usual()).Headroom
	if h.Takers != 1 || h.Fits || h.After < 1.2 || h.After > 1.5 {
		t.Errorf("two of four cells are open: %+v; want one that would be filled to about 140 %%", h)
	}
	r := played(t, cells(t, open, cordoned), usual())
	if h := r.Headroom; h.Cell != "cell-0" || h.Takers != 0 || h.Fits || h.After != 0 {
		t.Errorf("only one is open: %+v; want that nobody takes over", h)
	}
	if s := r.room(); len(s.Rows) != 0 || s.Note == "" {
		t.Errorf("only one is open: %+v, want a note", s)
	}
	cfg := usual()
	cfg.Routers = 1
	p := played(t, cells(t, open), cfg).Page()
	text := pageOf(t, p)
	if !strings.HasPrefix(p.Lead, "4,000 tenants in 1 cell. ") || !strings.Contains(text, "<li>1 router</li>") || strings.Count(text, "<table") != len(p.Sections)-1 {
		t.Errorf("a fleet of one cell: %q, %d tables of %d sections", p.Lead, strings.Count(text, "<table"), len(p.Sections))
	}
}

func TestTheGateIsThatOfRouters(t *testing.T) {
	cfg := usual()
	for n, want := range map[int]float64{2: 0.5, 4: 0.25, 20: 0.1} {
		r := played(t, cells(t, make([]cellway.Cell, n)...), cfg)
		if r.Movable != want {
			t.Errorf("%d cells: the gate lets %v move, want %v", n, r.Movable, want)
		}
		near(t, "moved", outcome(t, r, "map", "passes the gate, all routers at once").Down.Tenants, want, 0.05)
	}
	// With one router there is no ring before the rest.
	cfg.Routers = 1
	for _, o := range played(t, cells(t, make([]cellway.Cell, 4)...), cfg).Outcomes {
		if o.Case == "map" && o.What != "no gate, all routers at once" && o.What != "passes the gate, all routers at once" {
			t.Errorf("one router, and an outcome %q", o.What)
		}
	}
	m, err := NewModel(tenCells(t), []Tenant{{"acme", 1}, {"initech", 1}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fleet(t.Context(), m, usual(), Run{})
	if err != nil || r.Movable != 1 {
		t.Errorf("two tenants: the gate lets %v move, %v; want all, since ten may", r.Movable, err)
	}
}

// Whatever is played when a simulation is cancelled, it ends.
func TestEveryPartOfAFleetCanBeStopped(t *testing.T) {
	m, err := DrawModel(t.Context(), tenCells(t), 20_000, 1, 1, Run{})
	if err != nil {
		t.Fatal(err)
	}
	for part := 0.05; part < 1; part += 0.1 {
		ctx, cancel := context.WithCancel(t.Context())
		var after atomic.Int64
		run := Run{Cores: 2, Progress: func(p float64) {
			if p >= part {
				cancel()
				after.Add(1)
			}
		}}
		if _, err := Fleet(ctx, m, usual(), run); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %v: %v", part, err)
		}
		if after.Load() > 10 {
			t.Errorf("cancelled at %v: %d further steps", part, after.Load())
		}
		cancel()
	}
}
