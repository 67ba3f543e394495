package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cellway/cellway"
)

// A Shortfall is a cell whose tenants would find no room if it had to be
// emptied.
type Shortfall struct {
	Cell      cellway.CellID
	Dimension string
	Needs     float64 // what its tenants fill
	Free      float64 // what all others together could still take
}

// Spare checks that a fleet has room for one cell more than it needs: that for
// each cell the others, which take tenants now, have enough free of every
// dimension to take in what it holds. It returns the cells for which they
// don't, by cell and dimension. It counts in sums: whether large tenants fit
// each where there is room is more than it can say. A cell that one tenant has
// for itself neither gives room nor asks for it.
func Spare(cells []Candidate) []Shortfall {
	cells = byID(cells)
	names := map[string]float64{}
	for _, c := range cells {
		for d := range c.Capacity {
			names[d] = 0
		}
	}
	var all []Shortfall
	for _, name := range Vector(names).dimensions() {
		d := newDimension(cells, name)
		for i, c := range cells {
			if needs, free := d.need[i], d.others(i); over(needs, free) {
				all = append(all, Shortfall{c.ID, name, needs, free})
			}
		}
	}
	slices.SortFunc(all, func(a, b Shortfall) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Dimension, b.Dimension))
	})
	return all
}

// byID returns the cells in order, so that no sum depends on that of the input.
func byID(cells []Candidate) []Candidate {
	cells = slices.Clone(cells)
	slices.SortFunc(cells, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return cells
}

// A dimension is what the cells of a fleet need and have free of one thing.
type dimension struct {
	name string
	need []float64 // by cell
	free []float64 // by cell; infinite if there is no limit
	sum  float64   // of what is free and limited
	inf  int       // cells without a limit
}

func newDimension(cells []Candidate, name string) dimension {
	d := dimension{name: name, need: make([]float64, len(cells)), free: make([]float64, len(cells))}
	for i, c := range cells {
		if c.Taken {
			continue
		}
		d.need[i] = c.filled(name)
		if c.open() != (Refusal{}) {
			continue
		}
		if most, limited := c.usable(name); limited {
			d.free[i] = max(0, most-d.need[i])
			d.sum += d.free[i]
		} else {
			d.free[i] = math.Inf(1)
			d.inf++
		}
	}
	return d
}

// others returns what all cells but one have free.
func (d dimension) others(i int) float64 {
	switch unlimited := math.IsInf(d.free[i], 1); {
	case unlimited && d.inf == 1:
		return d.sum
	case unlimited || d.inf > 0:
		return math.Inf(1)
	default:
		return d.sum - d.free[i]
	}
}

// spares says which cells r may have without the fleet losing its spare room.
type spares struct {
	dims []dimension // those that r takes something of
	ids  []cellway.CellID
}

func newSpares(cells []Candidate, r Request) spares {
	cells = byID(cells)
	var s spares
	for _, c := range cells {
		s.ids = append(s.ids, c.ID)
	}
	for _, name := range r.Weights.dimensions() {
		if r.Weights[name] > 0 && slices.ContainsFunc(cells, func(c Candidate) bool { _, ok := c.Capacity[name]; return ok }) {
			s.dims = append(s.dims, newDimension(cells, name))
		}
	}
	return s
}

// refuse says which cell could not be emptied any more with r in c, or returns
// the zero Refusal. A tenant that wants c for itself takes all of its room.
func (s spares) refuse(c Candidate, r Request) Refusal {
	at := slices.Index(s.ids, c.ID)
	for _, d := range s.dims {
		for i, id := range s.ids {
			needs, free := d.need[i], d.others(i)
			switch {
			case i != at && r.Dedicated && !math.IsInf(d.free[at], 1):
				free -= d.free[at]
			case i != at && !math.IsInf(d.free[at], 1):
				free -= r.Weights[d.name]
			case i == at && r.Dedicated:
				continue
			case i == at:
				needs += r.Weights[d.name]
			}
			if over(needs, max(0, free)) {
				return Refusal{Cell: c.ID, Reason: NoSpare, Dimension: d.name, Want: needs, Most: max(0, free),
					Why: fmt.Sprintf("would leave no spare: %s of %s is %g, the others would have %g free", d.name, id, needs, max(0, free))}
			}
		}
	}
	return Refusal{}
}
