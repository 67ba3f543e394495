package placement

import (
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// A Candidate is a cell as placement sees it.
type Candidate struct {
	ID     cellway.CellID
	State  cellway.CellState // only an active cell takes tenants
	Admit  uint8             // percent; a cell below 100 is drained and takes none
	Region string

	// Unhealthy keeps tenants away. It is not the same as Updating: if every cell
	// of a fleet is being updated, new tenants still find one.
	Unhealthy bool

	// Updating says that a rollout is at work in the cell. Among cells that fit,
	// those that are not come first.
	Updating bool

	Tiers []string // tiers whose tenants it takes; empty: all

	Capacity Vector  // the most of each dimension; one that is not named has no limit
	Headroom float64 // percent of each limit that placement leaves free, for tenants that grow
	Used     Vector  // by the tenants that are there
	Reserved Vector  // by tenants on their way, such as those of moves under way; counts like Used

	Tenants int  // that are there or on their way
	Taken   bool // one of them wants the cell for itself
}

// Validate reports amounts that are no amounts, as an [cellway.ErrInvalid].
func (c Candidate) Validate() error {
	for _, of := range [...]struct {
		what string
		v    Vector
	}{{"capacity", c.Capacity}, {"use", c.Used}, {"reservation", c.Reserved}} {
		if err := of.v.Validate(); err != nil {
			return fmt.Errorf("cell %s: %s of %w", c.ID, of.what, err)
		}
	}
	if !(c.Headroom >= 0 && c.Headroom <= 100) {
		return fmt.Errorf("cell %s: headroom is %v percent; give 0 to 100: %w", c.ID, c.Headroom, cellway.ErrInvalid)
	}
	return nil
}

// usable returns how much of a dimension may be filled, and whether there is a
// limit at all.
func (c Candidate) usable(dim string) (most float64, limited bool) {
	limit, limited := c.Capacity[dim]
	return limit * ((100 - c.Headroom) / 100), limited
}

// filled returns how much of a dimension is taken.
func (c Candidate) filled(dim string) float64 { return c.Used[dim] + c.Reserved[dim] }

// over reports whether a sum exceeds a limit. Sums of decimal fractions come
// out a little off: 0.1 and 0.2 do fit in 0.3.
func over(sum, limit float64) bool { return sum > limit*(1+1e-9) }

// open says why c takes no tenants at all, or returns the zero Refusal.
func (c Candidate) open() Refusal {
	switch {
	case c.State != cellway.CellActive:
		return Refusal{Cell: c.ID, Reason: NotActive, Why: "is " + c.State.String()}
	case c.Admit < 100:
		return Refusal{Cell: c.ID, Reason: Drained, Why: fmt.Sprintf("is drained to %d %%", c.Admit)}
	case c.Unhealthy:
		return Refusal{Cell: c.ID, Reason: NotHealthy, Why: "is not healthy"}
	}
	return Refusal{}
}

// fits says why c can't hold r even while it is open, or returns the zero
// Refusal.
func (c Candidate) fits(r Request) Refusal {
	no := func(reason Reason, format string, args ...any) Refusal {
		return Refusal{Cell: c.ID, Reason: reason, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Only != "" && c.ID != r.Only:
		return no(NotAsked, "is not %s", r.Only)
	case r.Residency != "" && c.Region != r.Residency:
		return no(WrongRegion, "is in region %q, not %q", c.Region, r.Residency)
	case len(c.Tiers) > 0 && !slices.Contains(c.Tiers, r.Tier):
		return no(WrongTier, "does not take tier %q", r.Tier)
	case c.Taken:
		return no(TakenAlone, "is taken by a dedicated tenant")
	case r.Dedicated && c.Tenants > 0:
		return no(NotEmpty, "has %d tenants already", c.Tenants)
	}
	for _, dim := range r.Weights.dimensions() {
		most, limited := c.usable(dim)
		if want := c.filled(dim) + r.Weights[dim]; limited && r.Weights[dim] > 0 && over(want, most) {
			n := no(Full, "is full: %s would be %g of %g", dim, want, most)
			n.Dimension, n.Want, n.Most = dim, want, most
			return n
		}
	}
	return Refusal{}
}

// fullest returns the dimension that is the fullest once r is there, and the
// share of its limit that is filled. A cell without limits is never full.
func (c Candidate) fullest(r Request) (dim string, share float64) {
	for _, d := range c.Capacity.dimensions() {
		most, _ := c.usable(d)
		want := c.filled(d) + r.Weights[d]
		if want == 0 || most == 0 {
			continue // nothing of nothing; something of nothing does not fit
		}
		if s := want / most; s > share {
			dim, share = d, s
		}
	}
	return dim, share
}
