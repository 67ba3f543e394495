package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/prometheus/client_golang/prometheus"
)

func testMetrics() []Metric {
	return []Metric{
		{"cellway_test_requests_total", Counter, "Requests.", []string{"cell"}},
		{"cellway_test_ready", Gauge, "Whether it is ready.", nil},
		{"cellway_test_swapped_timestamp_seconds", Gauge, "When.", nil},
		{"cellway_test_added_seconds", Histogram, "Time in a|b.", nil},
	}
}

func scrape(t *testing.T, collect func(*Figures)) (string, error) {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(testMetrics(), collect))
	_, err := reg.Gather()
	w := httptest.NewRecorder()
	Handler(reg, slog.New(slog.NewTextHandler(t.Output(), nil))).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String(), err
}

func TestCollectorShowsFigures(t *testing.T) {
	got, err := scrape(t, func(f *Figures) {
		f.Count("cellway_test_requests_total", 7, "cell-001")
		f.Bool("cellway_test_ready", true)
		f.Time("cellway_test_swapped_timestamp_seconds", time.Unix(1_800_000_000, 500_000_000))
		f.Durations("cellway_test_added_seconds", []time.Duration{time.Millisecond, time.Second}, []uint64{3, 2, 1}, 5*time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`cellway_test_requests_total{cell="cell-001"} 7`,
		"# TYPE cellway_test_requests_total counter",
		"# HELP cellway_test_ready Whether it is ready.",
		"cellway_test_ready 1",
		"cellway_test_swapped_timestamp_seconds 1.8000000005e+09",
		`cellway_test_added_seconds_bucket{le="0.001"} 3`,
		`cellway_test_added_seconds_bucket{le="1"} 5`,
		`cellway_test_added_seconds_bucket{le="+Inf"} 6`,
		"cellway_test_added_seconds_sum 5",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestAMomentThatNeverCameIsNotShown(t *testing.T) {
	got, err := scrape(t, func(f *Figures) {
		f.Time("cellway_test_swapped_timestamp_seconds", time.Time{})
		f.Bool("cellway_test_ready", false)
	})
	if err != nil || strings.Contains(got, "swapped") || !strings.Contains(got, "cellway_test_ready 0\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

// A figure that the list of metrics does not know is seen by a test, and hides
// nothing else.
func TestUnlistedFiguresFail(t *testing.T) {
	for name, collect := range map[string]func(f *Figures){
		"unknown":           func(f *Figures) { f.Set("cellway_test_other", 1) },
		"missing label":     func(f *Figures) { f.Count("cellway_test_requests_total", 1) },
		"surplus label":     func(f *Figures) { f.Set("cellway_test_ready", 1, "cell-001") },
		"unknown histogram": func(f *Figures) { f.Durations("cellway_test_other", nil, []uint64{1}, 0) },
		"missing count":     func(f *Figures) { f.Durations("cellway_test_added_seconds", []time.Duration{1}, []uint64{1}, 0) },
		"surplus histogram label": func(f *Figures) {
			f.Durations("cellway_test_added_seconds", nil, []uint64{1}, 0, "cell-001")
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := scrape(t, func(f *Figures) {
				f.Count("cellway_test_requests_total", 7, "cell-001")
				collect(f)
			})
			if err == nil {
				t.Error("no error")
			}
			if !strings.Contains(got, "cellway_test_requests_total") {
				t.Errorf("the other figures are gone:\n%s", got)
			}
		})
	}
}

func TestTableOfMetrics(t *testing.T) {
	got := Table(testMetrics())
	for _, want := range []string{
		"| `cellway_test_requests_total` | counter | `cell` | Requests. |\n",
		"| `cellway_test_added_seconds` | histogram |  | Time in a\\|b. |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestRegistryNamesTheBuild(t *testing.T) {
	w := httptest.NewRecorder()
	reg := NewRegistry("cellway_test", Build{Version: "v1.2.3", Revision: "abc", Modified: true, Go: "go1.26.8"})
	Handler(reg, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`cellway_test_build_info{go_version="go1.26.8",modified="true",revision="abc",version="v1.2.3"} 1`, "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestLogFormats(t *testing.T) {
	var b bytes.Buffer
	for format, isJSON := range map[string]bool{"json": true, "auto": true, "text": false} {
		b.Reset()
		log, err := NewLog(&b, format, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("not this")
		log.Info("map in use", "map_version", cellway.NewVersion(1, 2))
		if got := json.Valid(b.Bytes()); got != isJSON || !strings.Contains(b.String(), "1.2") || strings.Contains(b.String(), "not this") {
			t.Errorf("%s: %s", format, b.String())
		}
	}
	if _, err := NewLog(&b, "xml", slog.LevelInfo); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("xml: %v", err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if isTerminal(file) || isTerminal(io.Discard) {
		t.Error("a file is taken for a terminal")
	}
}

func TestBuildOnOneLine(t *testing.T) {
	for _, tt := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3 (go1.26.8)"},
		{debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}}, "devel (0123456789ab, modified, go1.26.8)"},
		{debug.BuildInfo{}, "devel (unknown toolchain)"},
	} {
		if got := buildOf(&tt.info).String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if ReadBuild().Go == "" {
		t.Error("this test's build is unknown")
	}
}
