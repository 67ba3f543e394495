package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cellway/cellway"
)

// A Headroom is what the other cells need to be able to take over one's load.
// Those that are closed to tenants of others don't count.
type Headroom struct {
	Cell        cellway.CellID `json:"cell"`        // the one that costs most
	Before      float64        `json:"before"`      // utilization of the fullest other cell
	After       float64        `json:"after"`       // the same when they share its load by the room that they have
	Fits        bool           `json:"fits"`        // none is above 1
	Utilization float64        `json:"utilization"` // of the fullest cell at most, for it to fit, if all load grows or shrinks alike
	Spare       float64        `json:"spare"`       // room of the other cells in units of the load of Cell; 0 if it has none
	Takers      int            `json:"takers"`      // how many other cells take tenants; with none, Fits is false and the numbers are 0

	// Known is how many cells' capacities are known. The others are taken for as
	// large as the smallest of those; if none is, for as large as the config's
	// Utilization says of the heaviest.
	Known int `json:"known"`

	need float64 // part of the others' room that the load takes
}

// SetCapacities tells how much load cells can carry, in the unit of the tenants'
// weights. A cell that is not named has a capacity that is not known. An
// ErrInvalid says that one is no number above 0.
func (m *Model) SetCapacities(all map[cellway.CellID]float64) error {
	for i := range m.Cells {
		c := &m.Cells[i]
		c.Capacity = 0
		most, ok := all[c.ID]
		if !ok {
			continue
		}
		if !(most > 0) || math.IsInf(most, 0) {
			return fmt.Errorf("cell %s has a capacity of %v; give a number above 0: %w", c.ID, most, cellway.ErrInvalid)
		}
		c.Capacity = most
	}
	return nil
}

// capacities returns what each cell can carry, and of how many that is known.
func (m *Model) capacities(utilization float64) (all []float64, known int) {
	heaviest, smallest := 0.0, math.Inf(1)
	for _, c := range m.Cells {
		heaviest = max(heaviest, c.Load)
		if c.Capacity > 0 {
			smallest = min(smallest, c.Capacity)
			known++
		}
	}
	if known == 0 {
		smallest = heaviest / utilization
	}
	for _, c := range m.Cells {
		all = append(all, cmp.Or(c.Capacity, smallest))
	}
	return all, known
}

// headroom asks whether the others could take the load of any one cell.
func (r *FleetReport) headroom(m *Model) {
	if len(m.Cells) < 2 {
		return
	}
	capacity, known := m.capacities(r.Config.Utilization)
	fullest := 0.0
	for i, c := range m.Cells {
		fullest = max(fullest, c.Load/capacity[i])
	}
	for lost := range m.Cells {
		h := Headroom{Cell: m.Cells[lost].ID, Known: known}
		var rest []vessel
		room := 0.0
		for i, c := range m.Cells {
			if i != lost && !c.Closed {
				rest = append(rest, vessel{c.Load, capacity[i]})
				h.Before = max(h.Before, c.Load/capacity[i])
				room += max(0, capacity[i]-c.Load)
			}
		}
		if h.Takers = len(rest); h.Takers > 0 {
			// Load that can be put anywhere fills the others evenly at best, but takes
			// nothing away from those that are above that.
			h.After = fill(rest, m.Cells[lost].Load)
			h.Fits = h.After <= 1
			h.Utilization = 1
			if h.After > 0 {
				h.Utilization = min(1, fullest/h.After)
			}
			if load := m.Cells[lost].Load; load > 0 {
				h.Spare, h.need = room/load, load/room
			}
		}
		if r.Headroom.Cell == "" || h.worse(r.Headroom) {
			r.Headroom = h
		}
	}
}

// worse reports whether the loss that h is about costs more than that of o. To
// have nobody to take over is worst, then not to fit, then to need more of the
// room that there is.
func (h Headroom) worse(o Headroom) bool {
	switch {
	case h.Takers == 0 || o.Takers == 0:
		return o.Takers > 0
	case h.Fits != o.Fits:
		return o.Fits
	}
	return h.need > o.need
}

// A vessel is a cell that load is poured into.
type vessel struct{ load, capacity float64 }

func (v vessel) level() float64 { return v.load / v.capacity }

// fill returns the level, as a share of its capacity, to which the fullest comes
// when more is poured over all of them, the emptiest first. There must be one.
func fill(all []vessel, more float64) float64 {
	slices.SortFunc(all, func(a, b vessel) int { return cmp.Compare(a.level(), b.level()) })
	sum := vessel{load: more}
	for i, v := range all {
		sum.load += v.load
		sum.capacity += v.capacity
		if i+1 == len(all) || sum.level() <= all[i+1].level() {
			return max(sum.level(), all[len(all)-1].level())
		}
	}
	panic("nothing to pour into")
}
