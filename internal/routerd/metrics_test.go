package routerd

import (
	"errors"
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

// The router's metrics follow Prometheus's conventions, and every one of them is
// shown after some traffic.
func TestMetricsAreWellMade(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	control := f.plane()
	p := f.start(f.args("--source", control.URL, "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-key", f.path("a.key"))...)
	p.ready()
	p.wantCell("acme", "cell-001")
	p.get(p.listen[0]+"/", "nobody")
	p.get(p.listen[0]+"/bad path", "acme")
	p.eventually("a report", func() error {
		if p.mapStatus().Reports.Sent == 0 {
			return errors.New("not yet")
		}
		return nil
	})
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
	for _, m := range metrics() {
		// What needs a refused head may not have happened.
		if !strings.Contains(body, "\n"+m.Name) && m.Name != "cellway_router_refused_heads_total" {
			t.Errorf("%s is not shown", m.Name)
		}
	}
	for _, name := range []string{"acme", "globex", "nobody", "initech"} {
		if strings.Contains(body, name) {
			t.Errorf("the metrics name the tenant %s", name)
		}
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

// The page about metrics has the router's, as they are.
func TestMetricsPage(t *testing.T) {
	const begin, end = "<!-- begin: router -->\n", "<!-- end: router -->\n"
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
		t.Errorf("%s is not what the router shows; write it again with: go test ./internal/routerd -run TestMetricsPage -update", metricsPage)
	}
}
