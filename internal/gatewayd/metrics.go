package gatewayd

import (
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/telemetry"
	"github.com/cellway/cellway/shuffle/hand"
)

// metrics lists all that a gateway shows of itself. docs/operations/metrics.md
// is made from it.
func metrics() []telemetry.Metric {
	const own = "cellway_gateway_"
	counter, gauge, histogram := telemetry.Counter.Under(own), telemetry.Gauge.Under(own), telemetry.Histogram.Under(own)
	return []telemetry.Metric{
		gauge("ready", "1 if there is a list of workers and the gateway is not stopping."),
		gauge("stopping", "1 from the signal to stop until the end."),

		// The list of workers.
		gauge("hands_info", "1, with the version of the hands in use.", "version"),
		gauge("hands_sequence", "Rises by one with each change of the hands since the start."),
		gauge("hand_size", "Workers in a hand, for tenants without a size of their own."),
		gauge("list_swapped_timestamp_seconds", "When the list of workers came into use."),
		counter("list_swaps_total", "Lists of workers that came into use."),
		gauge("list_failing", "1 if the list of workers could not be had again, or breaks a rule; the last good one stays in use."),
		gauge("tenant_limits_failing", "1 if the file of limits of tenants could not be read again; they stay as they were."),
		gauge("list_older", "1 if the control plane has an older list of workers than the one in use, as after a restore; it is not taken."),

		// Requests.
		counter("requests_total", "Requests, by what became of them: answered by a worker, or the code of the gateway's own answer.", "outcome"),
		counter("misrouted_total", "Requests that the guard refused, by reason: an alarm if it is other_cell.", "reason"),
		counter("answers_total", "Answers to routers, by the first digit of the status; the gateway's own included.", "class"),
		counter("body_bytes_total", "Bytes of bodies: in for requests, out for answers.", "direction"),
		counter("canaries_total", "Requests of the canary, well or not."),
		histogram("added_seconds", "Time that requests spent in the gateway itself, waiting for no worker; pauses before retries included."),
		gauge("in_flight", "Requests served now, tunnels excepted."),
		gauge("tunnels", "Upgraded connections now."),
		counter("access_log_dropped_total", "Lines of the access log that could not be written, or not in time."),
		gauge("access_log_failing", "1 while lines of the access log are lost, or go to a file that was moved away: its disk is full, its folder gone, or its reader stuck."),
		counter("log_dropped_total", "Lines of the log that could not be written, or not in time."),

		// Retries.
		counter("retries_total", "Attempts beyond a request's first."),
		counter("retries_refused_total", "Retries that were not made, by why: budget, poison (the tenant breaks worker after worker), late (no time was left).", "why"),
		gauge("retry_budget", "Retries that the cell could pay for at the moment."),
		counter("poison_suspicions_total", "Times that a tenant was suspected of poison: its requests broke two workers on which those of others do well."),

		// Workers.
		gauge("workers", "Workers of the list, by how they are: usual, aside (asked last), drained (weight 0).", "state"),
		counter("asides_total", "Times that a worker was set aside."),
		counter("worker_attempts_total", "Attempts, by worker and by what they came to.", "worker", "outcome"),
		counter("worker_broken_answers_total", "Answers of a worker that broke off.", "worker"),
		counter("worker_passed_total", "Times that a worker was passed over, known to be unreachable or full.", "worker"),
		gauge("worker_aside", "1 if the worker is asked last.", "worker"),
		counter("worker_probes_total", "Probes of a worker, by what they came to.", "worker", "result"),
		gauge("worker_in_flight", "Attempts at the worker now.", "worker"),
		gauge("worker_tunnels", "Tunnels to the worker now.", "worker"),
		gauge("worker_breaker", "State of the worker's breaker: 0 closed, 1 open, 2 probing.", "worker"),
		counter("worker_refused_total", "Attempts refused before they were sent: saturated, or breaker open.", "worker", "why"),
		histogram("worker_first_byte_seconds", "Time from the choice of a worker to the answer's head.", "worker"),

		// Routers.
		counter("refused_heads_total", "Requests refused for how their head or body was framed, by reason.", "reason"),
		gauge("connections", "Connections from routers now."),
		gauge("connections_limit", "The most of them at a time."),
		counter("connections_evicted_total", "Connections closed to make room for another: idle between requests, or silent, which never sent a whole head.", "state"),
		counter("connections_refused_total", "Connections refused at the limit: full, as none was idle, or share, as the address holds too many already.", "reason"),
		gauge("certificate_expiry_timestamp_seconds", "When a certificate ends.", "setting", "subject"),
		gauge("certificates_failing", "1 if certificates could not be read again; they stay as they were.", "setting"),
	}
}

