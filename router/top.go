package router

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// A Load is what a name caused.
type Load struct {
	Name     string // a tenant's id, or a route
	Requests uint64 // at least so many
}

// A top keeps count of the names that occur most, in bounded memory: with more
// names than it has places, a new one takes the place of the rarest and with it
// its count as a possible error ("space saving"). A name that occurs more often
// than one in places is never missed. The zero top is not usable: see newTop.
type top struct {
	places int

	mu    sync.Mutex
	index map[string]int // of names in heap
	heap  []counted      // the least count is the first
}

type counted struct {
	name         string
	count, error uint64
}

func newTop(places int) *top { return &top{places: places, index: make(map[string]int)} }

// add counts one occurrence of name.
func (t *top) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.index[name]
	switch {
	case ok:
	case len(t.heap) < t.places:
		name = strings.Clone(name) // it may be cut from a long target
		i = len(t.heap)
		t.heap = append(t.heap, counted{name: name})
		t.index[name] = i
		t.up(i)
		i = t.index[name]
	default:
		i = 0
		name = strings.Clone(name)
		least := &t.heap[0]
		delete(t.index, least.name)
		least.name, least.error = name, least.count
		t.index[name] = 0
	}
	t.heap[i].count++
	t.down(i)
}

func (t *top) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.index[t.heap[i].name], t.index[t.heap[j].name] = i, j
}

func (t *top) up(i int) {
	for i > 0 && t.heap[i].count < t.heap[(i-1)/2].count {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (t *top) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[child].count < t.heap[least].count {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}

// take returns the n most frequent names since the last take, most frequent
// first.
func (t *top) take(n int) []Load {
	t.mu.Lock()
	heap := t.heap
	t.heap, t.index = nil, make(map[string]int)
	t.mu.Unlock()
	return loads(heap, n)
}

// look is take, and forgets nothing.
func (t *top) look(n int) []Load {
	t.mu.Lock()
	heap := slices.Clone(t.heap)
	t.mu.Unlock()
	return loads(heap, n)
}

func loads(heap []counted, n int) []Load {
	out := make([]Load, 0, len(heap))
	for _, c := range heap {
		if sure := c.count - c.error; sure > 0 {
			out = append(out, Load{c.name, sure})
		}
	}
	slices.SortFunc(out, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name))
	})
	return out[:min(n, len(out))]
}
