package telemetry

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry that shows the Go runtime, the process, and
// under name_build_info which build this is.
func NewRegistry(name string, b Build) *prometheus.Registry {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: name + "_build_info", Help: "Always 1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "modified": strconv.FormatBool(b.Modified), "go_version": b.Go},
	})
	info.Set(1)
	reg := prometheus.NewRegistry()
	// Their successors are in a package that links database/sql, which a router
	// must not have.
	//lint:ignore SA1019 see above
	goes := prometheus.NewGoCollector()
	//lint:ignore SA1019 see above
	process := prometheus.NewProcessCollector(prometheus.ProcessCollectorOpts{})
	reg.MustRegister(info, goes, process)
	return reg
}

// Handler answers with the metrics of a registry. What can't be collected is
// logged, and the rest is shown.
func Handler(reg *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelError),
	})
}
