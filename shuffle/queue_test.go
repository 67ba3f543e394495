package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway/shuffle"
)

func mustQueues[T any](t testing.TB, cfg shuffle.QueuesConfig) *shuffle.Queues[T] {
	t.Helper()
	q, err := shuffle.NewQueues[T](cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// push pushes what must go in.
func push[T any](t testing.TB, q *shuffle.Queues[T], tenant string, cost uint32, value T) *shuffle.Item[T] {
	t.Helper()
	item, err := q.Push(tenant, cost, value)
	if err != nil {
		t.Fatalf("push for %s: %v", tenant, err)
	}
	return item
}

// pop takes what must be there.
func pop[T any](t testing.TB, q *shuffle.Queues[T]) *shuffle.Item[T] {
	t.Helper()
	item, ok := q.TryPop()
	if !ok {
		t.Fatal("nothing waits")
	}
	return item
}

// alone returns a tenant, other than not, whose hand of one of two is queue.
func alone(queue int, not ...string) string {
	for i := 0; ; i++ {
		tenant := fmt.Sprint("tenant-", i)
		hand := make([]int, 1)
		shuffle.Deal(hand, shuffle.Seed("", tenant), 2)
		if hand[0] == queue && !slices.Contains(not, tenant) {
			return tenant
		}
	}
}

// In a set of two with hands of two, what goes in is in the queue where less is
// left to do. Queues take turns by cost, so the order shows which that was. The
// length of a queue says little of that:
// https://github.com/kubernetes/enhancements/pull/2810
func TestPushGoesWhereLeastWorkIsLeft(t *testing.T) {
	order := func(q *shuffle.Queues[string]) (values []string) {
		for {
			item, ok := q.TryPop()
			if !ok {
				return values
			}
			values = append(values, item.Value)
		}
	}
	both := shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 2, Hand: 2}}

	// One queue has a single item of 10, the other three of 1: work counts, not
	// number.
	q := mustQueues[string](t, both)
	for _, item := range []struct {
		value string
		cost  uint32
	}{{"heavy", 10}, {"a", 1}, {"b", 1}, {"c", 1}} {
		push(t, q, "tenant", item.cost, item.value)
	}
	if got := order(q); !slices.Equal(got, []string{"heavy", "a", "b", "c"}) {
		t.Errorf("order %v: a, b and c were to go where heavy is not", got)
	}

	// What runs counts as well: heavy is taken and not done.
	q = mustQueues[string](t, both)
	push(t, q, "tenant", 10, "heavy")
	running := pop(t, q)
	for _, v := range []string{"a", "b", "c"} {
		push(t, q, "tenant", 1, v)
	}
	behind := push(t, q, "tenant", 20, "d")
	push(t, q, "tenant", 1, "e") // 10 runs in one queue, 23 waits in the other
	if got := order(q); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) && !slices.Equal(got, []string{"a", "b", "c", "e", "d"}) {
		t.Errorf("order %v", got)
	}
	running.Done(0)
	behind.Done(0)
}

// Where all queues of a hand are equal, none is preferred.
func TestEqualQueuesTakeTurns(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 16, Hand: 4}})
	// The queue of an item is not to be seen, so see whose way it blocks: fill
	// up, and count by how many a queue got that all get the same.
	for i := range 16 {
		push(t, q, "tenant", 1, i)
	}
	// Four in each queue of the hand: they come back in order of arrival, four
	// by four, only if each round went to four different queues.
	for i := range 16 {
		if got := pop(t, q).Value; got != i {
			t.Fatalf("item %d comes at %d: the queues of the hand did not take turns", got, i)
		}
	}
}

func TestNobodyFillsQueues(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 2, Hand: 1}, PerQueue: 5, PerTenant: 3})
	heavy := alone(0)
	other, third := alone(0, heavy), alone(1)
	for i := range 3 {
		push(t, q, heavy, 1, i)
	}
	if _, err := q.Push(heavy, 1, 3); !errors.Is(err, shuffle.ErrTenantFull) {
		t.Errorf("a fourth item of one tenant: %v, want %v", err, shuffle.ErrTenantFull)
	}
	push(t, q, other, 1, 4)
	push(t, q, other, 1, 5)
	if _, err := q.Push(other, 1, 6); !errors.Is(err, shuffle.ErrFull) {
		t.Errorf("a sixth item in one queue: %v, want %v", err, shuffle.ErrFull)
	}
	push(t, q, third, 1, 7) // has another queue
	if waiting, running := q.Len(); waiting != 6 || running != 0 {
		t.Errorf("%d wait, %d run, want 6 and none", waiting, running)
	}
	pop(t, q) // one of heavy's, whether it is done or not
	push(t, q, heavy, 1, 8)
}

