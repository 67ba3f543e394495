package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// A Policy says which of the cells that fit is taken.
type Policy string

// The policies. The empty Policy is Bucket.
const (
	Bucket      Policy = "bucket"       // the bucket's own cell if it fits, else the least loaded
	LeastLoaded Policy = "least_loaded" // the one whose fullest dimension is the least full afterwards
)

// A Request is a tenant that looks for a cell.
type Request struct {
	Tenant    cellway.TenantID
	Weights   Vector // what it takes of a cell
	Tier      string
	Residency string         // the region that it must be in; empty: any
	Dedicated bool           // wants a cell without anybody else
	Policy    Policy         // the zero Policy is Bucket
	Default   cellway.CellID // the owner of its bucket; empty: none
	Only      cellway.CellID // if not empty, no other cell will do

	// KeepSpare refuses a cell if the fleet, with the tenant there, could no
	// longer take in the tenants of any one cell: see [Spare].
	KeepSpare bool
}

// A Decision is the choice of a cell with what spoke for it.
type Decision struct {
	Cell cellway.CellID
	By   Policy // Bucket if it is the default cell, else LeastLoaded

	// The dimension of the cell that is the fullest with the tenant in it, and
	// the share of its limit, less headroom, that is filled then: 0 to 1. Empty if the cell has no
	// limits.
	Fullest string
	Share   float64

	Refused []Refusal // the cells that don't fit, by cell
}

// Choose returns the cell for a tenant, a [NoRoomError], or an
// [cellway.ErrInvalid] if the input has amounts that are none.
func Choose(cells []Candidate, r Request) (cellway.CellID, error) {
	d, err := Decide(cells, r)
	return d.Cell, err
}

// Decide is [Choose] with reasons. The order of cells does not matter. Among
// cells that are equally full, those with fewer tenants come first, then each
// tenant has an order of its own, so that equals spread.
func Decide(cells []Candidate, r Request) (Decision, error) {
	if err := valid(cells, r); err != nil {
		return Decision{}, err
	}
	var d Decision
	var fit []candidacy
	var spares spares
	if r.KeepSpare {
		spares = newSpares(cells, r)
	}
	for _, c := range cells {
		no := cmp.Or(c.open(), c.fits(r))
		if no == (Refusal{}) && r.KeepSpare {
			no = spares.refuse(c, r)
		}
		if no != (Refusal{}) {
			d.Refused = append(d.Refused, no)
		} else {
			_, share := c.fullest(r)
			fit = append(fit, candidacy{c, share})
		}
	}
	if len(fit) == 0 {
		return Decision{}, noRoom(r.Tenant, d.Refused)
	}
	slices.SortFunc(d.Refused, byCell)
	best := slices.MinFunc(fit, func(a, b candidacy) int { return compare(a, b, r) })
	d.By = LeastLoaded
	if r.Policy != LeastLoaded {
		if i := slices.IndexFunc(fit, func(c candidacy) bool { return c.ID == r.Default }); i >= 0 {
			best, d.By = fit[i], Bucket
		}
	}
	d.Cell = best.ID
	d.Fullest, d.Share = best.fullest(r)
	return d, nil
}

// A candidacy is a cell that fits, with how full it would be.
type candidacy struct {
	Candidate
	share float64
}

// compare orders the cells that fit, the best first.
func compare(a, b candidacy, r Request) int {
	if a.Updating != b.Updating {
		if a.Updating {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.share, b.share),
		cmp.Compare(a.Tenants, b.Tenants),
		cmp.Compare(tenantHash(r.Tenant, b.ID), tenantHash(r.Tenant, a.ID)),
		cmp.Compare(a.ID, b.ID),
	)
}

// Stay reports, as a [NoRoomError], why a tenant that is in a cell already, and
// was what was says, would no longer fit there once it is what r says. The cell's
// state does not matter: one that is cordoned or drained keeps its tenants. Nor
// does what did not fit before, as after the cell's capacity was lowered: only
// what asks for more than it did is refused. c counts without the tenant.
func Stay(c Candidate, was, r Request) error {
	for _, one := range []Request{was, r} {
		if err := valid([]Candidate{c}, one); err != nil {
			return err
		}
	}
	if no := c.fits(r.beyond(was, &c)); no != (Refusal{}) {
		return noRoom(r.Tenant, []Refusal{no})
	}
	return nil
}

// beyond returns what r asks for that was did not, and takes from c what was had
// in spite of it.
func (r Request) beyond(was Request, c *Candidate) Request {
	c.Taken = false // whoever has the cell for itself has it beside this tenant
	if r.Residency == was.Residency {
		r.Residency = ""
	}
	if r.Tier == was.Tier {
		c.Tiers = nil
	}
	r.Dedicated = r.Dedicated && !was.Dedicated
	more := Vector{}
	for dim, amount := range r.Weights {
		if amount > was.Weights[dim] {
			more[dim] = amount
		}
	}
	r.Weights = more
	return r
}

func valid(cells []Candidate, r Request) error {
	if r.Policy != "" && r.Policy != Bucket && r.Policy != LeastLoaded {
		return fmt.Errorf("tenant %s: policy %q is neither %s nor %s: %w", r.Tenant, r.Policy, Bucket, LeastLoaded, cellway.ErrInvalid)
	}
	if err := r.Weights.Validate(); err != nil {
		return fmt.Errorf("tenant %s: weight %w", r.Tenant, err)
	}
	seen := make(map[cellway.CellID]bool, len(cells))
	for _, c := range cells {
		if seen[c.ID] {
			return fmt.Errorf("cell %s is listed twice: %w", c.ID, cellway.ErrInvalid)
		}
		seen[c.ID] = true
		if err := c.Validate(); err != nil {
			return err
		}
	}
	return nil
}
