package memstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A tree answers like a map, and older trees never change.
func TestTreeAnswersLikeAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type past struct {
		tree tree[int]
		want map[string]int
	}
	var (
		tr   tree[int]
		want = map[string]int{}
		old  []past
	)
	for i := range 5000 {
		key := fmt.Sprintf("k%03d", rng.IntN(400))
		if rng.IntN(3) == 0 {
			tr = tr.remove(key)
			delete(want, key)
		} else {
			tr = tr.put(key, i)
			want[key] = i
		}
		if i%500 == 0 {
			old = append(old, past{tr, maps.Clone(want)})
		}
	}
	for _, p := range append(old, past{tr, want}) {
		checkTree(t, p.tree, p.want)
	}
}

func checkTree(t *testing.T, tr tree[int], want map[string]int) {
	t.Helper()
	if got := maps.Collect(tr.after("")); !maps.Equal(got, want) {
		t.Fatalf("tree has %d keys %v, want %d keys %v", len(got), got, len(want), want)
	}
	if tr.len() != len(want) {
		t.Fatalf("len is %d, want %d", tr.len(), len(want))
	}
	sorted := slices.Sorted(maps.Keys(want))
	for _, after := range []string{"", "k", "k200", "k2005", "z"} {
		i, found := slices.BinarySearch(sorted, after)
		if found {
			i++
		}
		var got []string
		for key, v := range tr.after(after) {
			if v2, ok := tr.get(key); !ok || v2 != v {
				t.Fatalf("get(%q) = %d, %v; the walk says %d", key, v2, ok, v)
			}
			got = append(got, key)
		}
		if !slices.Equal(got, sorted[i:]) {
			t.Fatalf("after(%q) = %q, want %q", after, got, sorted[i:])
		}
	}
	for range tr.after("") {
		break // a walk may end early
	}
}

// A tree whose keys came in order is not a list.
func TestTreeStaysShallow(t *testing.T) {
	var tr tree[struct{}]
	const n = 20_000
	for i := range n {
		tr = tr.put(fmt.Sprintf("tenant-%06d", i), struct{}{})
	}
	var depth func(*node[struct{}]) int
	depth = func(n *node[struct{}]) int {
		if n == nil {
			return 0
		}
		return 1 + max(depth(n.left), depth(n.right))
	}
	if d := depth(tr.root); d > 60 {
		t.Errorf("%d keys lie up to %d deep", n, d)
	}
}
