package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Tenant is one of a fleet, with what it is of the load.
type Tenant struct {
	ID     cellway.TenantID
	Weight float64 // of its load, in any unit; at least 0
}

// A Model is a fleet as simulations see it: who is where, and how heavy.
type Model struct {
	Name  string
	Cells []ModelCell

	ids    []cellway.TenantID // nil: drawn tenants, named by number
	cell   []int32            // of each tenant; below 0: in none
	weight []float64
	load   float64 // of all tenants that have a cell
	mapped int     // tenants that have a cell
}

// A ModelCell is a cell with what it carries.
type ModelCell struct {
	ID       cellway.CellID
	Groups   []string // what it may share with other cells: "zone a", "region b", tags; none twice
	Closed   bool     // takes no tenants of other cells: cordoned, or drained
	Tenants  int
	Load     float64
	Capacity float64 // the most load that it can carry; 0: not known
}

// Tenants returns how many tenants have a cell.
func (m *Model) Tenants() int { return m.mapped }

// NewModel places tenants as the map would route them. Tenants that it routes
// nowhere are left out. It is an ErrInvalid if no tenant has a cell.
func NewModel(rm *routemap.Map, tenants []Tenant) (*Model, error) {
	m := &Model{Name: rm.Settings().Fleet}
	at := m.addCells(rm)
	for _, t := range tenants {
		if !(t.Weight >= 0) || math.IsInf(t.Weight, 0) {
			return nil, fmt.Errorf("tenant %s weighs %v; give a number from 0 on: %w", t.ID, t.Weight, cellway.ErrInvalid)
		}
		m.ids = append(m.ids, t.ID)
		m.cell = append(m.cell, cellOf(rm, at, t.ID))
		m.weight = append(m.weight, t.Weight)
	}
	return m, m.sum()
}

// DrawModel places a number of tenants that do not exist, named
// tenant-00000 and so on, with weights that few large ones have most of:
// log-normal with the given deviation of the logarithm; 0 makes all equal.
func DrawModel(ctx context.Context, rm *routemap.Map, tenants int, deviation float64, seed uint64, run Run) (*Model, error) {
	if tenants < 2 || tenants > MaxTenants {
		return nil, fmt.Errorf("tenants is %d; give 2 to %d: %w", tenants, MaxTenants, cellway.ErrInvalid)
	}
	if !(deviation >= 0 && deviation <= 4) {
		return nil, fmt.Errorf("skew is %v; give 0 to 4: %w", deviation, cellway.ErrInvalid)
	}
	m := &Model{Name: rm.Settings().Fleet, cell: make([]int32, tenants), weight: make([]float64, tenants)}
	at := m.addCells(rm)
	err := run.gauge(tenants).each(ctx, tenants, chunk, 1, func(from, to int) {
		for i := from; i < to; i++ {
			random := streamOf(seed, 10, uint64(i))
			m.weight[i] = math.Exp(deviation*random.normal() - deviation*deviation/2)
			m.cell[i] = cellOf(rm, at, cellway.TenantID(name("tenant", i)))
		}
	})
	if err != nil {
		return nil, err
	}
	return m, m.sum()
}

// normal returns a number of the standard normal distribution.
func (s *stream) normal() float64 {
	return math.Sqrt(-2*math.Log(1-s.float())) * math.Cos(2*math.Pi*s.float())
}

func (m *Model) addCells(rm *routemap.Map) map[cellway.CellID]int32 {
	// Zones of two regions may have one name, and are two zones.
	regions := map[string]map[string]bool{}
	for _, c := range rm.Cells() {
		if regions[c.Zone] == nil {
			regions[c.Zone] = map[string]bool{}
		}
		regions[c.Zone][c.Region] = true
	}
	at := map[cellway.CellID]int32{}
	for _, c := range rm.Cells() {
		if c.State == cellway.CellNew || c.State == cellway.CellRetired {
			continue
		}
		at[c.ID] = int32(len(m.Cells))
		mc := ModelCell{ID: c.ID, Closed: c.State == cellway.CellCordoned || c.Admit == 0}
		if c.Region != "" {
			mc.Groups = append(mc.Groups, "region "+c.Region)
		}
		switch {
		case c.Zone == "":
		case len(regions[c.Zone]) > 1 && c.Region != "":
			mc.Groups = append(mc.Groups, "zone "+c.Zone+" of region "+c.Region)
		default:
			mc.Groups = append(mc.Groups, "zone "+c.Zone)
		}
		for tag, value := range c.Tags {
			mc.Groups = append(mc.Groups, tag+" "+value)
		}
		slices.Sort(mc.Groups)
		mc.Groups = slices.Compact(mc.Groups) // a tag may say what the cell's zone says
		m.Cells = append(m.Cells, mc)
	}
	return at
}