// Two queues with something waiting get equal cost, whatever their items cost and
// whoever came first.
func TestQueuesShareByCost(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 2, Hand: 1}, PerQueue: 5000, PerTenant: 5000})
	tenants := []string{alone(0), alone(1)}
	r := rand.New(rand.NewPCG(1, 1))
	costs := map[string][]uint32{}
	for i := range 3000 {
		for n, tenant := range tenants {
			cost := uint32(1 + r.IntN(5+95*n)) // one tenant's items are ten times the other's
			costs[tenant] = append(costs[tenant], cost)
			push(t, q, tenant, cost, i)
		}
	}
	taken, at := map[string]int{}, map[string]int{}
	var spread []int
	for at[tenants[0]] < 3000 && at[tenants[1]] < 3000 {
		item := pop(t, q)
		taken[item.Tenant] += int(costs[item.Tenant][at[item.Tenant]])
		at[item.Tenant]++
		spread = append(spread, taken[tenants[0]]-taken[tenants[1]])
	}
	// Over any time: so between any two moments.
	if most := slices.Max(spread) - slices.Min(spread); most > 2*(5+100) {
		t.Errorf("over some time one queue got %d more than the other, want at most the largest items", most)
	}
}

// Who was idle for long neither gets all of the next turns nor has to wait for
// them; and what ran long is paid for. Uneven demand built up debt without an end in
// https://github.com/kubernetes/kubernetes/issues/95979
func TestIdleQueuesHaveNoCreditOrDebt(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 2, Hand: 1}})
	busy, idle := alone(0), alone(1)
	for i := range 1000 {
		push(t, q, busy, 100, i)
		pop(t, q).Done(0)
	}
	for i := range 20 {
		push(t, q, busy, 10, i)
		push(t, q, idle, 10, i)
	}
	counts := map[string]int{}
	for range 20 {
		counts[pop(t, q).Tenant]++
	}
	if counts[idle] < 9 || counts[idle] > 15 { // ten, and up to five for the last item of 100 of the busy one
		t.Errorf("of the first 20 turns the idle queue has %d", counts[idle])
	}
	for range 20 {
		pop(t, q)
	}

	// The one whose items run ten times as long as it says gets a turn in
	// eleven.
	for i := range 60 {
		push(t, q, busy, 10, i)
		push(t, q, idle, 10, i)
	}
	clear(counts)
	for range 66 {
		item := pop(t, q)
		counts[item.Tenant]++
		if item.Tenant == busy {
			item.Done(100)
		} else {
			item.Done(0)
		}
	}
	if counts[busy] < 5 || counts[busy] > 7 {
		t.Errorf("of 66 turns the one that runs ten times as long has %d, want 6", counts[busy])
	}
}

func TestCancelTakesOut(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 1, Hand: 1}, PerQueue: 3, PerTenant: 3})
	var items []*shuffle.Item[int]
	for i := range 3 {
		items = append(items, push(t, q, "tenant", 1, i))
	}
	if !items[1].Cancel() || items[1].Cancel() {
		t.Error("an item that waits can be cancelled once")
	}
	push(t, q, "tenant", 1, 3) // there is room again
	for _, want := range []int{0, 2, 3} {
		if got := pop(t, q).Value; got != want {
			t.Errorf("item %d, want %d", got, want)
		}
	}
	if items[0].Cancel() {
		t.Error("an item that runs was cancelled")
	}
}

func TestPopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := mustQueues[int](t, shuffle.QueuesConfig{})
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		got := make(chan string, 9)
		wait := func(ctx context.Context) {
			item, err := q.Pop(ctx)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- fmt.Sprint(item.Value)
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var all []string
			for len(got) > 0 {
				all = append(all, <-got)
			}
			slices.Sort(all)
			if !slices.Equal(all, want) {
				t.Errorf("those who wait got %v, want %v", all, want)
			}
		}
		go wait(ctx)
		synctest.Wait()
		go wait(t.Context())
		go wait(t.Context())
		expect()
		cancel(gone)
		expect("gone")
		push(t, q, "tenant", 1, 1)
		expect("1")
		if waiting, running := q.Len(); waiting != 0 || running != 1 {
			t.Errorf("%d wait, %d run, want none and 1", waiting, running)
		}
		q.Close()
		q.Close()
		expect(shuffle.ErrClosed.Error())
		if _, err := q.Push("tenant", 1, 2); !errors.Is(err, shuffle.ErrClosed) {
			t.Errorf("push into closed queues: %v", err)
		}
	})
}

