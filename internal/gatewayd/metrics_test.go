package gatewayd

import (
	"flag"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

var update = flag.Bool("update", false, "write docs/operations/metrics.md again")

// The gateway's metrics follow Prometheus's conventions, name no tenant, and
// every one of them is shown after some traffic.
func TestMetricsAreWellMade(t *testing.T) {
	c := newCell(t, 3, 2)
	p := c.start(c.args("--canary", "canary", "--probe", "/healthz", "--tenant-rate", "0.001", "--tenant-burst", "3", "--access-log", c.path("access.log"))...)
	for range 5 {
		p.get(p.listen[0]+"/", "acme")
	}
	p.get(p.listen[0]+"/", "")
	p.get(p.listen[0]+"/cellway/canary", "canary")
	status, body := p.get(p.admin+"/metrics", "")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range problems {
		if strings.HasPrefix(one.Metric, "cellway_") {
			t.Errorf("%s: %s", one.Metric, one.Text)
		}
	}
	rare := map[string]bool{"cellway_gateway_refused_heads_total": true, "cellway_gateway_certificate_expiry_timestamp_seconds": true,
		"cellway_gateway_certificates_failing": true}
	for _, m := range metrics() {
		if !strings.Contains(body, "\n"+m.Name) && !rare[m.Name] {
			t.Errorf("%s is not shown", m.Name)
		}
	}
	if strings.Contains(body, "acme") {
		t.Error("the metrics name a tenant")
	}
}

func TestHelpIsASentence(t *testing.T) {
	for _, m := range metrics() {
		if !regexp.MustCompile(`^[A-Z0-9].*\.$`).MatchString(m.Help) {
			t.Errorf("%s: %q", m.Name, m.Help)
		}
		for _, l := range m.Labels {
			if l == "tenant" || l == "key" {
				t.Errorf("%s has the label %s", m.Name, l)
			}
		}
	}
}

const metricsPage = "../../docs/operations/metrics.md"

// The page about metrics has the gateway's, as they are.
func TestMetricsPage(t *testing.T) {
	const begin, end = "<!-- begin: gateway -->\n", "<!-- end: gateway -->\n"
	b, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks", metricsPage)
	}
	want := telemetry.Table(metrics())
	if *update {
		if err := os.WriteFile(metricsPage, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if got != want {
		t.Errorf("%s is not what the gateway shows; write it again with: go test ./internal/gatewayd -run TestMetricsPage -update", metricsPage)
	}
}
