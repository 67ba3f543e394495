package handprom_test

import (
	"fmt"
	"log"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/client/handhttp/handprom"
	"github.com/prometheus/client_golang/prometheus"
)

func Example() {
	rt, err := handhttp.New(handhttp.Config{Hands: &handhttp.Received{Of: "1"}})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(handprom.New("cell-001", rt))
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// cellway_hand_budget
	// cellway_hand_call_attempts
	// cellway_hand_calls_total
	// cellway_hand_failures_total
	// cellway_hand_hedge_wins_total
	// cellway_hand_hedges_total
	// cellway_hand_misdealt_total
	// cellway_hand_retries_refused_total
	// cellway_hand_retries_total
	// cellway_hand_set_aside_total
	// cellway_hand_weak_calls_total
}
