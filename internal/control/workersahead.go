package control

import (
	"sync"

	"github.com/cellway/cellway"
)

// A listsAhead knows the serials of lists of workers that gateways have and the store
// lacks, as when it was restored from a backup: what is written next has to be above
// them, or no gateway takes it.
type listsAhead struct {
	mu      sync.Mutex
	serials map[cellway.CellID]cellway.Version
}

// compare notes a list of a gateway that is above that of the store. A claim takes
// serials up once, as far as an incarnation may go: there is room above it.
func (a *listsAhead) compare(id cellway.CellID, gateway, here cellway.Version) {
	if gateway <= here || gateway.Incarnation() >= maxIncarnation {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.serials == nil {
		a.serials = map[cellway.CellID]cellway.Version{}
	}
	a.serials[id] = max(a.serials[id], gateway)
}

// of is the highest serial that a gateway of a cell was seen to have, if it was above
// that of the store; 0 if there is none.
func (a *listsAhead) of(id cellway.CellID) cellway.Version {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serials[id]
}
