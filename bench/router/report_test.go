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
	if missed, unclear := rep.missed(); len(rep.Verdicts) != 3 || missed != 1 || unclear != 0 {
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

// A figure that is missed while something else ran is not called met, and not blamed
// on the router either.
func TestABusyMachineIsToldFromAMissedBudget(t *testing.T) {
	small := workloads()[0]
	busy := func(runs []run, others, strangers float64, rounds ...int) []run {
		for _, i := range rounds {
			runs[i].Others, runs[i].Strangers = others, strangers
		}
		return runs
	}
	for name, tt := range map[string]struct {
		router, peer    []run
		say             string
		missed, unclear int
	}{
		"met":                            {runsOf(8, 9, 8), runsOf(10, 10, 10), "yes", 0, 0},
		"met on a busy machine":          {busy(runsOf(8, 9, 8), 0.5, 0.5, 0, 1, 2), runsOf(10, 10, 10), "yes", 0, 0},
		"missed":                         {runsOf(10, 11, 10), runsOf(10, 10, 10), "NO, 1.00 to 1.10 over the rounds", 1, 0},
		"missed, hardly disturbed":       {busy(runsOf(10, 11, 10), 0.04, 0.09, 0, 1, 2), runsOf(10, 10, 10), "NO, 1.00 to 1.10", 1, 0},
		"missed, disturbed once":         {busy(runsOf(10, 11, 10), 0.5, 0, 1), runsOf(10, 10, 10), "NO, 1.00 to 1.10", 1, 0},
		"disturbed on the core":          {busy(runsOf(10, 11, 10), 0.5, 0.3, 1, 2), runsOf(10, 10, 10), "unclear: something else ran in 2 of 3 rounds: up to 50 % of the proxy's core, 30 % of the machine", 0, 1},
		"disturbed elsewhere":            {runsOf(10, 11, 10), busy(runsOf(10, 10, 10), 0, 0.6, 0, 1), "unclear: something else ran in 2 of 3 rounds: up to 0 % of the proxy's core, 60 %", 0, 1},
		"missed by the disturbed alone":  {busy(runsOf(8, 8, 8, 12, 12), 0.2, 0, 3, 4), busy(runsOf(10, 9, 8.5, 10, 10), 0, 0, 0), "unclear: something else ran in 2 of 5 rounds, and without them it is 0.89", 0, 1},
		"unsteady":                       {runsOf(12, 12, 12), runsOf(10, 14, 10), "unclear: the machine was not steady: nginx alone took 10.0 to 14.0 us", 0, 1},
		"unsteady, missed in each round": {runsOf(12, 12, 12), runsOf(10, 13, 10), "NO, 0.92 to 1.20 over the rounds", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			all := []result{summarize(small, 64, routerName, tt.router), summarize(small, 64, nginxName, tt.peer)}
			relate(all)
			rep := report{Results: all, Verdicts: judge(all, []string{routerName})}
			missed, unclear := rep.missed()
			if got := rep.Verdicts[0].say(); !strings.HasPrefix(got, tt.say) || missed != tt.missed || unclear != tt.unclear {
				t.Errorf("it says %q, %d missed, %d unclear; want %q", got, missed, unclear, tt.say)
			}
			var b strings.Builder
			if err := rep.table(&b); err != nil || strings.Contains(b.String(), "Run it again when the machine is quiet") != (tt.unclear > 0) {
				t.Errorf("%v\n%s", err, b.String())
			}
		})
	}
}
