package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
)

// loadFactor is how far above its share of the buckets a cell may go.
const loadFactor = 1.05

// A WeightedCell is a cell that buckets are dealt to. Its share is its weight
// among all weights.
type WeightedCell struct {
	ID     cellway.CellID
	Weight float64 // above 0
}

// AssignBuckets deals count buckets to cells by rendezvous hashing with bounded
// load (Thaler and Ravishankar 1998; Mirrokni, Thorup and Zadimoghaddam 2016):
// each bucket goes to the first cell of its own order that has less than 1.05
// times its share, rounded up. Owners are as they are now ("" where nobody owns
// a bucket) and may be nil. A bucket for which keep answers true stays with its
// owner, and counts as that cell's load; keep may be nil.
func AssignBuckets(count uint32, cells []WeightedCell, owners []cellway.CellID, keep func(bucket uint32) bool) ([]cellway.CellID, error) {
	if len(cells) == 0 {
		return nil, fmt.Errorf("deal %d buckets: there is no active cell: %w", count, cellway.ErrNoRoom)
	}
	total := 0.0
	for _, c := range cells {
		if !(c.Weight > 0) || math.IsInf(c.Weight, 1) {
			return nil, fmt.Errorf("deal buckets: weight of cell %s is %v; give a number above 0: %w", c.ID, c.Weight, cellway.ErrInvalid)
		}
		total += c.Weight
	}
	room := make(map[cellway.CellID]int, len(cells))
	for _, c := range cells {
		room[c.ID] = int(math.Ceil(loadFactor * c.Weight / total * float64(count)))
	}
	out := make([]cellway.CellID, count)
	for b := range count {
		if owners != nil && owners[b] != "" && keep != nil && keep(b) {
			out[b] = owners[b]
			room[owners[b]]--
		}
	}
	order := make([]ranked, len(cells))
	for b := range count {
		if out[b] != "" {
			continue
		}
		rank(order, cells, b)
		i := slices.IndexFunc(order, func(r ranked) bool { return room[r.cell] > 0 })
		if i < 0 {
			i = 0 // those that stayed have taken more than their cells' room
		}
		out[b] = order[i].cell
		room[order[i].cell]--
	}
	return out, nil
}

type ranked struct {
	cell  cellway.CellID
	score float64
}

// rank sorts the cells for one bucket: the highest of -weight / ln(u) first,
// where u is the cell's hash for the bucket as a number between 0 and 1
// (weighted rendezvous hashing, Schindelhauer and Schomaker 2005).
func rank(order []ranked, cells []WeightedCell, bucket uint32) {
	name := "bucket/" + strconv.FormatUint(uint64(bucket), 10)
	for i, c := range cells {
		u := (float64(score(name, c.ID)>>11) + 0.5) / (1 << 53)
		order[i] = ranked{c.ID, -c.Weight / math.Log(u)}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(a.cell, b.cell)
	})
}
