package proc

import "time"

// A BackOff says how long a child that died stays down before it is started
// again: First, then twice as long each time, up to Most. A child that was up
// for Forgive starts at First again.
type BackOff struct {
	First   time.Duration // if zero, 100 ms
	Most    time.Duration // if zero, 2 s
	Forgive time.Duration // if zero, 10 s
}

func (b BackOff) orDefault() BackOff {
	if b.First == 0 {
		b.First = 100 * time.Millisecond
	}
	if b.Most == 0 {
		b.Most = 2 * time.Second
	}
	if b.Forgive == 0 {
		b.Forgive = 10 * time.Second
	}
	return b
}

// after returns the wait after the n-th death in a row, n from 1.
func (b BackOff) after(n int) time.Duration {
	d := b.First
	for ; n > 1 && d < b.Most; n-- {
		d *= 2
	}
	return min(d, b.Most)
}
