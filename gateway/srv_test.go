package gateway

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What a worker's weight is depends on how the weights of records compare with each
// other, and on nothing else.
func TestTicketsFollowTheWeightsOfRecords(t *testing.T) {
	for _, c := range []struct {
		name       string
		have, want []int
	}{
		{"none", nil, nil},
		{"one", []int{7}, []int{1}},
		{"one of weight 0", []int{0}, []int{1}},
		{"all of weight 0", []int{0, 0, 0}, []int{1, 1, 1}},
		{"all alike, as shares of 100", []int{33, 33, 33}, []int{1, 1, 1}},
		{"twice as much", []int{10, 10, 20}, []int{1, 1, 2}},
		{"no common divisor", []int{10, 15}, []int{2, 3}},
		{"0 beside others drains", []int{0, 10, 10}, []int{0, 1, 1}},
		{"0 beside a larger one", []int{0, 10, 30}, []int{0, 1, 3}},
		{"as much as there may be", []int{256, 1}, []int{256, 1}},
		{"more than there may be", []int{1024, 512, 3, 1}, []int{256, 128, 1, 1}},
		{"the largest of all", []int{65535, 65534, 1}, []int{256, 256, 1}},
	} {
		have, want := map[string]int{}, map[string]int{}
		for i := range c.have {
			have[fmt.Sprint(i)], want[fmt.Sprint(i)] = c.have[i], c.want[i]
		}
		if got := ticketsOf(have); !maps.Equal(got, want) {
			t.Errorf("%s: %v are %v, want %v", c.name, have, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 { // a multiple says nothing else
		have, more := map[string]int{}, map[string]int{}
		by := 1 + rng.IntN(9)
		for i := range 1 + rng.IntN(6) {
			w := rng.IntN(7000)
			have[fmt.Sprint(i)], more[fmt.Sprint(i)] = w, w*by
		}
		one, two := ticketsOf(have), ticketsOf(more)
		if !maps.Equal(one, two) {
			t.Fatalf("%v are %v, and %v are %v", have, one, more, two)
		}
		for id, n := range one {
			if n < 0 || n > 256 || (n == 0) != (have[id] == 0 && slices.Max(slices.Collect(maps.Values(have))) > 0) {
				t.Fatalf("%v are %v", have, one)
			}
		}
	}
}

func (p *phone) record(records ...*net.SRV) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.srv = records
}

// weights returns those of a list's workers by id.
func weights(w *Workers) map[string]int {
	all := map[string]int{}
	for _, one := range w.Hands().Config().Workers {
		all[one.ID] = one.Weight
	}
	return all
}

// A name service that gives each record its share of 100 has other weights with each
// record that comes or goes. Hands change for that record only.
func TestSharesOfAHundredMoveNoHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phone{}
		shares := func(n int) (all []*net.SRV) {
			for i := range n {
				all = append(all, &net.SRV{Target: fmt.Sprintf("w%d.example.", i), Port: 80, Weight: uint16(100 / n)})
			}
			return all
		}
		p.record(shares(6)...)
		n, err := NewNames(NamesConfig{Name: "workers.example", Size: 2, Resolver: p, ForgetAfter: 2 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		running(t, n)
		first := n.Current().Version()
		for _, left := range []int{5, 6, 3, 6} { // some restart, and come back
			p.record(shares(left)...)
			time.Sleep(30 * time.Second)
			if v := n.Current().Version(); v != first {
				t.Errorf("with %d records the version is another one: %v", left, weights(n.Current()))
			}
		}
	})
}

// Records of another priority than the lowest are stand-bys. A weight of 0 beside others
// drains a worker, and of two records of one worker the larger counts.
func TestNamesReadWeightsAndPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phone{}
		rec := func(target string, priority, weight uint16) *net.SRV {
			return &net.SRV{Target: target, Port: 80, Priority: priority, Weight: weight}
		}
		p.record(rec("a", 10, 20), rec("b", 10, 40), rec("c", 10, 0), rec("spare", 20, 60), rec("a", 10, 10))
		n, err := NewNames(NamesConfig{Name: "workers.example", Size: 1, Resolver: p, ForgetAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		running(t, n)
		if got, want := weights(n.Current()), map[string]int{"a:80": 1, "b:80": 2, "c:80": 0}; !maps.Equal(got, want) {
			t.Errorf("weights %v, want %v", got, want)
		}
		// All of the lowest priority go: those of the next are the workers, and the former
		// ones stay until they are forgotten, with the weights that they had.
		p.record(rec("spare", 20, 60))
		time.Sleep(30 * time.Second)
		if got, want := weights(n.Current()), map[string]int{"a:80": 1, "b:80": 2, "c:80": 0, "spare:80": 1}; !maps.Equal(got, want) {
			t.Errorf("weights %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		if got, want := weights(n.Current()), map[string]int{"spare:80": 1}; !maps.Equal(got, want) {
			t.Errorf("weights %v, want %v", got, want)
		}
		// Where too few are left for a hand, the list stays as it was.
		p.record(rec("a", 10, 0), rec("b", 10, 0))
		time.Sleep(30 * time.Second)
		if got := weights(n.Current()); got["a:80"] != 1 || got["b:80"] != 1 {
			t.Errorf("weights %v where all are 0", got)
		}
	})
}
