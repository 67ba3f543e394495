package routemap

import (
	"time"

	"github.com/cellway/cellway"
)

// A recKind says what a record makes of its key. The first five are the entry
// kinds.
type recKind uint8

const (
	recAlias     recKind = 16
	recTombstone recKind = 17
	recAbsence   recKind = 32 // overlay only: hides the base's record
)

func (k recKind) isEntry() bool    { return k <= recKind(cellway.Test) }
func (k recKind) isOverride() bool { return k.isEntry() && k != recKind(cellway.Placed) }

// noCell is the owner of a quarantine without a cell. Owners with the high bit
// set are reserved for geodes.
const noCell = 0xffff

// A record is what a map knows of one key. Keys, alias names and tombstones
// share one table, so no name can be two things.
type record struct {
	kind   recKind
	cell   uint16 // index into the map's cells, or noCell
	epoch  cellway.Epoch
	target cellway.Key // of an alias
	note   note        // of an override
}

// A note is why an override is there.
type note struct {
	by, reason string
	reviewBy   time.Time
}

// sameOwner reports whether a and b send their key to the same place.
func sameOwner(a, b record) bool {
	return a.kind.isEntry() == b.kind.isEntry() && a.kind.isEntry() && a.cell == b.cell
}