func TestClosedQueuesGiveWhatWaits(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{})
	push(t, q, "tenant", 1, 5)
	q.Close()
	if item, err := q.Pop(t.Context()); err != nil || item.Value != 5 {
		t.Errorf("%v, %v", item, err)
	}
	if _, err := q.Pop(t.Context()); !errors.Is(err, shuffle.ErrClosed) {
		t.Errorf("error %v, want %v", err, shuffle.ErrClosed)
	}
}

// Many push, take, give up at once: everything comes out once.
func TestQueuesAreSafe(t *testing.T) {
	q := mustQueues[int](t, shuffle.QueuesConfig{Deck: shuffle.Deck{Of: 8, Hand: 2}, PerQueue: 20})
	var (
		pushers, takers              sync.WaitGroup
		pushed, took, refused, leave atomic.Int64
	)
	for g := range 4 {
		takers.Go(func() {
			for i := 0; ; i++ {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+g)%5 == 0 {
					cancel()
				}
				item, err := q.Pop(ctx)
				cancel()
				switch {
				case errors.Is(err, shuffle.ErrClosed):
					return
				case err == nil:
					took.Add(1)
					item.Done(uint32(i % 3))
				}
			}
		})
		pushers.Go(func() {
			for i := range 2000 {
				item, err := q.Push(fmt.Sprint("tenant-", i%17), uint32(i%5), i)
				switch {
				case err != nil:
					refused.Add(1)
				case i%7 == 0 && item.Cancel():
					leave.Add(1)
				default:
					pushed.Add(1)
				}
			}
		})
	}
	pushers.Wait()
	q.Close()
	takers.Wait()
	if pushed.Load() != took.Load() || pushed.Load()+refused.Load()+leave.Load() != 8000 {
		t.Errorf("%d pushed, %d taken, %d refused, %d cancelled", pushed.Load(), took.Load(), refused.Load(), leave.Load())
	}
	if waiting, running := q.Len(); waiting != 0 || running != 0 {
		t.Errorf("%d wait, %d run at the end", waiting, running)
	}
}

// One tenant sends nearly as much as all can take, and all others together more than
// half: in one queue everybody waits for it, with hands next to nobody does.
func TestHeavyTenantWaitsAlone(t *testing.T) {
	// Each tick 10 items run; mice bring 6, the elephant 9. Waits are in ticks.
	run := func(deck shuffle.Deck, perQueue int) (waits []int) {
		q := mustQueues[int](t, shuffle.QueuesConfig{Deck: deck, PerQueue: perQueue, PerTenant: perQueue})
		r := rand.New(rand.NewPCG(3, 3))
		for tick := range 3000 {
			for range 9 {
				_, _ = q.Push("elephant", 1, tick)
			}
			for range 6 {
				if _, err := q.Push(fmt.Sprint("mouse-", r.IntN(500)), 1, tick); err != nil {
					waits = append(waits, 1<<20) // refused, through no fault of its own
				}
			}
			for range 10 {
				item, ok := q.TryPop()
				if !ok {
					break
				}
				if item.Tenant != "elephant" {
					waits = append(waits, tick-item.Value)
				}
				item.Done(0)
			}
		}
		slices.Sort(waits)
		return waits
	}
	share := func(waits []int, p float64) int { return waits[int(p*float64(len(waits)-1))] }
	hands := run(shuffle.Deck{Of: 100, Hand: 2}, 200)
	one := run(shuffle.Deck{Of: 1, Hand: 1}, 20_000)
	t.Logf("ticks that mice wait, median, 99 %%, most: with hands of 2 of 100 %d, %d, %d; in one queue %d, %d, %d",
		share(hands, .5), share(hands, .99), share(hands, 1), share(one, .5), share(one, .99), share(one, 1))
	if share(hands, .5) > 0 || share(hands, .99) > 3 {
		t.Errorf("with hands mice wait %d ticks, one in a hundred %d", share(hands, .5), share(hands, .99))
	}
	if share(one, .5) < 100 {
		t.Errorf("in one queue mice wait %d ticks only: this test tests nothing", share(one, .5))
	}
}

func BenchmarkQueues(b *testing.B) {
	for _, waiting := range []int{0, 2000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			q := mustQueues[int](b, shuffle.QueuesConfig{})
			tenants := names("tenant-", 1000)
			for i := range waiting {
				push(b, q, tenants[i%len(tenants)], 1, i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				push(b, q, tenants[i%len(tenants)], 1, i)
				pop(b, q).Done(0)
			}
		})
	}
}
