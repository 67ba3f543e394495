package engine

import (
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// rosterRig returns a server that serves nobody, and so many connections that it
// has.
func rosterRig(t *testing.T, n int) (*Server, []*client) {
	t.Helper()
	s := NewServer(ServerConfig{})
	var all []*client
	for range n {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		c := newClient(s, a, false)
		s.asleep.add(c)
		all = append(all, c)
	}
	return s, all
}

// A connection that has said nothing yet, or nothing for a while, is not among
// those that are looked at often.
func TestOnlyConnectionsThatAreAwakeAreLookedAtOften(t *testing.T) {
	s, all := rosterRig(t, 600)
	if n := len(s.awake.all); n != 0 {
		t.Fatalf("%d are awake that have said nothing", n)
	}
	for i, c := range all {
		if !c.wake() {
			t.Fatal("it may not go on")
		}
		if c.wake(); len(s.awake.all) != i+1 || len(s.asleep.all) != len(all)-i-1 {
			t.Fatalf("%d are awake and %d asleep after %d woke", len(s.awake.all), len(s.asleep.all), i+1)
		}
		c.enter(atIdle, s.now()-int64(time.Second))
	}
	all[0].enter(atWork, s.now())
	s.tick = 50 * time.Millisecond
	// A round takes turns, with others' between them.
	for i, want := range []int{lookBatch, 2 * lookBatch, 599, 599} {
		s.awake.due = 0
		next := s.look(&s.awake, &s.tick)
		if n := len(s.asleep.all); n != want {
			t.Fatalf("%d are asleep after turn %d, want %d", n, i+1, want)
		}
		if more := i < 2; more != (next == lookPause) {
			t.Errorf("the next turn after turn %d is in %v", i+1, next)
		}
	}
	if len(s.awake.all) != 1 || s.awake.all[0] != all[0] {
		t.Errorf("%d are awake, want the one that has a call", len(s.awake.all))
	}
	if next := s.look(&s.awake, &s.tick); next <= 0 || next > s.tick {
		t.Errorf("they are looked at again in %v", next)
	}
	all[1].wake()
	if n := len(s.awake.all); n != 2 {
		t.Errorf("%d are awake, want that with a call and one that woke", n)
	}
}

// A call that begins while its connection is about to count as idle keeps it
// awake.
func TestAConnectionWithACallDoesNotFallAsleep(t *testing.T) {
	s, all := rosterRig(t, 1)
	c := all[0]
	c.wake()
	c.enter(atIdle, 5)
	c.enter(atWork, 6)
	if c.rest(5); c.rested.Load() || len(s.awake.all) != 1 {
		t.Errorf("rested %v, %d awake", c.rested.Load(), len(s.awake.all))
	}
}

// However connections come and go in the middle of a round, none that stays is
// passed over.
func TestARoundPassesNobodyOver(t *testing.T) {
	for range 200 {
		s, all := rosterRig(t, 0)
		seen := map[*client]bool{}
		r := &s.asleep
		for range 100 {
			c := new(client)
			r.add(c)
			all = append(all, c)
		}
		for r.left = len(r.all); r.left > 0; {
			r.left = min(r.left, len(r.all))
			n := min(r.left, 7)
			for _, c := range r.all[r.left-n : r.left] {
				seen[c] = true
			}
			r.left -= n
			for range rand.IntN(5) {
				if rand.IntN(2) == 0 && len(r.all) > 0 {
					c := r.all[rand.IntN(len(r.all))]
					r.remove(c)
				} else {
					r.add(new(client))
				}
			}
		}
		for i, c := range r.all {
			if c.spot != i || c.roster != r {
				t.Fatalf("spot %d has one that says %d", i, c.spot)
			}
		}
		for _, c := range all {
			if c.roster != nil && !seen[c] {
				t.Fatal("one that stayed was passed over")
			}
		}
	}
}
