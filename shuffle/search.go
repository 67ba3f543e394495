package shuffle

import (
	"cmp"
	"context"
	"slices"
)

// A finder searches for a hand that shares at most so many members with each
// of others. It tries every hand that is balanced over zones, so that it
// finds one if there is one.
//
// Workers are numbered zone by zone, and within a zone as the tenant prefers
// them; a hand is built in that order. A worker is barred while some other
// hand has all it may share in the hand at work: that holds until members are
// taken out again, so that whole branches fall away.
type finder struct {
	s       *Snapshot
	overlap int
	k       int
	order   []Worker       // everybody, as the tenant prefers them
	workers []Worker       // zone by zone
	zone    []int          // of each of workers
	number  map[string]int // of a worker, by id

	others  [][]int // members of each hand to avoid, by number
	holders [][]int // for each worker, in which of others it is
	alike   int     // how many of others are balanced hands of k

	balance *balance
	shared  []int // with each of others, by the hand at work
	barred  []int // for each worker, by how many of others
	hand    []int
	lists   [][]int // for each size of the hand at work, who may join
}

// finder returns one for the tenant's hand of k, which fits s.
func (s *Snapshot) finder(tenant string, k, overlap int) *finder {
	f := &finder{s: s, overlap: overlap, k: k, order: s.deal(nil, tenant, s.dealt), balance: s.balance(k)}
	f.workers = slices.Clone(f.order)
	slices.SortStableFunc(f.workers, func(a, b Worker) int {
		return cmp.Compare(f.balance.index[a.Zone], f.balance.index[b.Zone])
	})
	f.number = make(map[string]int, len(f.workers))
	for i, w := range f.workers {
		f.zone = append(f.zone, f.balance.index[w.Zone])
		f.number[w.ID] = i
	}
	f.holders = make([][]int, len(f.workers))
	return f
}

// avoid adds a hand of which at most overlap members may be shared.
func (f *finder) avoid(members []string) {
	var numbers []int
	for _, id := range members {
		if i, ok := f.number[id]; ok {
			numbers = append(numbers, i)
		}
	}
	if len(numbers) == f.k && len(members) == f.k && len(f.s.keepers(members, f.k)) == f.k {
		f.alike++
	}
	if len(numbers) <= f.overlap { // it can't share more
		return
	}
	for _, i := range numbers {
		f.holders[i] = append(f.holders[i], len(f.others))
	}
	f.others = append(f.others, numbers)
}

// find returns a hand that has all of kept, or nil if there is none. It lowers
// nodes by what it took, and returns ErrSearchLimit when none are left, or the
// cause if ctx ends.
func (f *finder) find(ctx context.Context, kept []Worker, nodes *int) ([]Worker, error) {
	f.shared = make([]int, len(f.others))
	f.barred = make([]int, len(f.workers))
	f.balance = f.s.balance(f.k)
	f.hand = f.hand[:0]
	f.lists = make([][]int, f.k+1)
	if f.overlap == 0 {
		for i, holders := range f.holders {
			f.barred[i] = len(holders)
		}
	}
	for _, w := range kept {
		f.put(f.number[w.ID])
	}
	for i := range f.workers {
		if f.open(i) && !slices.Contains(f.hand, i) {
			f.lists[len(f.hand)] = append(f.lists[len(f.hand)], i)
		}
	}
	found, err := f.extend(ctx, nodes)
	if !found || err != nil {
		return nil, err
	}
	in := make(map[string]bool, f.k)
	for _, i := range f.hand {
		in[f.workers[i].ID] = true
	}
	return arranged(f.order, in), nil
}

// extend completes the hand at work with some of its list. If it can't, the
// hand is as it was.
func (f *finder) extend(ctx context.Context, nodes *int) (bool, error) {
	size := len(f.hand)
	if size == f.k {
		return true, nil
	}
	list := f.lists[size]
	short := f.balance.short()
	for at, i := range list {
		if len(list)-at < f.k-size || f.zone[i] > short {
			return false, nil // too few left, or none of a zone that must give more
		}
		if *nodes <= 0 {
			return false, ErrSearchLimit
		}
		if *nodes--; *nodes%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		f.put(i)
		next := f.lists[size+1][:0]
		for _, j := range list[at+1:] {
			if f.open(j) {
				next = append(next, j)
			}
		}
		f.lists[size+1] = next
		if found, err := f.extend(ctx, nodes); found || err != nil {
			return found, err
		}
		f.take()
	}
	return false, nil
}

// open reports whether worker i may join the hand at work.
func (f *finder) open(i int) bool { return f.barred[i] == 0 && f.balance.room(f.zone[i]) }

// put adds worker i to the hand at work.
func (f *finder) put(i int) {
	f.hand = append(f.hand, i)
	f.balance.add(f.zone[i])
	for _, h := range f.holders[i] {
		if f.shared[h]++; f.shared[h] == f.overlap {
			for _, j := range f.others[h] {
				f.barred[j]++
			}
		}
	}
}

// take takes the last worker out of the hand at work.
func (f *finder) take() {
	i := f.hand[len(f.hand)-1]
	f.hand = f.hand[:len(f.hand)-1]
	f.balance.drop(f.zone[i])
	for _, h := range f.holders[i] {
		if f.shared[h]--; f.shared[h] == f.overlap-1 {
			for _, j := range f.others[h] {
				f.barred[j]--
			}
		}
	}
}
