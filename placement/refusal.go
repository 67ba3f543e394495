package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// A Reason says in one word why a cell was refused. Programs may rely on it.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	NotActive   Reason = "not_active"   // new, cordoned or retired
	Drained     Reason = "drained"      // it admits less than all of its keys
	NotHealthy  Reason = "not_healthy"  //
	NotAsked    Reason = "not_asked"    // the request names another cell
	WrongRegion Reason = "wrong_region" // the tenant's data must not be there
	WrongTier   Reason = "wrong_tier"   // the cell is for other tiers
	TakenAlone  Reason = "taken"        // a dedicated tenant has it
	NotEmpty    Reason = "not_empty"    // a dedicated tenant can't have it
	Full        Reason = "full"         // a dimension would exceed its limit less headroom
	NoSpare     Reason = "no_spare"     // the fleet could no longer take in the tenants of some cell
)

// A Refusal says why one cell does not fit.
type Refusal struct {
	Cell   cellway.CellID
	Reason Reason
	Why    string // for people; follows the cell's name

	// Which dimension would be filled how far beyond its limit, for Full and
	// NoSpare.
	Dimension  string
	Want, Most float64
}

// A NoRoomError says of every cell why it does not fit. It wraps
// [cellway.ErrNoRoom].
type NoRoomError struct {
	Tenant   cellway.TenantID
	Refusals []Refusal // by cell; empty if there is no cell
}

// maxNamed is how many cells an error's text names.
const maxNamed = 8

func (e *NoRoomError) Error() string {
	if len(e.Refusals) == 0 {
		return fmt.Sprintf("tenant %s: there is no cell: %v", e.Tenant, cellway.ErrNoRoom)
	}
	var why []string
	for _, r := range e.Refusals {
		why = append(why, string(r.Cell)+" "+r.Why)
	}
	if n := len(why); n > maxNamed {
		why = append(why[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	return fmt.Sprintf("tenant %s: no cell fits: %s: %v", e.Tenant, strings.Join(why, "; "), cellway.ErrNoRoom)
}

// Unwrap returns [cellway.ErrNoRoom].
func (e *NoRoomError) Unwrap() error { return cellway.ErrNoRoom }

func byCell(a, b Refusal) int { return cmp.Compare(a.Cell, b.Cell) }

// noRoom returns the error for a tenant that no cell takes.
func noRoom(tenant cellway.TenantID, refused []Refusal) error {
	slices.SortFunc(refused, byCell)
	return &NoRoomError{Tenant: tenant, Refusals: refused}
}
