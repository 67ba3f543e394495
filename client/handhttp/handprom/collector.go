// Package handprom shows what a transport of hands does as Prometheus metrics.
//
// Package handhttp counts by itself and links no metrics library; this one
// reads its counts each time that Prometheus asks. The labels are a cell, a
// reason, a worker; never a tenant.
package handprom

import (
	"github.com/cellway/cellway/client/handhttp"
	"github.com/prometheus/client_golang/prometheus"
)

// A metric is one that a [Collector] shows.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// A Collector is a [prometheus.Collector] of one transport. Only [New] makes
// useful ones.
type Collector struct {
	transport *handhttp.Transport
	names     map[string]metric
	attempts  *prometheus.Desc
}

// New returns a collector of t. Every metric gets the label cell with the name
// of the cell whose workers t calls, so that a registry takes collectors of
// several cells.
func New(cell string, t *handhttp.Transport) *Collector {
	c := &Collector{transport: t, names: make(map[string]metric)}
	label := prometheus.Labels{"cell": cell}
	c.attempts = prometheus.NewDesc(attemptsName, attemptsHelp, nil, label)
	for _, row := range table {
		c.names[row.name] = metric{prometheus.NewDesc(row.name, row.help, row.labels, label), row.kind}
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.attempts
	for _, m := range c.names {
		out <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	send := func(name string, v float64, labels ...string) {
		m := c.names[name]
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
	}
	count := func(name string, n uint64, labels ...string) { send(name, float64(n), labels...) }

	s := c.transport.Stats()
	out <- attempts(c.attempts, s)
	count("cellway_hand_calls_total", s.Calls)
	count("cellway_hand_failures_total", s.Failures)
	count("cellway_hand_weak_calls_total", s.Weak, "some")
	count("cellway_hand_weak_calls_total", s.Covered, "all")
	count("cellway_hand_retries_total", s.Retries)
	count("cellway_hand_retries_refused_total", s.OverBudget, "budget")
	count("cellway_hand_retries_refused_total", s.Poisoned, "poison")
	count("cellway_hand_retries_refused_total", s.TooLate, "late")
	count("cellway_hand_hedges_total", s.Hedges)
	count("cellway_hand_hedge_wins_total", s.HedgeWins)
	count("cellway_hand_set_aside_total", s.SetAside)
	count("cellway_hand_misdealt_total", s.Misdealt)
	send("cellway_hand_budget", s.Budget)
	for _, m := range c.transport.Members() {
		aside := 0.0
		if m.Aside {
			aside = 1
		}
		send("cellway_hand_member_aside", aside, m.ID, m.Zone)
		send("cellway_hand_member_in_flight", float64(m.InFlight), m.ID, m.Zone)
		send("cellway_hand_member_latency_seconds", m.Latency.Seconds(), m.ID, m.Zone)
	}
}

// attempts makes a histogram of the attempts of calls.
func attempts(desc *prometheus.Desc, s handhttp.Stats) prometheus.Metric {
	var calls uint64
	buckets := make(map[float64]uint64, len(s.Attempts)-1)
	for i, n := range s.Attempts {
		calls += n
		if i+1 < len(s.Attempts) {
			buckets[float64(i+1)] = calls
		}
	}
	return prometheus.MustNewConstHistogram(desc, calls, float64(calls+s.Retries+s.Hedges), buckets)
}
