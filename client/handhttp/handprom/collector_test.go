package handprom

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var update = flag.Bool("update", false, "write the table of metrics in the document again")

const page = "../../../docs/operations/clients.md"

// transport returns one whose tenant has two workers, the first of which fails.
func transport(t *testing.T) *handhttp.Transport {
	t.Helper()
	var members []handhttp.Member
	for i, status := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		members = append(members, handhttp.Member{ID: fmt.Sprint("w", i), Zone: "a", URL: s.URL})
	}
	rt, err := handhttp.New(handhttp.Config{
		Hands:          &handhttp.Received{Of: "1", Tenants: map[string][]handhttp.Member{"acme": members}},
		ConnectTimeout: 5 * time.Second, TryTimeout: 5 * time.Second, // a busy machine is no fault
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

func call(t *testing.T, rt http.RoundTripper) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "http://cell/", nil)
	req.Header.Set("X-Tenant-Id", "acme")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// shown is what a server of metrics answers.
func shown(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("metrics are answered %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestCollectorShowsWhatTheTransportCounted(t *testing.T) {
	one, other := transport(t), transport(t)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(New("cell-001", one), New("cell-002", other))
	for range 20 {
		call(t, one)
	}
	s := one.Stats()
	if s.Retries == 0 {
		t.Fatal("no request was retried, so there is little to show")
	}
	text := shown(t, r)
	for _, want := range []string{
		`cellway_hand_calls_total{cell="cell-001"} 20`,
		`cellway_hand_calls_total{cell="cell-002"} 0`,
		fmt.Sprintf(`cellway_hand_retries_total{cell="cell-001"} %d`, s.Retries),
		fmt.Sprintf(`cellway_hand_call_attempts_bucket{cell="cell-001",le="1"} %d`, s.Attempts[0]),
		`cellway_hand_call_attempts_bucket{cell="cell-001",le="2"} 20`,
		`cellway_hand_call_attempts_bucket{cell="cell-001",le="+Inf"} 20`,
		fmt.Sprintf(`cellway_hand_call_attempts_sum{cell="cell-001"} %d`, 20+s.Retries),
		`cellway_hand_retries_refused_total{cell="cell-001",why="budget"} 0`,
		`cellway_hand_budget{cell="cell-002"} 100`,
		`cellway_hand_member_in_flight{cell="cell-001",member="w1",zone="a"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, row := range table {
		if !strings.Contains(text, "# HELP "+row.name+" ") {
			t.Errorf("%s is described and never shown", row.name)
		}
	}
	if strings.Contains(text, "acme") {
		t.Error("a tenant is named in a metric")
	}
}

// The document has the table of metrics that the code shows.
func TestDocsMetricsOfHands(t *testing.T) {
	kinds := map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge"}
	rows := []string{fmt.Sprintf("| `%s` | histogram | cell | %s |", attemptsName, attemptsHelp)}
	for _, row := range table {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", row.name, kinds[row.kind], strings.Join(append([]string{"cell"}, row.labels...), ", "), row.help))
	}
	slices.Sort(rows)
	want := "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n" + strings.Join(rows, "\n") + "\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: metrics of hands -->\n", "<!-- end: metrics of hands -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if got != want {
		t.Errorf("%s is not what the code shows; write it again with: go test ./client/handhttp/handprom -run TestDocs -update", page)
	}
}
