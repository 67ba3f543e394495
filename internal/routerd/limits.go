package routerd

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/cellway/cellway/internal/serving"
)

// What one cell may take of a router where nothing is set.
const (
	defaultCellInFlight = 1024
	defaultCellPending  = 1024
	defaultCellTunnels  = 16384
)

// limits are those that depend on each other.
type limits struct {
	connections, inFlight                  int // of the router
	cellInFlight, cellPending, cellTunnels int // of each cell
	cellConnections                        int // of all cells, those that are idle included
}

// limits derives what the settings leave open from the descriptors, and lowers
// what one cell may take to half of what the router has. The limits of a cell
// are there so that one that hangs fills up nothing but its own part; if they
// reached the router's own, all other cells' clients would be refused before the
// limit of the sick one is met.
func (s *settings) limits(descriptors uint64) limits {
	l := limits{connections: s.maxConnections, inFlight: s.maxInFlight, cellInFlight: s.cellInFlight, cellPending: s.cellPending, cellTunnels: s.cellTunnels}
	if l.connections == 0 {
		l.connections = serving.ClientConnections(descriptors)
	}
	if l.inFlight == 0 {
		l.inFlight = min(serving.MostInFlight, l.connections)
	}
	l.cellInFlight, l.cellPending = min(l.cellInFlight, l.inFlight), min(l.cellPending, l.inFlight)
	// Requests that wait for a place hold one of the router's, too.
	if half := max(1, l.inFlight/2); l.cellInFlight > half-l.cellPending {
		l.cellInFlight = max(1, int(float64(half)*float64(l.cellInFlight)/(float64(l.cellInFlight)+float64(l.cellPending))))
		l.cellPending = min(l.cellPending, half-l.cellInFlight)
	}
	l.cellTunnels = min(l.cellTunnels, max(1, l.connections/2))
	l.cellConnections = serving.ServerConnections(descriptors, l.connections)
	return l
}

// log says what the limits are, and loudly if a cell's is less than somebody has
// set.
func (l limits) log(log *slog.Logger, s *settings, descriptors uint64) {
	all := []any{"descriptors", descriptors, "connections", l.connections, "in_flight", l.inFlight,
		"cell_in_flight", l.cellInFlight, "cell_pending", l.cellPending, "cell_tunnels", l.cellTunnels, "connections_to_cells", l.cellConnections}
	if need := l.connections + l.inFlight + l.connections; uint64(need)+serving.SpareDescriptors > descriptors && s.maxConnections+s.maxInFlight > 0 {
		log.Warn("limits: more connections are allowed than there may be descriptors for; raise the limit of descriptors, or lower max-connections and max-in-flight", all...)
	}
	var less []string
	for _, one := range []struct {
		key             string
		set, gets, deft int
	}{
		{"cell-in-flight", s.cellInFlight, l.cellInFlight, defaultCellInFlight},
		{"cell-pending", s.cellPending, l.cellPending, defaultCellPending},
		{"cell-tunnels", s.cellTunnels, l.cellTunnels, defaultCellTunnels},
	} {
		if one.gets < one.set && one.set != one.deft {
			less = append(less, fmt.Sprintf("%s is %d, not %d", one.key, one.gets, one.set))
		}
	}
	if len(less) > 0 {
		log.Warn("limits: a cell is allowed less than is set, for one must not take more than half of what the router has; "+
			"raise the limit of descriptors (ulimit -n, LimitNOFILE), or max-connections and max-in-flight", append(all, "less", strings.Join(less, ", "))...)
		return
	}
	log.Info("limits", all...)
}
