package routerd

import (
	"github.com/cellway/cellway/internal/telemetry"
)

// metrics lists all that a router shows of itself. docs/operations/metrics.md
// is made from it.
func metrics() []telemetry.Metric {
	const own = "cellway_router_"
	counter, gauge, histogram := telemetry.Counter.Under(own), telemetry.Gauge.Under(own), telemetry.Histogram.Under(own)
	return []telemetry.Metric{
		gauge("ready", "1 if there is a map and the router is not stopping."),
		gauge("stopping", "1 from the signal to stop until the end."),

		// The map.
		gauge("map_incarnation", "High half of the version of the map in use."),
		gauge("map_sequence", "Low half of the version of the map in use."),
		gauge("map_seen_sequence", "Low half of the highest version ever seen, refused ones too."),
		gauge("map_age_seconds", "Time since a source last said that the map in use is its newest. An old map is an alarm, and no reason to stop."),
		gauge("map_created_timestamp_seconds", "When the map in use was made, by its publisher's clock."),
		gauge("map_swapped_timestamp_seconds", "When the map in use came into use."),
		gauge("map_take_seconds", "How long the last swap took, from the manifest on."),
		gauge("map_keys", "Keys that have an entry in the map in use."),
		gauge("map_cells", "Cells in the map in use, retired ones too."),
		gauge("map_base_bytes", "Size of the map's base."),
		gauge("map_overlay_bytes", "Size of the map's overlay."),
		counter("map_swaps_total", "Maps that came into use."),
		counter("map_refusals_total", "Maps that were refused, by reason; the map in use stays.", "reason"),
		gauge("map_fallback", "1 if a newer map is known but suspect: the router died of it three times."),
		gauge("map_suspect_parts", "Parts of maps that are not used because the router died of them."),
		gauge("map_distrusted", "1 if the map in use is signed by revoked keys only."),
		gauge("map_unkept", "1 if the map in use is not on the disk yet."),
		gauge("keyring_failing", "1 if the keyring could not be read; the keys stay as they were."),
		counter("disk_errors_total", "Errors of the state folder; the router serves on."),

		// Sources and reports.
		counter("source_answers_total", "Answers of a source.", "source"),
		counter("source_failures_total", "Times that a source could not be asked.", "source"),
		gauge("source_answered_timestamp_seconds", "When a source last answered.", "source"),
		counter("reports_total", "Reports to the control plane, by whether they arrived.", "result"),

		// Requests.
		counter("requests_total", "Requests, by cell and by what became of them: answered by the cell, or the code of the router's own answer. Without a cell: those that led to none.", "cell", "outcome"),
		counter("answers_total", "Answers to clients, by the first digit of the status; the router's own included.", "cell", "class"),
		counter("body_bytes_total", "Bytes of bodies: in for requests, out for answers.", "cell", "direction"),
		counter("lookups_total", "Look-ups, by what decided them; none means that the map does not know the key.", "rule"),
		counter("override_hits_total", "Requests whose key was found by an override."),
		counter("resent_total", "Requests sent once more because a guard refused them.", "cell"),
		counter("mismatches_total", "Requests that a guard refused for good: an alarm.", "cell"),
		counter("ended_total", "Requests and tunnels ended after a swap or a stop."),
		histogram("added_seconds", "Time that requests spent in the router itself, waiting for no cell."),
		gauge("in_flight", "Requests served now, tunnels excepted."),
		gauge("tunnels", "Upgraded connections now."),
		counter("access_log_dropped_total", "Lines of the access log that could not be written, or not in time."),
		gauge("access_log_failing", "1 while lines of the access log are lost, or go to a file that was moved away: its disk is full, its folder gone, or its reader stuck."),
		counter("log_dropped_total", "Lines of the log that could not be written, or not in time."),

		// Cells.
		counter("cell_requests_total", "Requests that reached the cell's bulkhead.", "cell"),
		counter("cell_server_errors_total", "Answers of the cell with a 5xx.", "cell"),
		counter("cell_failures_total", "Requests that failed between router and cell, by how: connect, timeout, protocol.", "cell", "how"),
		counter("cell_refused_total", "Requests refused before they were sent: saturated, or breaker open.", "cell", "why"),
		counter("cell_client_gone_total", "Requests whose client went away first.", "cell"),
		histogram("cell_first_byte_seconds", "Time from the choice of an endpoint to the answer's head.", "cell"),
		gauge("cell_in_flight", "Requests to the cell now, tunnels excepted.", "cell"),
		gauge("cell_pending", "Requests that wait for a place in the cell now.", "cell"),
		gauge("cell_tunnels", "Tunnels to the cell now.", "cell"),
		gauge("cell_breaker", "State of the cell's breaker: 0 closed, 1 open, 2 probing.", "cell"),
		gauge("cell_endpoints", "Endpoints of the cell, by the state of each one's breaker.", "cell", "state"),

		// Clients.
		counter("refused_heads_total", "Requests refused for how their head or body was framed, by reason.", "reason"),
		gauge("connections", "Clients' connections now."),
		gauge("connections_limit", "The most of them at a time."),
		counter("connections_evicted_total", "Clients' connections closed to make room for another: idle between requests, or silent, which never sent a whole head.", "state"),
		counter("connections_refused_total", "Clients' connections refused at the limit: full, as none was idle, or share, as the address holds too many already.", "reason"),
		gauge("certificate_expiry_timestamp_seconds", "When a certificate ends.", "setting", "subject"),
		gauge("certificates_failing", "1 if certificates could not be read again; they stay as they were.", "setting"),
	}
}

