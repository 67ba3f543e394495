package memstore

import "iter"

// A tree is an immutable map in the order of its keys' bytes. Changing it
// returns another tree that shares most of its nodes, so that a reader keeps
// what it has for nothing. The zero tree is empty.
//
// It is a treap: a search tree by key and a heap by a hash of the key, whose
// shape depends on its content alone.
type tree[V any] struct{ root *node[V] }

type node[V any] struct {
	key         string
	value       V
	rank        uint64
	size        int
	left, right *node[V]
}

func (n *node[V]) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

// with returns a copy of n over other children.
func (n *node[V]) with(left, right *node[V]) *node[V] {
	c := *n
	c.left, c.right, c.size = left, right, left.len()+right.len()+1
	return &c
}

// len returns the number of keys.
func (t tree[V]) len() int { return t.root.len() }

// get returns the value of key, and whether there is one.
func (t tree[V]) get(key string) (v V, ok bool) {
	for n := t.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.value, true
		}
	}
	return v, false
}

// put returns t with the value of key set.
func (t tree[V]) put(key string, v V) tree[V] {
	return tree[V]{put(t.root, &node[V]{key: key, value: v, rank: rank(key), size: 1})}
}

func put[V any](n, add *node[V]) *node[V] {
	switch {
	case n == nil:
		return add
	case n.key == add.key:
		return add.with(n.left, n.right)
	case above(add, n):
		left, right := split(n, add.key)
		return add.with(left, right)
	case add.key < n.key:
		return n.with(put(n.left, add), n.right)
	default:
		return n.with(n.left, put(n.right, add))
	}
}

// split parts the nodes below key from those above it.
func split[V any](n *node[V], key string) (left, right *node[V]) {
	switch {
	case n == nil:
		return nil, nil
	case n.key < key:
		l, r := split(n.right, key)
		return n.with(n.left, l), r
	default:
		l, r := split(n.left, key)
		return l, n.with(r, n.right)
	}
}

// remove returns t without key.
func (t tree[V]) remove(key string) tree[V] { return tree[V]{remove(t.root, key)} }

func remove[V any](n *node[V], key string) *node[V] {
	switch {
	case n == nil:
		return nil
	case key < n.key:
		return n.with(remove(n.left, key), n.right)
	case key > n.key:
		return n.with(n.left, remove(n.right, key))
	default:
		return join(n.left, n.right)
	}
}

// join makes one tree of two, where all of left is below all of right.
func join[V any](left, right *node[V]) *node[V] {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case above(left, right):
		return left.with(left.left, join(left.right, right))
	default:
		return right.with(join(left, right.left), right.right)
	}
}

// after yields the keys above key, in order.
func (t tree[V]) after(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		var walk func(*node[V]) bool
		walk = func(n *node[V]) bool {
			if n == nil {
				return true
			}
			if n.key > key {
				return walk(n.left) && yield(n.key, n.value) && walk(n.right)
			}
			return walk(n.right)
		}
		walk(t.root)
	}
}

// above orders the heap. Ranks that collide are told apart by key.
func above[V any](a, b *node[V]) bool {
	return a.rank > b.rank || a.rank == b.rank && a.key < b.key
}

// rank is FNV-1a with a final mix, so that near keys get far ranks.
func rank(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>32
}
