package gatewayd

import (
	"flag"
	"testing"

	"github.com/cellway/cellway/internal/serving/servingtest"
)

var update = flag.Bool("update", false, "write docs/operations/metrics.md again")

// The gateway's metrics follow Prometheus's conventions, name no tenant, and
// every one of them is shown after some traffic.
func TestMetricsAreWellMade(t *testing.T) {
	c := newCell(t, 3, 2)
	p := c.start(c.args("--canary", "canary", "--probe", "/healthz", "--tenant-rate", "0.001", "--tenant-burst", "3", "--access-log", c.path("access.log"))...)
	for range 5 {
		p.get(p.Listen[0]+"/", "acme")
	}
	p.get(p.Listen[0]+"/", "")
	p.get(p.Listen[0]+"/cellway/canary", "canary")
	p.Metrics(metrics(), []string{"acme"}, []string{"cellway_gateway_refused_heads_total", "cellway_gateway_certificate_expiry_timestamp_seconds",
		"cellway_gateway_certificates_failing"})
}

func TestHelpIsASentence(t *testing.T) { servingtest.Help(t, metrics()) }

// The page about metrics has the gateway's, as they are.
func TestMetricsPage(t *testing.T) { servingtest.MetricsPage(t, "gateway", metrics(), *update) }
