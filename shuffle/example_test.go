package shuffle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// Two tenants of a cell with eight workers in two zones. A worker is drained; who
// had it gets one other.
func ExampleSnapshot() {
	workers := shuffle.Even("w-1", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7", "w-8")
	for i := range workers {
		workers[i].Zone = []string{"a", "b"}[i%2]
	}
	cfg := shuffle.Config{Salt: "cell-001", Size: 3, Workers: workers}
	before, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	workers[7].Weight = 0 // drain w-8
	after, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	var hand []shuffle.Worker // used again and again
	for _, tenant := range []string{"acme", "globex"} {
		for _, s := range []*shuffle.Snapshot{before, after} {
			hand = s.AppendHand(hand[:0], tenant)
			fmt.Print(tenant, ":")
			for _, w := range hand {
				fmt.Print(" ", w.ID, "/", w.Zone)
			}
			fmt.Println()
		}
	}
	// Output:
	// acme: w-1/a w-8/b w-3/a
	// acme: w-1/a w-2/b w-3/a
	// globex: w-2/b w-5/a w-6/b
	// globex: w-2/b w-5/a w-6/b
}

// Health moves those who are well to the front, and keeps the others.
func ExamplePrefer() {
	hand := shuffle.Even("w-1", "w-2", "w-3", "w-4")
	down := map[string]bool{"w-1": true, "w-3": true}
	n := shuffle.Prefer(hand, func(w shuffle.Worker) bool { return !down[w.ID] })
	fmt.Println(n, "are well:", ids(hand))
	// Output:
	// 2 are well: [w-2 w-4 w-1 w-3]
}

// A cell makes its hands smaller. Readers ask the larger ones too, until what
// was written to them no longer matters.
func ExampleHistory() {
	cfg := shuffle.Config{Size: 4, Workers: shuffle.Even("w-1", "w-2", "w-3", "w-4", "w-5", "w-6")}
	large, _ := shuffle.NewSnapshot(cfg)
	cfg.Size = 2
	small, _ := shuffle.NewSnapshot(cfg)

	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	h := shuffle.History{}.Add(large).Add(small)
	fmt.Println("some write to 4:", len(h.AppendHands(nil, "acme", now)))
	h = h.Leave(2, now) // every writer has confirmed the second version
	fmt.Println("an hour later, for two hours' data:", len(h.AppendHands(nil, "acme", now.Add(-1*time.Hour))))
	fmt.Println("three hours later:", len(h.AppendHands(nil, "acme", now.Add(1*time.Hour))))
	// Output:
	// some write to 4: 4
	// an hour later, for two hours' data: 4
	// three hours later: 2
}

// Two queues of a process's hundred for each tenant.
func ExampleQueues() {
	queues, err := shuffle.NewQueues[string](shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 100, Hand: 2}, PerTenant: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 6 {
		if _, err := queues.Push("heavy", 1, fmt.Sprint("heavy ", i)); err != nil {
			fmt.Println(err)
		}
	}
	if _, err := queues.Push("light", 1, "light"); err != nil {
		fmt.Println(err)
	}
	for range 3 {
		item, err := queues.Pop(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Value)
		item.Done(0)
	}
	// Output:
	// too much of this tenant is waiting
	// too much of this tenant is waiting
	// heavy 0
	// heavy 1
	// light
}

func ExampleLimiters() {
	limiters, err := shuffle.NewLimiters(shuffle.Deck{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for range 3 {
		ok, retry, err := limiters.Allow(now, "acme", shuffle.Limit{Rate: 10, Burst: 2}, 1)
		fmt.Println(ok, retry.Round(time.Millisecond), err)
	}
	// Output:
	// true 0s <nil>
	// true 0s <nil>
	// false 100ms <nil>
}

func ExampleDeal() {
	hand := make([]int, 4)
	shuffle.Deal(hand, shuffle.Seed("salt", "acme"), 54)
	fmt.Println(hand)
	// Output:
	// [32 24 4 41]
}
