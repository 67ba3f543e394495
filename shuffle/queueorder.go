package shuffle

// This file keeps the order of a set of queues. It follows start-time fair
// queueing: each item has a virtual start, which is the end of the one before it
// in its queue, or now if the queue was empty; the item with the earliest
// start is next. All of it needs the lock.

// append puts item at the end of its queue.
func (q *Queues[T]) append(item *Item[T]) {
	c := item.queue
	if item.prev = c.tail; c.tail != nil {
		c.tail.next = item
	} else {
		c.head = item
	}
	c.tail = item
	c.waiting++
	c.work += uint64(item.cost)
	q.tenants[inQueue{c.index, item.Tenant}]++
	q.arrived++
	q.waiting++
	if c.at < 0 {
		c.start = later(c.start, q.now)
		c.at = len(q.ready)
		q.ready = append(q.ready, c)
		q.settle(c.at)
	}
}

// take takes the next item of all; there is one.
func (q *Queues[T]) take() *Item[T] {
	c := q.ready[0]
	item := c.head
	item.state = itemRuns
	q.running++
	q.now = c.start
	c.start += uint64(item.cost)
	q.remove(item)
	return item
}

// remove takes an item that waits out of its queue.
func (q *Queues[T]) remove(item *Item[T]) {
	c := item.queue
	if item.prev != nil {
		item.prev.next = item.next
	} else {
		c.head = item.next
	}
	if item.next != nil {
		item.next.prev = item.prev
	} else {
		c.tail = item.prev
	}
	item.prev, item.next = nil, nil
	c.waiting--
	q.waiting--
	in := inQueue{c.index, item.Tenant}
	if q.tenants[in]--; q.tenants[in] == 0 {
		delete(q.tenants, in)
	}
	at := c.at
	if c.head == nil {
		last := len(q.ready) - 1
		q.swap(at, last)
		q.ready[last] = nil
		q.ready = q.ready[:last]
		c.at = -1
	}
	if at < len(q.ready) {
		q.settle(at)
	}
}

// settle moves the queue at index i of the heap to where it belongs.
func (q *Queues[T]) settle(i int) {
	for i > 0 && q.ready[i].before(q.ready[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.ready); child++ {
			if q.ready[child].before(q.ready[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		q.swap(i, first)
		i = first
	}
}

// swap swaps two queues of the heap.
func (q *Queues[T]) swap(i, j int) {
	q.ready[i], q.ready[j] = q.ready[j], q.ready[i]
	q.ready[i].at, q.ready[j].at = i, j
}

// before reports whether c's next item comes before d's: it starts earlier, or
// at the same time and came earlier.
func (c *queue[T]) before(d *queue[T]) bool {
	if c.start != d.start {
		return int64(c.start-d.start) < 0
	}
	return c.head.arrived < d.head.arrived
}

// later returns the later of two virtual times.
func later(a, b uint64) uint64 {
	if int64(a-b) < 0 {
		return b
	}
	return a
}
