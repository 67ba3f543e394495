package routerd

import (
	"errors"
	"flag"
	"testing"

	"github.com/cellway/cellway/internal/serving/servingtest"
)

var update = flag.Bool("update", false, "write docs/operations/metrics.md again")

// The router's metrics follow Prometheus's conventions, and every one of them is
// shown after some traffic.
func TestMetricsAreWellMade(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	control := f.plane()
	p := f.start(f.args("--source", control.URL, "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
	p.Ready()
	p.wantCell("acme", "cell-001")
	p.get(p.Listen[0]+"/", "nobody")
	p.get(p.Listen[0]+"/bad path", "acme")
	p.Eventually("a report", func() error {
		if p.mapStatus().Reports.Sent == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	// What needs a refused head may not have happened.
	p.Metrics(metrics(), []string{"acme", "globex", "nobody", "initech"}, []string{"cellway_router_refused_heads_total"})
}

func TestHelpIsASentence(t *testing.T) { servingtest.Help(t, metrics()) }

// The page about metrics has the router's, as they are.
func TestMetricsPage(t *testing.T) { servingtest.MetricsPage(t, "router", metrics(), *update) }
