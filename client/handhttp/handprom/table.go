package handprom

import "github.com/prometheus/client_golang/prometheus"

const (
	attemptsName = "cellway_hand_call_attempts"
	attemptsHelp = "Attempts of calls that are over, hedges included."
)

// member are the labels of what is told of each worker.
var member = []string{"member", "zone"}

// table is all metrics but the histogram, in the order of the documents.
var table = []struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}{
	{"cellway_hand_calls_total", "Requests given to the transport that had a hand.", prometheus.CounterValue, nil},
	{"cellway_hand_failures_total", "Calls that ended with an error, or with an answer that is a failure.", prometheus.CounterValue, nil},
	{"cellway_hand_weak_calls_total", "Calls whose hand had members set aside when they began: some of them, or all.", prometheus.CounterValue, []string{"members"}},
	{"cellway_hand_retries_total", "Attempts beyond the first, hedges aside.", prometheus.CounterValue, nil},
	{"cellway_hand_retries_refused_total", "Retries that were not made: for lack of budget, since the tenant is suspected of poison, or because it was too late. Hedges count for budget, too.", prometheus.CounterValue, []string{"why"}},
	{"cellway_hand_hedges_total", "Requests sent beside one that was under way.", prometheus.CounterValue, nil},
	{"cellway_hand_hedge_wins_total", "Hedges that were faster.", prometheus.CounterValue, nil},
	{"cellway_hand_set_aside_total", "Times that a member was set aside.", prometheus.CounterValue, nil},
	{"cellway_hand_misdealt_total", "Answers of workers that knew newer hands.", prometheus.CounterValue, nil},
	{"cellway_hand_budget", "Retries and hedges that the cell could pay for at this moment.", prometheus.GaugeValue, nil},
	{"cellway_hand_member_aside", "1 if the member is asked last, or only probed.", prometheus.GaugeValue, member},
	{"cellway_hand_member_in_flight", "Requests whose answers have not ended.", prometheus.GaugeValue, member},
	{"cellway_hand_member_latency_seconds", "Moving average of the time until answers begin; 0 if none came yet.", prometheus.GaugeValue, member},
}
