package routerd

import (
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/telemetry"
	"github.com/cellway/cellway/router"
)

func bulkheadFigures(f *telemetry.Figures, cell string, b router.BulkheadStats) {
	f.Count("cellway_router_cell_requests_total", b.Requests, cell)
	f.Count("cellway_router_cell_server_errors_total", b.ServerErrors, cell)
	f.Count("cellway_router_cell_failures_total", b.ConnectFailures, cell, "connect")
	f.Count("cellway_router_cell_failures_total", b.Timeouts, cell, "timeout")
	f.Count("cellway_router_cell_failures_total", b.ProtocolErrors, cell, "protocol")
	f.Count("cellway_router_cell_refused_total", b.RefusedSaturated, cell, "saturated")
	f.Count("cellway_router_cell_refused_total", b.RefusedOpen, cell, "open")
	f.Count("cellway_router_cell_client_gone_total", b.ClientGone, cell)
	bounds, counted, sum := serving.Coarse(b.FirstByte.Each)
	f.Durations("cellway_router_cell_first_byte_seconds", bounds, counted, sum, cell)
	f.Set("cellway_router_cell_in_flight", float64(b.InFlight), cell)
	f.Set("cellway_router_cell_pending", float64(b.Pending), cell)
	f.Set("cellway_router_cell_tunnels", float64(b.Tunnels), cell)
	f.Set("cellway_router_cell_breaker", float64(b.Breaker), cell)
	states := map[string]int{"closed": 0, "open": 0, "probing": 0}
	for _, e := range b.Endpoints {
		states[e.State.String()]++
	}
	for state, n := range states {
		f.Set("cellway_router_cell_endpoints", float64(n), cell, state)
	}
}
