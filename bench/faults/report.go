//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A report is what is printed.
type report struct {
	Rounds   int        `json:"rounds"`
	WindowMS int64      `json:"window_ms"`
	Rate     int        `json:"rate"`     // requests a second for the three cells that are well together
	BadRate  int        `json:"bad_rate"` // for the fourth
	Clients  int        `json:"clients"`  // of a crowd
	Readers  int        `json:"readers"`  // that don't read
	CPUs     int        `json:"cpus"`
	Load     string     `json:"load_average,omitempty"` // of the machine, before
	Results  []verdict  `json:"faults,omitempty"`
	Idle     []idleness `json:"idle,omitempty"`
}

// missed returns how many faults and measurements of idle connections miss a
// bound.
func (r report) missed() (n int) {
	for _, v := range r.Results {
		if len(v.Missed) > 0 {
			n++
		}
	}
	for _, v := range r.Idle {
		if !v.Meets {
			n++
		}
	}
	return n
}

// table prints the report for people.
func (r report) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs", r.CPUs)
	if r.Load != "" {
		fmt.Fprintf(&b, ", load average before %s", r.Load)
	}
	b.WriteString("\n")
	if len(r.Results) > 0 {
		r.faultTable(&b)
	}
	if len(r.Idle) > 0 {
		fmt.Fprintf(&b, "\nmemory of the router's process for each idle connection\n%-10s %-9s %-26s %11s %10s %12s  %s\n", "server", "over", "each has", "connections", "RSS MiB", "KiB each", "meets")
	}
	for _, v := range r.Idle {
		meets := "(told)"
		if v.MostKiB > 0 {
			meets = fmt.Sprintf("%s, at most %.0f", yes(v.Meets), v.MostKiB)
		}
		fmt.Fprintf(&b, "%-10s %-9s %-26s %11d %10.1f %12.2f  %s\n", v.Server, v.Over, v.Did, v.Connections, v.WithMiB, v.KiBEach, meets)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) faultTable(b *strings.Builder) {
	fmt.Fprintf(b, "medians of %d rounds with windows of %v; %d requests a second for three cells, and %d for the fourth\n",
		r.Rounds, time.Duration(r.WindowMS)*time.Millisecond, r.Rate, r.BadRate)
	fmt.Fprintf(b, "\n%-16s %8s %8s %7s %7s %7s %14s %8s  %-23s %-17s %9s  %s\n", "", "p99 ms", "with it", "ratio", "+ ms", "A/A", "CPU ms/s", "failed", "RSS MiB", "descriptors", "free in s", "meets")
	for _, v := range r.Results {
		meets := yes(len(v.Missed) == 0)
		if !v.Conclusive {
			meets += " (too noisy to tell)"
		}
		failed := 0
		for _, n := range v.Failed {
			failed += n
		}
		fmt.Fprintf(b, "%s %8d  %-23s %-17s %9.1f  %s\n", v.row(v.Name), failed,
			fmt.Sprintf("%.1f, %.1f, %.1f", v.Before.MiB, v.During.MiB, v.After.MiB),
			fmt.Sprintf("%d, %d, %d", v.Before.Descriptors, v.During.Descriptors, v.After.Descriptors), v.Settled, meets)
		if v.Beside != nil {
			fmt.Fprintf(b, "%s\n", v.Beside.row("  nginx"))
		}
	}
	fmt.Fprintf(b, "\np99 and failures are of the other cells; A/A is one window without the fault to the other; CPU ms/s is the router's without the fault and with it;\nin rows of nginx, it is in front. Memory and descriptors are the router's before, during and after, in the round in which memory grew most. Bounds: p99 at most %.1f x or + %.1f ms, whichever is larger; no failures.\n", mostRatio, mostAddedMS)
	for _, v := range r.Results {
		fmt.Fprintf(b, "\n%s: %s\n", v.Name, v.What)
		fmt.Fprintf(b, "    the fourth cell's requests: %s\n", v.Fourth)
		if v.Seen != "" {
			fmt.Fprintf(b, "    %s\n", v.Seen)
		}
		if len(v.Failed) > 0 {
			fmt.Fprintf(b, "    of the other cells' %d requests failed: %s\n", v.Asked, v.Failed)
		}
		for _, missed := range v.Missed {
			fmt.Fprintf(b, "    MISSED: %s\n", missed)
		}
	}
}

// row is a comparison's part of a line of the table.
func (c comparison) row(name string) string {
	return fmt.Sprintf("%-16s %8.2f %8.2f %7.2f %7.2f %7.2f %14s", name, c.WithoutP99MS, c.WithP99MS, c.P99Ratio, c.P99AddedMS, c.SameRatio, fmt.Sprintf("%.0f, %.0f", c.WithoutCPUMS, c.WithCPUMS))
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}
