package routemap

import (
	"hash/maphash"
	"math/bits"
)

// A keyIndex finds the number of a key by the key's hash. It holds eight bytes
// a place, at most two thirds of them taken: half of the hash and the number
// plus one. The hash is seeded anew in each process, so that nobody can choose
// keys that collide; it decides no owner and is stored nowhere.
type keyIndex struct {
	shift  uint
	places []uint64
}

// newKeyIndex has room for n keys. Their number of places is a power of two, at
// least half as many again.
func newKeyIndex(n int) keyIndex {
	size := bits.Len(uint(n + n/2))
	return keyIndex{shift: uint(64 - size), places: make([]uint64, 1<<size)}
}

func (x *keyIndex) add(hash uint64, i int) {
	mask := uint64(len(x.places) - 1)
	at := hash >> x.shift
	for x.places[at] != 0 {
		at = (at + 1) & mask
	}
	x.places[at] = hash<<32 | uint64(i+1)
}

// hash returns the hash of key in the maps of this base.
func (b *Base) hash(key string) uint64 { return maphash.String(b.seed, key) }
