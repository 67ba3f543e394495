package telemetry

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Kind says how the value of a metric behaves.
type Kind string

// The kinds of metric.
const (
	Counter   Kind = "counter"   // only rises, until the process ends
	Gauge     Kind = "gauge"     // goes up and down
	Histogram Kind = "histogram" // counts of durations
)

// A Metric is a name under which a component shows figures.
type Metric struct {
	Name   string
	Kind   Kind
	Help   string   // a sentence
	Labels []string // bounded ones only
}

// Under returns what makes metrics of kind k, whose names begin with prefix.
func (k Kind) Under(prefix string) func(name, help string, labels ...string) Metric {
	return func(name, help string, labels ...string) Metric { return Metric{prefix + name, k, help, labels} }
}

// Figures are what a collector has to show now. A figure of an unknown metric,
// or with another number of labels than it has, makes the whole collection
// fail, so that a test sees it.
type Figures struct {
	descs map[string]described
	out   chan<- prometheus.Metric
}

type described struct {
	metric Metric
	desc   *prometheus.Desc
}

// Set shows the value of a counter or gauge.
func (f *Figures) Set(name string, value float64, labels ...string) {
	d, ok := f.descs[name]
	if !ok {
		f.fail(fmt.Errorf("no metric is called %q", name))
		return
	}
	kind := prometheus.GaugeValue
	if d.metric.Kind == Counter {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(d.desc, kind, value, labels...)
	if err != nil {
		f.fail(err)
		return
	}
	f.out <- m
}

// Count shows the value of a counter.
func (f *Figures) Count(name string, value uint64, labels ...string) {
	f.Set(name, float64(value), labels...)
}

// Bool shows a gauge that is 1 for true and 0 for false.
func (f *Figures) Bool(name string, value bool, labels ...string) {
	n := 0.0
	if value {
		n = 1
	}
	f.Set(name, n, labels...)
}

// Time shows a moment as seconds since 1970, and nothing if it is zero.
func (f *Figures) Time(name string, t time.Time, labels ...string) {
	if !t.IsZero() {
		f.Set(name, float64(t.UnixMilli())/1000, labels...)
	}
}

// Durations shows a histogram: counts[i] durations were at most bounds[i] and
// above the bound before, those in the last element of counts above all
// bounds.
func (f *Figures) Durations(name string, bounds []time.Duration, counts []uint64, sum time.Duration, labels ...string) {
	d, ok := f.descs[name]
	if !ok || len(counts) != len(bounds)+1 {
		f.fail(fmt.Errorf("histogram %q: unknown, or %d counts for %d bounds", name, len(counts), len(bounds)))
		return
	}
	var total uint64
	buckets := make(map[float64]uint64, len(bounds))
	for i, n := range counts {
		total += n
		if i < len(bounds) {
			buckets[bounds[i].Seconds()] = total
		}
	}
	m, err := prometheus.NewConstHistogram(d.desc, total, sum.Seconds(), buckets, labels...)
	if err != nil {
		f.fail(err)
		return
	}
	f.out <- m
}

func (f *Figures) fail(err error) {
	f.out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
}

// A Collector shows a component's figures to Prometheus.
type Collector struct {
	descs   map[string]described
	collect func(*Figures)
}

// NewCollector returns a collector of these metrics. collect is called each
// time that somebody asks, from many goroutines.
func NewCollector(metrics []Metric, collect func(*Figures)) *Collector {
	c := &Collector{make(map[string]described, len(metrics)), collect}
	for _, m := range metrics {
		c.descs[m.Name] = described{m, prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)}
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) { c.collect(&Figures{c.descs, ch}) }

// Table returns the documentation of metrics as a table in Markdown.
func Table(metrics []Metric) string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range metrics {
		labels := strings.Join(m.Labels, "`, `")
		if labels != "" {
			labels = "`" + labels + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, strings.ReplaceAll(m.Help, "|", "\\|"))
	}
	return b.String()
}