// figures shows what the daemon knows now.
func (d *daemon) figures(f *telemetry.Figures) {
	st := d.gw.Stats()
	f.Bool("cellway_gateway_ready", d.gw.Ready() == nil)
	f.Bool("cellway_gateway_stopping", st.Stopping)
	if st.Version != "" {
		f.Set("cellway_gateway_hands_info", 1, st.Version)
		f.Set("cellway_gateway_hands_sequence", float64(st.Seq))
		f.Set("cellway_gateway_hand_size", float64(st.HandSize))
	}
	f.Time("cellway_gateway_list_swapped_timestamp_seconds", st.Swapped)
	f.Count("cellway_gateway_list_swaps_total", st.Swaps)
	f.Bool("cellway_gateway_list_failing", st.ListError != nil)
	f.Bool("cellway_gateway_tenant_limits_failing", d.limits.last.Err() != nil)
	control, ok := d.source.(*gateway.Control)
	f.Bool("cellway_gateway_list_older", ok && control.Older())
	d.requestFigures(f, st)
	workerFigures(f, st.Workers)
}

func (d *daemon) requestFigures(f *telemetry.Figures, st gateway.Stats) {
	for _, n := range st.Requests {
		outcome := string(n.Code)
		if outcome == "" {
			outcome = "answered"
		}
		f.Count("cellway_gateway_requests_total", n.Count, outcome)
	}
	for _, n := range st.Misrouted {
		f.Count("cellway_gateway_misrouted_total", n.Count, string(n.Reason))
	}
	for digit, n := range st.Statuses {
		if n > 0 && digit > 0 {
			f.Count("cellway_gateway_answers_total", n, string(rune('0'+digit))+"xx")
		}
	}
	f.Count("cellway_gateway_body_bytes_total", st.BytesIn, "in")
	f.Count("cellway_gateway_body_bytes_total", st.BytesOut, "out")
	f.Count("cellway_gateway_canaries_total", st.Canaries)
	f.Durations("cellway_gateway_added_seconds", st.Added.Bounds, st.Added.Counts, st.Added.Sum)
	f.Set("cellway_gateway_in_flight", float64(st.InFlight))
	f.Set("cellway_gateway_tunnels", float64(st.Tunnels))
	f.Count("cellway_gateway_access_log_dropped_total", st.AccessLogDropped)
	f.Count("cellway_gateway_retries_total", st.Retries)
	f.Count("cellway_gateway_retries_refused_total", st.Attempts.OverBudget, "budget")
	f.Count("cellway_gateway_retries_refused_total", st.Attempts.Poisoned, "poison")
	f.Count("cellway_gateway_retries_refused_total", st.Attempts.TooLate, "late")
	f.Set("cellway_gateway_retry_budget", st.Attempts.Budget)
	f.Count("cellway_gateway_poison_suspicions_total", st.Attempts.Suspicions)
	f.Count("cellway_gateway_asides_total", st.Attempts.SetAside)
}

func workerFigures(f *telemetry.Figures, workers []gateway.WorkerStats) {
	states := map[string]int{"usual": 0, "aside": 0, "drained": 0}
	for _, w := range workers {
		switch {
		case w.Weight == 0:
			states["drained"]++
		case w.Aside:
			states["aside"]++
		default:
			states["usual"]++
		}
		for i, n := range w.Outcomes {
			f.Count("cellway_gateway_worker_attempts_total", n, w.ID, hand.Outcome(i).String())
		}
		f.Count("cellway_gateway_worker_broken_answers_total", w.BrokeOff, w.ID)
		f.Count("cellway_gateway_worker_passed_total", w.Passed, w.ID)
		f.Bool("cellway_gateway_worker_aside", w.Aside, w.ID)
		f.Count("cellway_gateway_worker_probes_total", w.Probes-min(w.Probes, w.ProbesFailed), w.ID, "well")
		f.Count("cellway_gateway_worker_probes_total", w.ProbesFailed, w.ID, "failed")
		f.Set("cellway_gateway_worker_in_flight", float64(w.InFlight), w.ID)
		b := w.Bulkhead
		f.Set("cellway_gateway_worker_tunnels", float64(b.Tunnels), w.ID)
		f.Set("cellway_gateway_worker_breaker", float64(b.Breaker), w.ID)
		f.Count("cellway_gateway_worker_refused_total", b.RefusedSaturated, w.ID, "saturated")
		f.Count("cellway_gateway_worker_refused_total", b.RefusedOpen, w.ID, "open")
		bounds, counted, sum := serving.Coarse(b.FirstByte.Each)
		f.Durations("cellway_gateway_worker_first_byte_seconds", bounds, counted, sum, w.ID)
	}
	for state, n := range states {
		f.Set("cellway_gateway_workers", float64(n), state)
	}
}
