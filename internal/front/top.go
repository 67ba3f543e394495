package front

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// A Load is what a name caused.
type Load struct {
	Name     string // a tenant's id, or a route
	Requests uint64 // at least so many
}

// A Top keeps count of the names that occur most, in bounded memory: with more
// names than it has places, a new one takes the place of the rarest and with it
// its count as a possible error ("space saving"). A name that occurs more often
// than one in places is never missed. Only [NewTop] makes useful ones.
type Top struct {
	places int

	mu    sync.Mutex
	index map[string]*counted // by name
	heap  []*counted          // the least rank is the first
}

// A counted is a name and its count. The name's memory is used for another one
// when it has lost its place, so that names that come and go cost none.
type counted struct {
	name         []byte
	count, error uint64
	rank         uint64 // the count when it was last moved in the heap
}

// NewTop returns a Top of so many places.
func NewTop(places int) *Top { return &Top{places: places, index: make(map[string]*counted)} }

// key returns the name as the index has it.
func (c *counted) key() string { return unsafe.String(unsafe.SliceData(c.name), len(c.name)) }

// Add counts one occurrence of name, of which nothing is kept.
func (t *Top) Add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.index[name]; ok {
		c.count++ // it is moved when that matters: see rarest
		return
	}
	if len(t.heap) < t.places {
		c := &counted{name: []byte(name), count: 1, rank: 1}
		t.heap = append(t.heap, c)
		t.index[c.key()] = c
		t.up(len(t.heap) - 1)
		return
	}
	c := t.rarest()
	delete(t.index, c.key()) // before its memory changes
	c.name, c.error = append(c.name[:0], name...), c.count
	t.index[c.key()] = c
	c.count++
	t.sink()
}

// rarest returns a name with the least count, which is then the first. No count is
// less than its rank, so the first is the one once it has the rank that it should
// have.
func (t *Top) rarest() *counted {
	for t.heap[0].rank != t.heap[0].count {
		t.sink()
	}
	return t.heap[0]
}

// up moves the name at i up to where its rank belongs.
func (t *Top) up(i int) {
	for i > 0 && t.heap[i].rank < t.heap[(i-1)/2].rank {
		t.heap[i], t.heap[(i-1)/2] = t.heap[(i-1)/2], t.heap[i]
		i = (i - 1) / 2
	}
}

// sink gives the first name the rank that it should have.
func (t *Top) sink() {
	t.heap[0].rank = t.heap[0].count
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.heap[child].rank < t.heap[least].rank {
				least = child
			}
		}
		if least == i {
			return
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}

// Take returns the n most frequent names since the last Take, most frequent
// first.
func (t *Top) Take(n int) []Load {
	t.mu.Lock()
	heap := t.heap
	t.heap, t.index = nil, make(map[string]*counted)
	t.mu.Unlock()
	return loads(heap, n)
}

// Look is Take, and forgets nothing.
func (t *Top) Look(n int) []Load {
	t.mu.Lock()
	defer t.mu.Unlock()
	return loads(t.heap, n)
}

func loads(heap []*counted, n int) []Load {
	out := make([]Load, 0, len(heap))
	for _, c := range heap {
		if sure := c.count - c.error; sure > 0 {
			out = append(out, Load{string(c.name), sure})
		}
	}
	slices.SortFunc(out, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name))
	})
	return out[:min(n, len(out))]
}
