package shuffle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sound fails t unless all that q keeps twice agrees.
func sound(t *testing.T, q *Queues[int]) {
	t.Helper()
	tenants := map[inQueue]int{}
	waiting, ready := 0, 0
	for i := range q.queues {
		c := &q.queues[i]
		n, last := 0, uint64(0)
		var prev *Item[int]
		for item := c.head; item != nil; prev, item = item, item.next {
			n++
			tenants[inQueue{i, item.Tenant}]++
			if item.prev != prev || item.queue != c || item.state != itemWaits {
				t.Fatalf("queue %d: item %d is not linked as it should be", i, n)
			}
			if prev != nil && item.arrived <= last {
				t.Fatalf("queue %d is out of order", i)
			}
			last = item.arrived
		}
		if c.tail != prev || c.waiting != n || n > q.cfg.PerQueue {
			t.Fatalf("queue %d has %d items, says %d, may have %d", i, n, c.waiting, q.cfg.PerQueue)
		}
		if (n > 0) != (c.at >= 0) || c.at >= 0 && q.ready[c.at] != c {
			t.Fatalf("queue %d with %d items is at %d of those ready", i, n, c.at)
		}
		if n > 0 {
			ready++
		}
		waiting += n
	}
	for i, c := range q.ready {
		if i > 0 && c.before(q.ready[(i-1)/2]) {
			t.Fatalf("the queue at %d comes before the one above it", i)
		}
	}
	if waiting != q.waiting || ready != len(q.ready) || len(tenants) != len(q.tenants) {
		t.Fatalf("%d wait in %d queues for %d tenants; kept are %d, %d, %d", waiting, ready, len(tenants), q.waiting, len(q.ready), len(q.tenants))
	}
	for in, n := range tenants {
		if q.tenants[in] != n || n > q.cfg.PerTenant {
			t.Fatalf("%s has %d items in queue %d, says %d, may have %d", in.tenant, n, in.queue, q.tenants[in], q.cfg.PerTenant)
		}
	}
}

// Whatever is done to queues in whatever order, their books agree; when all is
// done they are as new.
func TestQueuesKeepTheirBooks(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		q, err := NewQueues[int](QueuesConfig{Deck: Deck{Of: 7, Hand: 3}, PerQueue: 5, PerTenant: 3})
		if err != nil {
			t.Fatal(err)
		}
		// Start near the end of virtual time, which goes round.
		q.now = 0 - uint64(r.IntN(2000))
		for i := range q.queues {
			q.queues[i].start = q.now
		}
		var items []*Item[int]
		for step := range 2000 {
			switch i := r.IntN(max(1, len(items))); r.IntN(5) {
			case 0, 1:
				if item, err := q.Push(fmt.Sprint("tenant-", r.IntN(9)), uint32(r.IntN(50)), step); err == nil {
					items = append(items, item)
				}
			case 2:
				q.TryPop()
			case 3:
				if len(items) > 0 {
					items[i].Done(uint32(r.IntN(80)))
				}
			case 4:
				if len(items) > 0 && r.IntN(3) == 0 {
					items[i].Cancel()
				}
			}
			sound(t, q)
		}
		for {
			if _, ok := q.TryPop(); !ok {
				break
			}
		}
		for _, item := range items {
			item.Done(0)
			item.Done(9)
			if item.Cancel() {
				t.Fatal("an item that has run was cancelled")
			}
		}
		sound(t, q)
		for i := range q.queues {
			if c := &q.queues[i]; c.work != 0 || c.waiting != 0 {
				t.Errorf("queue %d has %d left to do with nothing in it", i, c.work)
			}
		}
		if waiting, running := q.Len(); waiting != 0 || running != 0 {
			t.Errorf("%d wait, %d run, want none", waiting, running)
		}
	}
}

// Where all queues of a hand are equal, each gets its turn, so tenants whose hands
// overlap do not all prefer the same one.
func TestTiesRotate(t *testing.T) {
	q, err := NewQueues[int](QueuesConfig{Deck: Deck{Of: 16, Hand: 4}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	for i := range 400 {
		item, err := q.Push("tenant", 1, i)
		if err != nil {
			t.Fatal(err)
		}
		got[item.queue.index]++
		q.TryPop()
		item.Done(0)
	}
	if len(got) != 4 {
		t.Errorf("queues %v, want 4 of them", got)
	}
	for index, n := range got {
		if n != 100 {
			t.Errorf("queue %d got %d of 400, want 100", index, n)
		}
	}
}
