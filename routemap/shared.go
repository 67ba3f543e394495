package routemap

import (
	"cmp"
	"slices"

	"github.com/cellway/cellway"
)

// A SharedAddress is a host and port that endpoints of several cells have, so
// that what fails there fails in all of them.
type SharedAddress struct {
	Address string           // as of [cellway.EndpointAddress]
	Cells   []cellway.CellID // at least two, sorted
}

// SharedAddresses returns the addresses that cells of m share, sorted. Retired
// cells have no traffic and don't count. No map is refused for it, by [Map.Check]
// neither: whoever already has such a map must be able to go on, and mend it.
func (m *Map) SharedAddresses() []SharedAddress {
	cells := map[string][]cellway.CellID{}
	for _, c := range m.cells {
		if c.State == cellway.CellRetired {
			continue
		}
		for _, e := range c.Endpoints {
			a := cellway.EndpointAddress(e)
			if !slices.Contains(cells[a], c.ID) {
				cells[a] = append(cells[a], c.ID)
			}
		}
	}
	var shared []SharedAddress
	for a, ids := range cells {
		if len(ids) > 1 {
			slices.Sort(ids)
			shared = append(shared, SharedAddress{a, ids})
		}
	}
	slices.SortFunc(shared, func(a, b SharedAddress) int { return cmp.Compare(a.Address, b.Address) })
	return shared
}
