package gatewayd

import (
	"log/slog"

	"github.com/cellway/cellway/internal/serving"
)

// What one worker may take of a gateway where nothing is set.
const (
	defaultWorkerInFlight = 512
	defaultWorkerPending  = 128
)

// limits are those that depend on the descriptors.
type limits struct {
	serving.Limits
	workerInFlight, workerPending int
}

// share lowers what one worker may hold to half of what the gateway has, so that one
// that hangs does not fill the gateway.
func (s *settings) share(all serving.Limits) limits {
	l := limits{Limits: all, workerInFlight: s.workerInFlight, workerPending: s.workerPending}
	half := max(1, l.InFlight/2)
	l.workerInFlight = min(l.workerInFlight, half)
	l.workerPending = min(l.workerPending, half-min(half, l.workerInFlight))
	return l
}

// log says what the limits are, and loudly if a worker's is less than somebody
// has set, or if one tenant may fill a worker.
func (l limits) log(log *slog.Logger, s *settings) {
	all := []any{"descriptors", l.Descriptors, "connections", l.Connections, "in_flight", l.InFlight,
		"worker_in_flight", l.workerInFlight, "worker_pending", l.workerPending, "connections_to_workers", l.ToServers}
	switch {
	case s.WarnLowered(log, all,
		serving.Limit{Setting: "worker-in-flight", Set: s.workerInFlight, Gets: l.workerInFlight, Default: defaultWorkerInFlight},
		serving.Limit{Setting: "worker-pending", Set: s.workerPending, Gets: l.workerPending, Default: defaultWorkerPending}):
	case s.tenantInFlight == 0 || s.tenantInFlight >= l.workerInFlight:
		log.Warn("limits: one tenant whose requests hang may fill its whole hand for others; set tenant-in-flight below worker-in-flight",
			append(all, "tenant_in_flight", s.tenantInFlight)...)
	default:
		log.Info("limits", all...)
	}
}
