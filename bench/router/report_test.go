//go:build linux

package main

import (
	"strings"
	"testing"
)

func runsOf(micros ...float64) (runs []run) {
	for i, us := range micros {
		runs = append(runs, run{Round: i + 1, CPUMicros: us, Busy: 0.95})
	}
	return runs
}

// The machine was twice as slow in the second round, for all: the ratio within
// the rounds says nothing of it.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	small := workloads()[0]
	all := []result{
		summarize(small, 64, routerName, runsOf(8, 16, 9)),
		summarize(small, 64, nginxName, runsOf(10, 20, 10)),
		summarize(small, 8, nginxName, runsOf(1, 1, 1)),
	}
	relate(all)
	if got := all[0].Ratios[nginxName]; got != 0.8 {
		t.Errorf("the ratio is %v, want 0.8", got)
	}
	if m := all[0].Median.CPUMicros; m != 9 || all[0].Least != 8 || all[0].Most != 16 {
		t.Errorf("median %v, from %v to %v", m, all[0].Least, all[0].Most)
	}
}

func TestBudgetsAreJudged(t *testing.T) {
	small, tls := workloads()[0], workloads()[3]
	all := []result{
		summarize(small, 64, routerName, runsOf(9)),
		summarize(small, 64, nginxName, runsOf(10)),
		summarize(small, 64, haproxyName, runsOf(9.5)),
		summarize(tls, 8, routerName, runsOf(12)),
		summarize(tls, 8, nginxName, runsOf(10)),
	}
	relate(all)
	rep := report{Results: all, Verdicts: judge(all, []string{routerName})}
	if len(rep.Verdicts) != 3 || rep.missed() != 1 {
		t.Fatalf("verdicts: %+v", rep.Verdicts)
	}
	var b strings.Builder
	if err := rep.table(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"router             small       64 connections   0.90 x nginx              at most 0.90  yes",
		"router             small       64 connections   0.95 x haproxy            at most 0.90  NO",
		"router             tls          8 connections   1.20 x nginx              at most 1.20  yes",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestTableSaysWhatSpoilsAFigure(t *testing.T) {
	logs := workloads()[0]
	logs.Logged = true
	all := []result{summarize(logs, 8, routerName, []run{{CPUMicros: 1, Busy: 0.3, Others: 0.2, LoggedShare: 0.5}})}
	relate(all)
	var b strings.Builder
	if err := (report{Results: all}).table(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" * +20% (50 % logged)", "drops lines", "when the machine is quiet"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
}

func TestMapSizesAreJudged(t *testing.T) {
	small := workloads()[0]
	subjects := []subject{
		{Name: routerName, Keys: 10_000, router: true}, {Name: "router/1000000", Keys: 1_000_000, router: true},
		{Name: "router/100", Keys: 100, router: true}, {Name: nginxName, Keys: 10_000},
	}
	var all []result
	for i, us := range []float64{10, 10.6, 10, 12} {
		all = append(all, summarize(small, 64, subjects[i].Name, runsOf(us)))
	}
	relate(all)
	got := judgeSizes(all, subjects)
	if len(got) != 1 || got[0].Subject != "router/1000000" || got[0].Peer != "router/100" || got[0].Meets {
		t.Errorf("verdicts: %+v", got)
	}
}
