package front

// A tally is places for names and their counts. It is made for names that come
// and go with each request: what is looked at for one of them is a few bytes side
// by side. The zero tally has no places.
type tally struct {
	counts []uint64
	names  []named  // at the same places
	index  []uint32 // of places by hash, with linear probing: see entry; its length is a power of two

	hand  int    // the place at which the search for the rarest goes on
	least uint64 // no count is below it
}

// A named is a name with what is known of it besides its count. The name's memory
// is used for another one when it has lost its place.
type named struct {
	name  []byte
	hash  uint32
	error uint64 // so much of the count may be others'
}

// mostPlaces is how many places a tally can have: the index has twice as many
// entries, and an entry half a hash.
const mostPlaces = 1 << 15

// entry is what the index has for a place: the place and one, as 0 is an empty
// entry, and the hash's lower half, which says where its search began.
func entry(place int, hash uint32) uint32 { return uint32(place+1)<<16 | hash&0xffff }

// find returns where name is.
func (t *tally) find(hash uint32, name string) (place int, ok bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint32(len(t.index) - 1)
	for at := hash & 0xffff & mask; t.index[at] != 0; at = (at + 1) & mask {
		if e := t.index[at]; e&0xffff == hash&0xffff {
			if place = int(e>>16) - 1; t.names[place].hash == hash && string(t.names[place].name) == name {
				return place, true
			}
		}
	}
	return 0, false
}

// grow gives name a place of its own.
func (t *tally) grow(hash uint32, name string) {
	t.counts = append(t.counts, 1)
	t.names = append(t.names, named{name: []byte(name), hash: hash})
	if n := len(t.counts); 2*n > len(t.index) {
		t.index = make([]uint32, max(16, 2*len(t.index)))
		for i := range t.names[:n-1] {
			t.enter(i, t.names[i].hash)
		}
	}
	t.enter(len(t.counts)-1, hash)
}

// replace gives name the place of another one.
func (t *tally) replace(place int, hash uint32, name string) {
	n := &t.names[place]
	t.leave(place, n.hash)
	n.name, n.hash, n.error = append(n.name[:0], name...), hash, t.counts[place]
	t.counts[place]++
	t.enter(place, hash)
}

func (t *tally) enter(place int, hash uint32) {
	mask := uint32(len(t.index) - 1)
	at := hash & 0xffff & mask
	for t.index[at] != 0 {
		at = (at + 1) & mask
	}
	t.index[at] = entry(place, hash)
}

// leave takes a place out of the index, and moves up those behind it whose search
// would end at the hole (Knuth, The Art of Computer Programming, 6.4, algorithm R).
func (t *tally) leave(place int, hash uint32) {
	mask := uint32(len(t.index) - 1)
	hole := hash & 0xffff & mask
	for t.index[hole] != entry(place, hash) {
		hole = (hole + 1) & mask
	}
	for at := (hole + 1) & mask; t.index[at] != 0; at = (at + 1) & mask {
		if from := t.index[at] & mask; (at-from)&mask >= (at-hole)&mask {
			t.index[hole] = t.index[at]
			hole = at
		}
	}
	t.index[hole] = 0
}

// rarest returns a place with the least count. The search goes round, and mostly
// ends where it begins: where many names are rare, the next one is too. It looks
// at each place at most once.
func (t *tally) rarest() int {
	best := t.hand
	for range t.counts {
		at := t.hand
		if t.hand++; t.hand == len(t.counts) {
			t.hand = 0
		}
		if t.counts[at] <= t.least {
			return at
		}
		if t.counts[at] < t.counts[best] {
			best = at
		}
	}
	t.least = t.counts[best]
	if t.hand = best + 1; t.hand == len(t.counts) {
		t.hand = 0
	}
	return best
}
