package shuffle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// These tests are of faults that ways to deal have had in public, with the
// numbers that were reported. Each says what went wrong. Those that are
// guarantees of the package as well have a test of that name, too.

// A crash dealt the tenant another worker at once, so that a poison request went
// through the whole fleet. https://github.com/cortexproject/cortex/pull/3901
func TestPoisonDoesNotWalkThroughTheCell(t *testing.T) {
	m := shuffle.Members{ForgetAfter: 10 * time.Minute}
	for _, w := range named(20, 1) {
		if err := m.Join(w); err != nil {
			t.Fatal(err)
		}
	}
	killed := map[string]bool{}
	for i := range 100 { // a request every five seconds, each kills one worker of the hand
		now := start.Add(time.Duration(i) * 5 * time.Second)
		hand := mustSnapshot(t, shuffle.Config{Size: 3, Workers: m.Workers(now)}).AppendHand(nil, "poison")
		victim := hand[i%3].ID
		killed[victim] = true
		m.Silent(victim, now)
	}
	if len(killed) != 3 {
		t.Errorf("%d workers were killed within the forget delay, want the hand of 3: %v", len(killed), killed)
	}
}

// One worker more in the hand changed several, since sizes were rounded up by
// zone. https://github.com/cortexproject/cortex/issues/5467
func TestOneMoreOverUnevenZonesAddsOne(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 9, Workers: named(11, 3)})
	for _, tenant := range names("tenant-", 1000) {
		nine := s.AppendHand(nil, tenant)
		ten, err := s.AppendFirst(nil, tenant, 10)
		if err != nil || !slices.Equal(ten[:9], nine) || slices.Contains(nine, ten[9]) {
			t.Fatalf("%s: %v grows to %v, %v", tenant, ids(nine), ids(ten), err)
		}
	}
}

// One generator dealt all zones, so that what one zone took shifted the draws of
// the next. https://github.com/cortexproject/cortex/pull/3299
func TestZonesAreDealtApart(t *testing.T) {
	before := mustSnapshot(t, shuffle.Config{Size: 6, Workers: named(30, 3)})
	var fewer []shuffle.Worker // zone z1 with half of its workers
	for i, w := range before.Config().Workers {
		if w.Zone != "z1" || i%2 == 0 {
			fewer = append(fewer, w)
		}
	}
	after := mustSnapshot(t, shuffle.Config{Size: 6, Workers: fewer})
	others := func(s *shuffle.Snapshot, tenant string) (all []shuffle.Worker) {
		return slices.DeleteFunc(s.AppendHand(nil, tenant), func(w shuffle.Worker) bool { return w.Zone == "z1" })
	}
	for _, tenant := range names("tenant-", 1000) {
		if b, a := others(before, tenant), others(after, tenant); !slices.Equal(a, b) {
			t.Fatalf("%s: in the zones that stayed as they were, %v became %v", tenant, ids(b), ids(a))
		}
	}
}

// Hands grew, some writers knew it before the readers, and what they had written
// last was not found. https://github.com/grafana/mimir/issues/1765, /1832
func TestReadersFindWhatWritersAheadOfThemLeft(t *testing.T) {
	workers := named(100, 1)
	small, large := mustSnapshot(t, shuffle.Config{Size: 4, Workers: workers}), mustSnapshot(t, shuffle.Config{Size: 8, Workers: workers})
	// The new version is in the history before the first writer hears of it.
	h := shuffle.History{}.Add(small).Add(large)
	for _, tenant := range names("tenant-", 200) {
		asked := h.AppendHands(nil, tenant, start)
		for _, s := range []*shuffle.Snapshot{small, large} {
			if n := changes(s.AppendHand(nil, tenant), asked); n != 0 {
				t.Fatalf("%s: %d workers that were written to are not asked", tenant, n)
			}
		}
	}
}

// Hands of 41 became hands of 16, and readers counted a third of what was there.
// https://github.com/grafana/mimir/issues/10531
func TestShrunkHandsAreReadWhole(t *testing.T) {
	workers := named(60, 3)
	large, small := mustSnapshot(t, shuffle.Config{Size: 41, Workers: workers}), mustSnapshot(t, shuffle.Config{Size: 16, Workers: workers})
	h := shuffle.History{}.Add(large).Add(small).Leave(2, start)
	for _, tenant := range names("tenant-", 100) {
		if n := changes(large.AppendHand(nil, tenant), h.AppendHands(nil, tenant, start.Add(-time.Hour))); n != 0 {
			t.Fatalf("%s: %d of 41 workers are not asked within the window", tenant, n)
		}
		if got := h.AppendHands(nil, tenant, start.Add(time.Hour)); len(got) != 16 {
			t.Fatalf("%s: %d workers are asked after it", tenant, len(got))
		}
	}
}

// An older answer, computed while a newer one was put away, replaced that.
// https://github.com/grafana/dskit/pull/283; /295 was a race, which every test of
// the cache would show.
func TestCacheAnswersForTheVersionAskedFor(t *testing.T) {
	old := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(50, 1)})
	fresh := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(49, 1)})
	c := shuffle.NewCache(1)
	for _, tenant := range names("tenant-", 100) {
		c.Hand(fresh, tenant)
		c.Hand(old, tenant) // a straggler, after the new version came
		if got := c.Hand(fresh, tenant); !slices.Equal(got, fresh.AppendHand(nil, tenant)) {
			t.Fatalf("%s has the hand %v of another version", tenant, ids(got))
		}
	}
}

