package front

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// A Load is what a name caused.
type Load struct {
	Name     string // a tenant's id, or a route
	Requests uint64 // at least so many
}

// A Top keeps count of the names that occur most, in bounded memory: with more
// names than it has places, a new one takes the place of the rarest and with it
// its count as a possible error ("space saving", Metwally, Agrawal and El Abbadi
// 2005). A name that occurs more often than one in places is never missed. Only
// [NewTop] makes useful ones.
type Top struct {
	places int
	seed   maphash.Seed

	mu sync.Mutex
	tally
}

// NewTop returns a Top of so many places, of which there are at most 32,768.
func NewTop(places int) *Top {
	return &Top{places: min(places, mostPlaces), seed: maphash.MakeSeed()}
}

// Add counts one occurrence of name, of which nothing is kept.
func (t *Top) Add(name string) {
	hash := uint32(maphash.String(t.seed, name))
	t.mu.Lock()
	at, ok := t.find(hash, name)
	switch {
	case ok:
		t.counts[at]++
	case len(t.counts) < t.places:
		t.grow(hash, name)
	default:
		t.replace(t.rarest(), hash, name)
	}
	t.mu.Unlock()
}

// Take returns the n most frequent names since the last Take, most frequent
// first.
func (t *Top) Take(n int) []Load {
	t.mu.Lock()
	all := t.tally
	t.tally = tally{}
	t.mu.Unlock()
	return all.loads(n)
}

// Look is Take, and forgets nothing.
func (t *Top) Look(n int) []Load {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loads(n)
}

func (t *tally) loads(n int) []Load {
	out := make([]Load, 0, len(t.counts))
	for i, c := range t.counts {
		if sure := c - t.names[i].error; sure > 0 {
			out = append(out, Load{string(t.names[i].name), sure})
		}
	}
	slices.SortFunc(out, func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name))
	})
	return out[:min(n, len(out))]
}