func cellOf(rm *routemap.Map, at map[cellway.CellID]int32, id cellway.TenantID) int32 {
	if r := rm.Lookup(cellway.Key(id)); r.Cell != nil {
		if i, ok := at[r.Cell.ID]; ok {
			return i
		}
	}
	return -1
}

// sum counts what each cell carries, in the tenants' order.
func (m *Model) sum() error {
	for i, c := range m.cell {
		if c < 0 {
			continue
		}
		m.mapped++
		m.load += m.weight[i]
		m.Cells[c].Tenants++
		m.Cells[c].Load += m.weight[i]
	}
	if m.mapped == 0 {
		return fmt.Errorf("no tenant has a cell in map of %s; is this the right map, and does it have tenants: %w", m.Name, cellway.ErrInvalid)
	}
	if m.load == 0 {
		return fmt.Errorf("the tenants of %s weigh nothing; choose a resource that they have weights of: %w", m.Name, cellway.ErrInvalid)
	}
	if math.IsInf(m.load, 0) {
		return fmt.Errorf("the tenants of %s weigh more than can be added up; give weights in a larger unit: %w", m.Name, cellway.ErrInvalid)
	}
	return nil
}

// id is the name of a tenant by number.
func (m *Model) id(i int) string {
	if m.ids != nil {
		return string(m.ids[i])
	}
	return name("tenant", i)
}

// share is what a set of cells carries.
func (m *Model) share(cells []int) Reach {
	var r Reach
	for _, c := range cells {
		r.Tenants += float64(m.Cells[c].Tenants) / float64(m.mapped)
		r.Load += m.Cells[c].Load / m.load
	}
	return r
}

// groups are the cells that share something, by what.
func (m *Model) groups() map[string][]int {
	out := map[string][]int{}
	for i, c := range m.Cells {
		for _, g := range c.Groups {
			out[g] = append(out[g], i)
		}
	}
	return out
}

// A Reach is how much of a fleet something touches.
type Reach struct {
	Tenants float64 `json:"tenants"` // share of all
	Load    float64 `json:"load"`    // share of all
}

func (r *Reach) most(o Reach) {
	r.Tenants, r.Load = max(r.Tenants, o.Tenants), max(r.Load, o.Load)
}

func (r *Reach) add(o Reach, part float64) {
	r.Tenants += o.Tenants * part
	r.Load += o.Load * part
}

// all is the reach of what touches everybody.
var all = Reach{1, 1}

// An Outcome is what one thing that goes wrong does to a fleet.
type Outcome struct {
	Case     string  `json:"case"`      // which scenario: cell, poison, deploy, dependency, map, storm
	What     string  `json:"what"`      // in words
	Down     Reach   `json:"down"`      // who gets no answers, on average over what may fail
	Worst    Reach   `json:"worst"`     // the same at worst
	Degraded Reach   `json:"degraded"`  // who is served by part of its workers, or for part of its requests
	Minutes  float64 `json:"minutes"`   // how long the longest is down
	Lost     float64 `json:"lost"`      // tenant-minutes down, on average
	LostLoad float64 `json:"lost_load"` // share of the load times minutes, on average
}

// outcome fills in what follows from a reach that lasts so many minutes.
func (m *Model) outcome(kind, what string, down, worst, degraded Reach, minutes float64) Outcome {
	return Outcome{
		Case: kind, What: what, Down: down, Worst: worst, Degraded: degraded, Minutes: minutes,
		Lost: down.Tenants * float64(m.mapped) * minutes, LostLoad: down.Load * minutes,
	}
}

// describe names a few cells.
func (m *Model) describe(cells []int) string {
	var names []string
	for _, c := range cells[:min(len(cells), 3)] {
		names = append(names, string(m.Cells[c].ID))
	}
	if len(cells) > 3 {
		names = append(names, fmt.Sprintf("%d more", len(cells)-3))
	}
	return strings.Join(names, ", ")
}
