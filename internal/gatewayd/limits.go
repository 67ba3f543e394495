package gatewayd

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/cellway/cellway/internal/serving"
)

// What one worker may take of a gateway where nothing is set.
const (
	defaultWorkerInFlight = 512
	defaultWorkerPending  = 128
)

// limits are those that depend on the descriptors.
type limits struct {
	connections, inFlight, workerConnections int
	workerInFlight, workerPending            int
}

// derive derives what the settings leave open from the descriptors. What one
// worker may hold is lowered to half of what the gateway has, so that one that
// hangs does not fill the gateway.
func (s *settings) derive(descriptors uint64) limits {
	l := limits{connections: s.maxConnections, inFlight: s.maxInFlight, workerInFlight: s.workerInFlight, workerPending: s.workerPending}
	if l.connections == 0 {
		l.connections = serving.ClientConnections(descriptors)
	}
	if l.inFlight == 0 {
		l.inFlight = min(serving.MostInFlight, l.connections)
	}
	half := max(1, l.inFlight/2)
	l.workerInFlight = min(l.workerInFlight, half)
	l.workerPending = min(l.workerPending, half-min(half, l.workerInFlight))
	l.workerConnections = serving.ServerConnections(descriptors, l.connections)
	return l
}

// log says what the limits are, and loudly if a worker's is less than somebody
// has set, or if one tenant may fill a worker.
func (l limits) log(log *slog.Logger, s *settings, descriptors uint64) {
	all := []any{"descriptors", descriptors, "connections", l.connections, "in_flight", l.inFlight,
		"worker_in_flight", l.workerInFlight, "worker_pending", l.workerPending, "connections_to_workers", l.workerConnections}
	var less []string
	for _, one := range []struct {
		key             string
		set, gets, deft int
	}{
		{"worker-in-flight", s.workerInFlight, l.workerInFlight, defaultWorkerInFlight},
		{"worker-pending", s.workerPending, l.workerPending, defaultWorkerPending},
	} {
		if one.gets < one.set && one.set != one.deft {
			less = append(less, fmt.Sprintf("%s is %d, not %d", one.key, one.gets, one.set))
		}
	}
	switch {
	case len(less) > 0:
		log.Warn("limits: a worker is allowed less than is set, for one must not take more than half of what the gateway has; "+
			"raise the limit of descriptors (ulimit -n, LimitNOFILE), or max-connections and max-in-flight", append(all, "less", strings.Join(less, ", "))...)
	case s.tenantInFlight == 0 || s.tenantInFlight >= l.workerInFlight:
		log.Warn("limits: one tenant whose requests hang may fill its whole hand for others; set tenant-in-flight below worker-in-flight",
			append(all, "tenant_in_flight", s.tenantInFlight)...)
	default:
		log.Info("limits", all...)
	}
}
