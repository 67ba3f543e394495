package controld

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/httpapi"
	"github.com/cellway/cellway/internal/lines"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what the control plane measures of itself.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight atomic.Int64
}

func newMetrics(svc *control.Service, log *lines.Writer) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellway_control_requests_total", Help: "Requests answered by the API."}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cellway_control_request_duration_seconds", Help: "Time to answer a request, waiting on purpose included.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60}}, []string{"route"}),
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cellway_control_requests_in_flight", Help: "Requests being answered, those that wait on purpose included."},
		func() float64 { return float64(m.inFlight.Load()) })
	m.registry.MustRegister(inFlight, m.requests, m.duration, &fleetCollector{svc},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if log != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "cellway_control_log_dropped_total", Help: "Lines of the log that could not be written, or not in time."},
			func() float64 { return float64(log.Dropped()) }))
	}
	return m
}

func (m *metrics) observe(s httpapi.Served) {
	m.requests.WithLabelValues(s.Route, strconv.Itoa(s.Status)).Inc()
	m.duration.WithLabelValues(s.Route).Observe(s.Elapsed.Seconds())
}

// counted counts the requests that h is answering.
func (m *metrics) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.inFlight.Add(1)
		defer m.inFlight.Add(-1)
		h.ServeHTTP(w, r)
	})
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// A fleetCollector reads the fleet's state when it is asked for metrics.
type fleetCollector struct{ svc *control.Service }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cellway_control_"+name, help, labels, nil)
}

// Describe implements [prometheus.Collector]. It tells nothing ahead, since
// there is nothing to tell of a fleet without a map.
func (c *fleetCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *fleetCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	newest := c.svc.Newest()
	if newest != nil {
		man := newest.Version.Manifest
		gauge(desc("map_incarnation", "High half of the newest map's version."), float64(man.Version.Incarnation()))
		gauge(desc("map_sequence", "Low half of the newest map's version."), float64(man.Version.Sequence()))
		gauge(desc("map_created_timestamp_seconds", "When the newest map was made."), float64(man.CreatedAt.Unix()))
		gauge(desc("map_keys", "Keys with an entry in the newest map."), float64(newest.Map.Keys()))
		gauge(desc("map_base_bytes", "Size of the newest map's base."), float64(man.Base.Size))
		gauge(desc("map_overlay_bytes", "Size of the newest map's overlay."), float64(man.Overlay.Size))
		for _, cell := range newest.Map.Cells() {
			gauge(desc("cell_admit_percent", "Percent of a cell's keys that routers let through.", "cell"), float64(cell.Admit), string(cell.ID))
		}
	}
	stats := c.svc.Stats()
	for name, n := range map[string]int{"live": stats.RoutersLive, "behind": stats.RoutersBehind, "missing": stats.RoutersMissing} {
		gauge(desc("routers", "Routers by state: live, of those behind the newest map, and missing though expected.", "state"), float64(n), name)
	}
	for state, n := range stats.Cells {
		gauge(desc("cells", "Cells of the accepted map by state.", "state"), float64(n), state)
	}
	gauge(desc("changes_waiting", "Accepted changes that no version contains yet."), float64(stats.Waiting))
	gauge(desc("overrides_overdue", "Overrides whose review_by has passed."), float64(stats.Overdue))
	gauge(desc("addresses_locked_out", "Addresses whose calls for maps or reports are refused, for want of a token that may."), float64(stats.LockedOut))
	if stats.BackupAge > 0 {
		gauge(desc("backup_age_seconds", "Time since the last backup by the API was made, or since the fleet was if there was none."), stats.BackupAge.Seconds())
	}
	halted := 0.0
	if stats.Halted {
		halted = 1
	}
	gauge(desc("publishing_halted", "1 while nothing but drains goes out until a person confirms."), halted)
	alarms := map[string]int{}
	for _, a := range c.svc.Alarms() {
		alarms[string(a.Code)]++
	}
	for code, n := range alarms {
		gauge(desc("alarms", "What a person should look at, by code; see cellway alarms.", "code"), float64(n), code)
	}
	count := func(d *prometheus.Desc, n uint64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	count(desc("versions_published_total", "Versions published by this process."), stats.Versions)
	count(desc("publish_errors_total", "Tries to publish that failed."), stats.PublishErrors)
	count(desc("store_errors_total", "Calls of the store that failed."), stats.StoreErrors)
	count(desc("sink_errors_total", "Writes of versions beside the store that failed."), stats.SinkErrors)
	count(desc("folds_total", "Fresh bases made."), stats.Folds)
	count(desc("machine_calls_refused_total", "Calls for maps or reports that were refused, for want of a token that may."), stats.RefusedCalls)
	latency := stats.PublishLatency
	ch <- prometheus.MustNewConstHistogram(desc("publish_duration_seconds", "Time from the acceptance of a change to the version that contains it."),
		latency.Count, latency.Sum, latency.AtMost)
}