// A setting that was not wired had readers ask everybody; and a list went to all
// 100 workers of a cell, and failed if any was down, though the tenant used 3.
// https://github.com/cortexproject/cortex/issues/5086, /pull/4466
func TestReadersAskNobodyElse(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(100, 1)})
	h := shuffle.History{}.Add(s)
	for _, tenant := range names("tenant-", 100) {
		if got := h.AppendHands(nil, tenant, time.Time{}); !slices.Equal(got, s.AppendHand(nil, tenant)) {
			t.Fatalf("%s: %d of 100 workers are asked, want its 3", tenant, len(got))
		}
	}
}

// Names that hardly differ loaded workers by 124 to 251 of 1,000 with a weak
// hash, two workers by 966 and 34 with a ring, and left 13 of 1,000 weighted
// ones without anybody. https://github.com/asynkron/protoactor-go/pull/176,
// https://github.com/serialx/hashring/issues/27, /22
func TestLikeNamesAreSpread(t *testing.T) {
	for n, tenants := range map[int]int{2: 1001, 6: 1000, 1000: 20_000} {
		var workers []shuffle.Worker
		for i := range n {
			workers = append(workers, shuffle.Worker{ID: fmt.Sprintf("10.0.0.%d:8080", i), Weight: 3})
		}
		s := mustSnapshot(t, shuffle.Config{Size: 1, Workers: workers})
		counts := map[string]float64{}
		for _, w := range workers {
			counts[w.ID] = 0
		}
		for i := range tenants {
			counts[s.AppendHand(nil, fmt.Sprintf("/customers/%d/orders", i))[0].ID]++
		}
		all := make([]float64, 0, n)
		for _, w := range workers {
			all = append(all, counts[w.ID])
		}
		evenly(t, fmt.Sprintf("first of %d like names", n), all, 1)
		if slices.Min(all) == 0 {
			t.Errorf("of %d workers one has no tenant", n)
		}
	}
}

// Placement by rank moved everybody when the first of the list went.
// https://github.com/argoproj/argo-cd/pull/13018
func TestFirstOfTheListMayGo(t *testing.T) {
	workers := named(10, 1)
	before, after := mustSnapshot(t, shuffle.Config{Size: 1, Workers: workers}), mustSnapshot(t, shuffle.Config{Size: 1, Workers: workers[1:]})
	for _, tenant := range names("tenant-", 10_000) {
		b, a := before.AppendHand(nil, tenant)[0], after.AppendHand(nil, tenant)[0]
		if b.ID != workers[0].ID && b != a {
			t.Fatalf("%s moved from %s to %s, which is not the one that went", tenant, b.ID, a.ID)
		}
	}
}

// A quarter of hands had a queue twice, since digits of one number were not
// independent. github.com/mars1024/shuffle-sharding
func TestNoQueueIsInAHandTwice(t *testing.T) {
	var hand [8]int
	for i := range 50_000 {
		shuffle.Deal(hand[:], shuffle.Seed("", fmt.Sprint("tenant-", i)), 128)
		sorted := slices.Sorted(slices.Values(hand[:]))
		if len(slices.Compact(sorted)) != 8 || sorted[0] < 0 || sorted[7] > 127 {
			t.Fatalf("tenant-%d has %v", i, hand)
		}
	}
}

// A seed of 0 gave all tenants one hand, and the same tenant got another hand with
// each call, since dealing reordered the workers themselves.
// github.com/clickyotomy/go-shuffle-shard
func TestDealingLeavesTheWorkersAlone(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(20, 2)})
	first := s.AppendHand(nil, "acme")
	others := map[string]bool{}
	for _, tenant := range names("tenant-", 200) {
		others[fmt.Sprint(s.AppendHand(nil, tenant))] = true
		if again := s.AppendHand(nil, "acme"); !slices.Equal(again, first) {
			t.Fatalf("acme had %v and has %v", ids(first), ids(again))
		}
	}
	if len(others) < 190 {
		t.Errorf("without a salt, 200 tenants have %d hands", len(others))
	}
}

// Hands were numbered in 32 bits: of 75,287,520 there were 3,704,731, of 7.3e11
// 1,921,877. https://github.com/envoyproxy/envoy/pull/14655
func TestHandsAreNotCountedInThirtyTwoBits(t *testing.T) {
	for _, c := range []struct {
		n, k int
		want string
	}{{100, 5, "75287520"}, {2048, 4, "730862190080"}} {
		if got := shuffle.Hands(c.n, c.k).String(); got != c.want {
			t.Errorf("%d choose %d is %s, want %s", c.n, c.k, got, c.want)
		}
	}
	// Of that many, chance has no two of 20,000 tenants meet.
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(2048, 1)})
	seen := map[[4]string]bool{}
	for _, tenant := range names("tenant-", 20_000) {
		hand := ids(s.AppendHand(nil, tenant))
		slices.Sort(hand)
		if seen[[4]string(hand)] {
			t.Fatalf("%s has the hand %v of another tenant", tenant, hand)
		}
		seen[[4]string(hand)] = true
	}
}
