//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A report is what is printed.
type report struct {
	Subjects []subject         `json:"subjects"`
	Skipped  map[string]string `json:"skipped,omitempty"` // subjects, and why
	Rounds   int               `json:"rounds"`
	WindowMS int64             `json:"window_ms"`
	Keys     int               `json:"keys"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Load     string            `json:"load_average,omitempty"` // of the machine, before
	Results  []result          `json:"results"`
	Verdicts []verdict         `json:"verdicts"`
}

// A result is of one subject with one workload and number of connections.
type result struct {
	Workload    string             `json:"workload"`
	title       string             //
	Connections int                `json:"connections"`
	Subject     string             `json:"subject"`
	Median      run                `json:"median"`           // each figure by itself; Round is 0
	Ratios      map[string]float64 `json:"cpu_ratios"`       // to others, by name
	Least       float64            `json:"least_cpu_us"`     // over the rounds
	Most        float64            `json:"most_cpu_us"`      // over the rounds
	Runs        []run              `json:"runs"`             //
	Short       bool               `json:"short,omitempty"`  // of access log lines
	Unbusy      bool               `json:"unbusy,omitempty"` // the proxy waited for requests
	Disturbed   bool               `json:"disturbed,omitempty"`
}

// summarize makes a result of runs.
func summarize(w workload, connections int, subject string, runs []run) result {
	of := func(f func(run) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, f(r))
		}
		return median(all)
	}
	cpu := func(r run) float64 { return r.CPUMicros }
	res := result{
		Workload: w.Name, title: w.title, Connections: connections, Subject: subject, Runs: runs, Ratios: map[string]float64{},
		Median: run{
			CPUMicros: of(cpu), PerSecond: of(func(r run) float64 { return r.PerSecond }),
			P50Millis: of(func(r run) float64 { return r.P50Millis }), P99Millis: of(func(r run) float64 { return r.P99Millis }),
			PeakMiB: of(func(r run) float64 { return r.PeakMiB }), Busy: of(func(r run) float64 { return r.Busy }),
			Others:      of(func(r run) float64 { return r.Others }),
			Strangers:   of(func(r run) float64 { return r.Strangers }),
			LoggedShare: of(func(r run) float64 { return r.LoggedShare }),
		},
		Least: slices.MinFunc(runs, func(a, b run) int { return compare(a.CPUMicros, b.CPUMicros) }).CPUMicros,
		Most:  slices.MaxFunc(runs, func(a, b run) int { return compare(a.CPUMicros, b.CPUMicros) }).CPUMicros,
	}
	res.Short = w.Logged && !w.socket && res.Median.LoggedShare < 0.99
	res.Unbusy = res.Median.Busy+res.Median.Others < 0.9
	res.Disturbed = res.Median.Others > 0.1
	return res
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// relate fills in the ratios between results of the same workload and number of
// connections: medians of the ratios within each round.
func relate(all []result) {
	for i := range all {
		for j := range all {
			a, b := &all[i], all[j]
			if a.Workload != b.Workload || a.Connections != b.Connections || len(a.Runs) != len(b.Runs) {
				continue
			}
			var ratios []float64
			for k := range a.Runs {
				ratios = append(ratios, a.Runs[k].CPUMicros/b.Runs[k].CPUMicros)
			}
			a.Ratios[b.Subject] = median(ratios)
		}
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return all[n/2]
	}
	return (all[n/2-1] + all[n/2]) / 2
}

// A budget is how much more CPU time than a peer a router may take.
type budget struct {
	workload    string
	connections []int // none: all
	peer        string
	most        float64
}

func budgets() []budget {
	return []budget{
		{"small", []int{64, 512}, nginxName, 0.9},
		{"small", []int{64, 512}, haproxyName, 0.9},
		{"small", []int{64, 512}, caddyName, 0.25},
		{"tls", nil, nginxName, 1.2},
		{"large", nil, nginxName, 1},
		{"body", nil, nginxName, 1},
	}
}

// sizeBudget is how much more CPU time a router may take with its largest map
// than with its smallest.
const sizeBudget = 1.05

// judgeSizes holds each router's results with its largest map against those with
// its smallest.
func judgeSizes(all []result, subjects []subject) (verdicts []verdict) {
	least, most := map[string]subject{}, map[string]subject{}
	for _, s := range subjects {
		if !s.router {
			continue
		}
		name, _, _ := strings.Cut(s.Name, "/")
		if was, ok := least[name]; !ok || s.Keys < was.Keys {
			least[name] = s
		}
		if was, ok := most[name]; !ok || s.Keys > was.Keys {
			most[name] = s
		}
	}
	for _, r := range all {
		name, _, _ := strings.Cut(r.Subject, "/")
		if least, ok := least[name]; ok && r.Subject == most[name].Name && r.Subject != least.Name {
			verdicts = append(verdicts, hold(all, r, least.Name, sizeBudget))
		}
	}
	return verdicts
}

// judge holds the routers' results against the budgets.
func judge(all []result, routers []string) (verdicts []verdict) {
	for _, r := range all {
		if !slices.Contains(routers, r.Subject) {
			continue
		}
		for _, b := range budgets() {
			_, measured := r.Ratios[b.peer]
			if b.workload == r.Workload && (b.connections == nil || slices.Contains(b.connections, r.Connections)) && measured {
				verdicts = append(verdicts, hold(all, r, b.peer, b.most))
			}
		}
	}
	return verdicts
}

// table prints the report for people.
func (r report) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "medians of %d rounds of %d ms, %d keys, one core for the proxy; %d x %s", r.Rounds, r.WindowMS, r.Keys, r.CPUs, r.CPU)
	if r.Load != "" {
		fmt.Fprintf(&b, "; load average before %s", r.Load)
	}
	b.WriteString("\n")
	for _, s := range r.Subjects {
		fmt.Fprintf(&b, "%-18s %s\n", s.Name, s.Version)
	}
	last, short, unbusy, disturbed := result{}, false, false, false
	for _, one := range r.Results {
		if one.Workload != last.Workload {
			fmt.Fprintf(&b, "\n%s: %s\n%11s  %-18s %10s %17s %9s %9s %10s %6s %8s %8s %9s\n", one.Workload, one.title,
				"connections", "proxy", "us/request", "least to most", "x nginx", "x haproxy", "requests/s", "busy", "p50 ms", "p99 ms", "peak MiB")
		} else if one.Connections != last.Connections {
			b.WriteString("\n")
		}
		last = one
		mark := ""
		if one.Unbusy {
			mark, unbusy = mark+" *", true
		}
		if one.Disturbed {
			mark, disturbed = mark+fmt.Sprintf(" +%.0f%%", 100*one.Median.Others), true
		}
		if one.Short {
			mark, short = mark+fmt.Sprintf(" (%.0f %% logged)", 100*one.Median.LoggedShare), true
		}
		m := one.Median
		fmt.Fprintf(&b, "%11d  %-18s %10.1f %17s %9s %9s %10.0f %5.0f%% %8.2f %8.2f %9.1f%s\n", one.Connections, one.Subject, m.CPUMicros,
			fmt.Sprintf("%.1f to %.1f", one.Least, one.Most), one.ratio(nginxName), one.ratio(haproxyName), m.PerSecond, 100*m.Busy, m.P50Millis, m.P99Millis, m.PeakMiB, mark)
	}
	if unbusy {
		b.WriteString("\n* the proxy's core was not busy: the generator and the cells were, and what is spent on waiting counts\n")
	}
	if disturbed {
		b.WriteString("\n+ so much of the time something else had the proxy's core: run it again when the machine is quiet\n")
	}
	if short {
		b.WriteString("\na share of logged requests below 100 %: the proxy drops lines rather than wait for its disk\n")
	}
	if len(r.Verdicts) > 0 {
		b.WriteString("\nbudgets of CPU time\n")
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%-18s %-9s %4d connections  %5.2f x %-18s at most %.2f  %s\n", v.Subject, v.Workload, v.Connections, v.Ratio, v.Peer, v.Most, v.say())
	}
	if _, unclear := r.missed(); unclear > 0 {
		b.WriteString("\nunclear: missed, and the machine was busy with something else; that is not met. Run it again when the machine is quiet\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r result) ratio(peer string) string {
	if ratio, ok := r.Ratios[peer]; ok {
		return fmt.Sprintf("%.2f", ratio)
	}
	return "-"
}
