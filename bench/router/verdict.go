//go:build linux

package main

import (
	"fmt"
	"slices"
)

// A verdict holds one result against one budget.
type verdict struct {
	Subject     string  `json:"subject"`
	Workload    string  `json:"workload"`
	Connections int     `json:"connections"`
	Peer        string  `json:"peer"`
	Ratio       float64 `json:"ratio"`   // the median of the rounds
	Lowest      float64 `json:"lowest"`  // of the rounds
	Highest     float64 `json:"highest"` // of the rounds
	Most        float64 `json:"most"`
	Meets       bool    `json:"meets"`
	Doubt       string  `json:"doubt,omitempty"` // why a budget that is missed may be the machine's doing
}

// What a machine may do beside a measurement without it being called busy.
const (
	mostOthers    = 0.05 // of the proxy's core
	mostStrangers = 0.10 // of all cores
	mostSpread    = 1.25 // what a peer takes in its dearest round, beside its cheapest
)

// quiet reports whether hardly anything else ran.
func (r run) quiet() bool { return r.Others <= mostOthers && r.Strangers <= mostStrangers }

// hold holds a result against what a peer took in the same rounds.
func hold(all []result, r result, peer string, most float64) verdict {
	v := verdict{Subject: r.Subject, Workload: r.Workload, Connections: r.Connections, Peer: peer, Ratio: r.Ratios[peer], Most: most}
	v.Meets = v.Ratio <= most
	i := slices.IndexFunc(all, func(b result) bool {
		return b.Subject == peer && b.Workload == r.Workload && b.Connections == r.Connections && len(b.Runs) == len(r.Runs)
	})
	if i < 0 {
		return v
	}
	ratios, quiet := ratiosOf(r, all[i])
	v.Lowest, v.Highest = slices.Min(ratios), slices.Max(ratios)
	if !v.Meets {
		v.Doubt = doubt(r, all[i], quiet, v.Lowest, most)
	}
	return v
}

// ratiosOf returns the ratio of each round, and those of the rounds in which hardly
// anything else ran.
func ratiosOf(a, b result) (all, quiet []float64) {
	for i := range a.Runs {
		ratio := a.Runs[i].CPUMicros / b.Runs[i].CPUMicros
		all = append(all, ratio)
		if a.Runs[i].quiet() && b.Runs[i].quiet() {
			quiet = append(quiet, ratio)
		}
	}
	return all, quiet
}

// doubt says why a missed budget tells nothing of the router, or "". What was measured
// while the machine was quiet counts, if that were most of the rounds. That it was not
// steady is no excuse for a miss in every round, in each of which the peer had the same
// machine.
func doubt(a, b result, quiet []float64, lowest, most float64) string {
	rounds := len(a.Runs)
	if busy := rounds - len(quiet); 2*busy >= rounds {
		others, strangers := 0.0, 0.0
		for _, r := range slices.Concat(a.Runs, b.Runs) {
			others, strangers = max(others, r.Others), max(strangers, r.Strangers)
		}
		return fmt.Sprintf("something else ran in %d of %d rounds: up to %.0f %% of the proxy's core, %.0f %% of the machine", busy, rounds, 100*others, 100*strangers)
	}
	if got := median(quiet); got <= most {
		return fmt.Sprintf("something else ran in %d of %d rounds, and without them it is %.2f", rounds-len(quiet), rounds, got)
	}
	if lowest <= most && b.Most > mostSpread*b.Least {
		return fmt.Sprintf("the machine was not steady: %s alone took %.1f to %.1f us", b.Subject, b.Least, b.Most)
	}
	return ""
}

// say is the verdict in words.
func (v verdict) say() string {
	switch {
	case v.Meets:
		return "yes"
	case v.Doubt != "":
		return "unclear: " + v.Doubt
	case v.Lowest < v.Highest:
		return fmt.Sprintf("NO, %.2f to %.2f over the rounds", v.Lowest, v.Highest)
	}
	return "NO"
}

// missed returns how many budgets are, and how many more would be if the machine had
// not been busy: those are not met either.
func (r report) missed() (missed, unclear int) {
	for _, v := range r.Verdicts {
		switch {
		case v.Meets:
		case v.Doubt != "":
			unclear++
		default:
			missed++
		}
	}
	return missed, unclear
}