// figures shows what the daemon knows now.
func (d *daemon) figures(f *telemetry.Figures) {
	d.mapFigures(f)
	d.requestFigures(f)
}

func (d *daemon) mapFigures(f *telemetry.Figures) {
	st := d.feed.Status()
	f.Bool("cellway_router_ready", d.rt.Ready() == nil)
	if st.Ready {
		f.Set("cellway_router_map_incarnation", float64(st.Version.Incarnation()))
		f.Set("cellway_router_map_sequence", float64(st.Version.Sequence()))
		f.Time("cellway_router_map_created_timestamp_seconds", st.CreatedAt)
		f.Set("cellway_router_map_take_seconds", st.Took)
		f.Set("cellway_router_map_keys", float64(st.Keys))
		f.Set("cellway_router_map_cells", float64(st.Cells))
		f.Set("cellway_router_map_base_bytes", float64(st.Base.Size))
		f.Set("cellway_router_map_overlay_bytes", float64(st.Overlay.Size))
	}
	f.Set("cellway_router_map_seen_sequence", float64(st.Seen.Sequence()))
	f.Set("cellway_router_map_age_seconds", st.Age)
	f.Count("cellway_router_map_swaps_total", st.Swaps)
	for reason, n := range st.Refusals {
		f.Count("cellway_router_map_refusals_total", n, reason)
	}
	f.Bool("cellway_router_map_fallback", st.Fallback)
	f.Set("cellway_router_map_suspect_parts", float64(len(st.Suspects)))
	f.Bool("cellway_router_map_distrusted", st.Distrusted)
	f.Bool("cellway_router_map_unkept", st.Unkept)
	f.Bool("cellway_router_keyring_failing", st.KeysError != "")
	f.Count("cellway_router_disk_errors_total", st.Disk.Count)
	for _, s := range st.Sources {
		f.Count("cellway_router_source_answers_total", s.Answers, s.Name)
		f.Count("cellway_router_source_failures_total", s.Failures, s.Name)
		f.Time("cellway_router_source_answered_timestamp_seconds", s.AnsweredAt, s.Name)
	}
	if d.reporter != nil {
		r := d.reporter.Status()
		f.Count("cellway_router_reports_total", r.Sent, "arrived")
		f.Count("cellway_router_reports_total", r.Failed, "lost")
	}
}

func (d *daemon) requestFigures(f *telemetry.Figures) {
	st := d.rt.Stats()
	f.Bool("cellway_router_stopping", st.Stopping)
	f.Time("cellway_router_map_swapped_timestamp_seconds", st.Swapped)
	f.Set("cellway_router_in_flight", float64(st.InFlight))
	f.Set("cellway_router_tunnels", float64(st.Tunnels))
	f.Count("cellway_router_ended_total", st.Ended)
	f.Count("cellway_router_override_hits_total", st.Overrides)
	f.Count("cellway_router_access_log_dropped_total", st.AccessLogDropped)
	f.Durations("cellway_router_added_seconds", st.Added.Bounds, st.Added.Counts, st.Added.Sum)
	for _, r := range st.Rules {
		f.Count("cellway_router_lookups_total", r.Count, r.Rule.String())
	}
	for _, c := range st.Cells {
		cell := string(c.Cell)
		for _, n := range c.Requests {
			outcome := string(n.Code)
			if outcome == "" {
				outcome = "answered"
			}
			f.Count("cellway_router_requests_total", n.Count, cell, outcome)
		}
		for digit, n := range c.Statuses {
			if n > 0 && digit > 0 {
				f.Count("cellway_router_answers_total", n, cell, string(rune('0'+digit))+"xx")
			}
		}
		f.Count("cellway_router_body_bytes_total", c.BytesIn, cell, "in")
		f.Count("cellway_router_body_bytes_total", c.BytesOut, cell, "out")
		f.Count("cellway_router_resent_total", c.Resent, cell)
		f.Count("cellway_router_mismatches_total", c.Mismatches, cell)
		if b := c.Bulkhead; b.Cell != "" {
			bulkheadFigures(f, cell, b)
		}
	}
}
