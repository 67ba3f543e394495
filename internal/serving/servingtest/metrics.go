package servingtest

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Metrics fails the test unless the metrics that are shown follow Prometheus's
// conventions, name none of tenants, and are all there, the rare ones excepted.
func (p *Process) Metrics(all []telemetry.Metric, tenants, rare []string) {
	p.T.Helper()
	status, body := p.Get(p.Admin+"/metrics", nil)
	if status != http.StatusOK {
		p.T.Fatalf("%d %s", status, body)
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		p.T.Fatal(err)
	}
	for _, one := range problems {
		if strings.HasPrefix(one.Metric, "cellway_") {
			p.T.Errorf("%s: %s", one.Metric, one.Text)
		}
	}
	for _, m := range all {
		if !strings.Contains(body, "\n"+m.Name) && !slices.Contains(rare, m.Name) {
			p.T.Errorf("%s is not shown", m.Name)
		}
	}
	for _, name := range tenants {
		if strings.Contains(body, name) {
			p.T.Errorf("the metrics name the tenant %s", name)
		}
	}
}

// sentence matches the help of a metric.
var sentence = regexp.MustCompile(`^[A-Z0-9].*\.$`)

// Help fails the test unless each metric has a sentence, and labels that have few
// values.
func Help(t *testing.T, all []telemetry.Metric) {
	t.Helper()
	for _, m := range all {
		if !sentence.MatchString(m.Help) {
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

// MetricsPage fails the test unless the page about metrics has those of program as
// they are. If update says so, the page is written again.
func MetricsPage(t *testing.T, program string, all []telemetry.Metric, update bool) {
	t.Helper()
	begin, end := "<!-- begin: "+program+" -->\n", "<!-- end: "+program+" -->\n"
	b, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks", metricsPage)
	}
	want := telemetry.Table(all)
	if update {
		if err := os.WriteFile(metricsPage, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if got != want {
		t.Errorf("%s is not what the %s shows; write it again with: go test ./internal/%[2]sd -run TestMetricsPage -update", metricsPage, program)
	}
}
