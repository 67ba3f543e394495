package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// A Vector counts in named dimensions: "tenants", "rps", "storage" or any
// other.
type Vector map[string]float64

// A Candidate is a cell as placement sees it.
type Candidate struct {
	ID       cellway.CellID
	State    cellway.CellState
	Admit    uint8    // percent; anything below 100 takes no placements
	Region   string   //
	Tiers    []string // tiers it takes; empty: all
	Capacity Vector   // limits; a dimension that is missing has none
	Headroom float64  // percent of each limit that stays free
	Used     Vector   // by tenants that are there or on their way
	Tenants  int      // that are there or on their way
	Taken    bool     // by a tenant that wants the cell for itself
}

// A Request is a tenant that looks for a cell.
type Request struct {
	Tenant    cellway.TenantID
	Weights   Vector // what it takes
	Tier      string
	Residency string         // the region it must be in; empty: any
	Dedicated bool           // wants a cell of its own
	Policy    Policy         //
	Default   cellway.CellID // the owner of its bucket, for Bucket
	Only      cellway.CellID // if not empty, no other cell will do
}

// A Policy says which of the cells that fit is taken.
type Policy string

// The policies. The zero Policy is Bucket.
const (
	Bucket      Policy = "bucket"       // the bucket's own cell if it fits, else the least loaded
	LeastLoaded Policy = "least_loaded" // the one whose fullest dimension is the least full afterwards
)

// A Refusal says why one cell does not fit.
type Refusal struct {
	Cell cellway.CellID
	Why  string
}

// A NoRoomError says why no cell fits. It wraps [cellway.ErrNoRoom].
type NoRoomError struct {
	Tenant   cellway.TenantID
	Refusals []Refusal // by cell
}

func (e *NoRoomError) Error() string {
	if len(e.Refusals) == 0 {
		return fmt.Sprintf("tenant %s: there is no cell: %v", e.Tenant, cellway.ErrNoRoom)
	}
	var why []string
	for _, r := range e.Refusals {
		why = append(why, string(r.Cell)+" "+r.Why)
	}
	const most = 8
	if n := len(why); n > most {
		why = append(why[:most], fmt.Sprintf("and %d more", n-most))
	}
	return fmt.Sprintf("tenant %s: no cell fits: %s: %v", e.Tenant, strings.Join(why, "; "), cellway.ErrNoRoom)
}

// Unwrap returns [cellway.ErrNoRoom].
func (e *NoRoomError) Unwrap() error { return cellway.ErrNoRoom }

// Choose returns the cell for a tenant, or a [NoRoomError]. Among cells that
// are equally full the tenant's own order decides, so that equals spread.
func Choose(cells []Candidate, r Request) (cellway.CellID, error) {
	var fit []Candidate
	refused := &NoRoomError{Tenant: r.Tenant}
	for _, c := range cells {
		if why := c.refuse(r); why != "" {
			refused.Refusals = append(refused.Refusals, Refusal{c.ID, why})
		} else {
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		slices.SortFunc(refused.Refusals, func(a, b Refusal) int { return cmp.Compare(a.Cell, b.Cell) })
		return "", refused
	}
	if r.Policy != LeastLoaded {
		if i := slices.IndexFunc(fit, func(c Candidate) bool { return c.ID == r.Default }); i >= 0 {
			return r.Default, nil
		}
	}
	best := slices.MinFunc(fit, func(a, b Candidate) int {
		if c := cmp.Compare(a.fullest(r), b.fullest(r)); c != 0 {
			return c
		}
		if c := cmp.Compare(a.Tenants, b.Tenants); c != 0 {
			return c
		}
		return cmp.Compare(score(string(r.Tenant), b.ID), score(string(r.Tenant), a.ID))
	})
	return best.ID, nil
}

// Stay reports, as a [NoRoomError], why a tenant that is in a cell already
// would no longer fit there once it is what r says. c.Used is without it.
func Stay(c Candidate, r Request) error {
	c.State, c.Admit = cellway.CellActive, 100 // a drained cell keeps its tenants
	if why := c.refuse(r); why != "" {
		return &NoRoomError{r.Tenant, []Refusal{{c.ID, why}}}
	}
	return nil
}

// refuse says why c does not fit r, or "".
func (c Candidate) refuse(r Request) string {
	switch {
	case r.Only != "" && c.ID != r.Only:
		return "is not " + string(r.Only)
	case c.State != cellway.CellActive:
		return "is " + c.State.String()
	case c.Admit < 100:
		return fmt.Sprintf("is drained to %d %%", c.Admit)
	case r.Residency != "" && c.Region != r.Residency:
		return fmt.Sprintf("is in region %q, not %q", c.Region, r.Residency)
	case len(c.Tiers) > 0 && !slices.Contains(c.Tiers, r.Tier):
		return fmt.Sprintf("does not take tier %q", r.Tier)
	case c.Taken:
		return "is taken by a dedicated tenant"
	case r.Dedicated && c.Tenants > 0:
		return fmt.Sprintf("has %d tenants already", c.Tenants)
	}
	for _, dim := range sortedDims(r.Weights) {
		limit, ok := c.Capacity[dim]
		if !ok {
			continue
		}
		usable := limit * (1 - c.Headroom/100)
		if want := c.Used[dim] + r.Weights[dim]; want > usable {
			return fmt.Sprintf("is full: %s would be %g of %g", dim, want, usable)
		}
	}
	return ""
}

// fullest is the share of the fullest dimension once r is there.
func (c Candidate) fullest(r Request) float64 {
	most := 0.0
	for dim, limit := range c.Capacity {
		if limit > 0 {
			most = max(most, (c.Used[dim]+r.Weights[dim])/limit)
		}
	}
	return most
}

func sortedDims(v Vector) []string {
	dims := make([]string, 0, len(v))
	for d := range v {
		dims = append(dims, d)
	}
	slices.Sort(dims)
	return dims
}

// score ranks cells for a name: the first eight bytes of SHA-256(name, 0 byte,
// cell), big-endian. The highest score wins (rendezvous hashing, Thaler and
// Ravishankar 1998).
func score(name string, cell cellway.CellID) uint64 {
	sum := sha256.Sum256([]byte(name + "\x00" + string(cell)))
	return binary.BigEndian.Uint64(sum[:8])
}
