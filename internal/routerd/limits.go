package routerd

import (
	"log/slog"

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
	serving.Limits
	cellInFlight, cellPending, cellTunnels int // of each cell
}

// share lowers what one cell may take to half of what the router has. The limits of a
// cell are there so that one that hangs fills up nothing but its own part; if they
// reached the router's own, all other cells' clients would be refused before the
// limit of the sick one is met.
func (s *settings) share(all serving.Limits) limits {
	l := limits{Limits: all, cellInFlight: s.cellInFlight, cellPending: s.cellPending, cellTunnels: s.cellTunnels}
	l.cellInFlight, l.cellPending = min(l.cellInFlight, l.InFlight), min(l.cellPending, l.InFlight)
	// Requests that wait for a place hold one of the router's, too.
	if half := max(1, l.InFlight/2); l.cellInFlight > half-l.cellPending {
		l.cellInFlight = max(1, int(float64(half)*float64(l.cellInFlight)/(float64(l.cellInFlight)+float64(l.cellPending))))
		l.cellPending = min(l.cellPending, half-l.cellInFlight)
	}
	l.cellTunnels = min(l.cellTunnels, max(1, l.Connections/2))
	return l
}

// log says what the limits are, and loudly if a cell's is less than somebody has
// set.
func (l limits) log(log *slog.Logger, s *settings) {
	all := []any{"descriptors", l.Descriptors, "connections", l.Connections, "in_flight", l.InFlight,
		"cell_in_flight", l.cellInFlight, "cell_pending", l.cellPending, "cell_tunnels", l.cellTunnels, "connections_to_cells", l.ToServers}
	if need := l.Connections + l.InFlight + l.Connections; uint64(need)+serving.SpareDescriptors > l.Descriptors && s.MaxConnections+s.MaxInFlight > 0 {
		log.Warn("limits: more connections are allowed than there may be descriptors for; raise the limit of descriptors, or lower max-connections and max-in-flight", all...)
	}
	if !s.WarnLowered(log, all,
		serving.Limit{Setting: "cell-in-flight", Set: s.cellInFlight, Gets: l.cellInFlight, Default: defaultCellInFlight},
		serving.Limit{Setting: "cell-pending", Set: s.cellPending, Gets: l.cellPending, Default: defaultCellPending},
		serving.Limit{Setting: "cell-tunnels", Set: s.cellTunnels, Gets: l.cellTunnels, Default: defaultCellTunnels}) {
		log.Info("limits", all...)
	}
}
