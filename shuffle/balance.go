package shuffle

import (
	"slices"
	"strings"
)

// A balance watches that a hand in the making is spread over zones as a dealt
// one is: see shareOut.
type balance struct {
	shares
	sizes []int          // workers of each zone
	index map[string]int // of a zone, by name
	count []int          // members of each zone
	used  int            // how many zones have given an odd one
}

// balance returns one for hands of k, which fits s.
func (s *Snapshot) balance(k int) *balance {
	b := &balance{index: make(map[string]int, len(s.zones)), count: make([]int, len(s.zones))}
	for i, z := range s.zones {
		b.sizes = append(b.sizes, len(z.workers))
		b.index[z.workers[0].Zone] = i
	}
	b.shares, _ = shareOut(b.sizes, k) // k fits
	return b
}

// room reports whether the zone may give another member.
func (b *balance) room(zone int) bool {
	n := b.count[zone]
	return n < b.even[zone] || n == b.even[zone] && b.used < b.odd && n < b.sizes[zone]
}

// add notes a member of the zone, which has room.
func (b *balance) add(zone int) {
	if b.count[zone] == b.even[zone] {
		b.used++
	}
	b.count[zone]++
}

// drop takes back an add.
func (b *balance) drop(zone int) {
	b.count[zone]--
	if b.count[zone] == b.even[zone] {
		b.used--
	}
}

// short returns the first zone that must give more, or the number of zones.
func (b *balance) short() int {
	for z, n := range b.count {
		if n < b.even[z] {
			return z
		}
	}
	return len(b.count)
}

// find returns the worker of that id, unless it is gone or drained.
func (s *Snapshot) find(id string) (Worker, bool) {
	i, ok := slices.BinarySearchFunc(s.cfg.Workers, id, func(w Worker, id string) int { return strings.Compare(w.ID, id) })
	if !ok || s.cfg.Workers[i].Weight == 0 {
		return Worker{}, false
	}
	return s.cfg.Workers[i], true
}

// suits reports whether h is a hand that s could have dealt.
func (s *Snapshot) suits(h Holding) bool {
	k := s.Size(h.Tenant)
	return len(h.Members) == k && s.fits(k) == nil && len(s.keepers(h.Members, k)) == k
}

// keepers returns those of the members that may stay in a hand of k, which fits
// s: the workers that s still has, as long as there is room in their zones.
func (s *Snapshot) keepers(members []string, k int) []Worker {
	b := s.balance(k)
	var kept []Worker
	for _, id := range members {
		w, ok := s.find(id)
		if !ok {
			continue
		}
		if z := b.index[w.Zone]; b.room(z) {
			b.add(z)
			kept = append(kept, w)
		}
	}
	return kept
}

// completed returns a hand of k that has all of kept, filled up with the workers
// that the tenant called name would have first. kept is what keepers returned.
func (s *Snapshot) completed(kept []Worker, name string, k int) []Worker {
	b := s.balance(k)
	in := make(map[string]bool, k)
	for _, w := range kept {
		b.add(b.index[w.Zone])
		in[w.ID] = true
	}
	order := s.deal(nil, name, s.dealt)
	for _, w := range order {
		if z := b.index[w.Zone]; len(in) < k && !in[w.ID] && b.room(z) {
			b.add(z)
			in[w.ID] = true
		}
	}
	return arranged(order, in)
}

// arranged returns those of the workers whose ids are in the set. order is a
// whole hand of everybody; what is returned alternates over zones as it does.
func arranged(order []Worker, in map[string]bool) []Worker {
	var zones []string // in the order of their first worker
	members := map[string][]Worker{}
	for _, w := range order {
		if _, seen := members[w.Zone]; !seen {
			zones = append(zones, w.Zone)
			members[w.Zone] = nil
		}
		if in[w.ID] {
			members[w.Zone] = append(members[w.Zone], w)
		}
	}
	hand := make([]Worker, 0, len(in))
	for round := 0; len(hand) < len(in); round++ {
		for _, z := range zones {
			if round < len(members[z]) {
				hand = append(hand, members[z][round])
			}
		}
	}
	return hand
}
