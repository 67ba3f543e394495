package routemap

import (
	"hash/maphash"
	"math/bits"
)

// A keyIndex finds the number of a key by the key's hash. It holds four bytes a
// place, at most two thirds of them taken: the number plus one, and in the bits
// above it what fits of the hash, which tells most other keys apart without a look
// at them. A look-up in a large map spends its time on cache misses, and so the index
// is small. The hash is seeded anew in each process, so that nobody can
// choose keys that collide; it decides no owner and is stored nowhere.
type keyIndex struct {
	shift  uint // of a hash to its place: its upper bits
	width  uint // of a number plus one
	places []uint32
}

// newKeyIndex has room for n keys with numbers below most, which is below 2^32:
// offsets in a base of [MaxBase] bytes are. The number of its places is a power of
// two, at least half as many again as keys.
func newKeyIndex(n, most int) keyIndex {
	size := bits.Len(uint(n + n/2))
	return keyIndex{shift: uint(64 - size), width: uint(bits.Len(uint(most))), places: make([]uint32, 1<<size)}
}

func (x *keyIndex) add(hash uint64, i int) {
	mask := uint64(len(x.places) - 1)
	at := hash >> x.shift
	for x.places[at] != 0 {
		at = (at + 1) & mask
	}
	x.places[at] = uint32(hash)<<x.width | uint32(i+1)
}

// A probe goes over the places of an index at which a key may be.
type probe struct {
	x    *keyIndex
	at   uint64
	mark uint32 // the hash's part of a place
}

// probe starts at the place of a hash.
func (x *keyIndex) probe(hash uint64) probe {
	return probe{x, hash >> x.shift, uint32(hash) << x.width}
}

// next returns the number of the next key that may be the one, or -1.
func (p *probe) next() int {
	places, width := p.x.places, p.x.width
	for mask := uint64(len(places) - 1); ; {
		place := places[p.at&mask]
		if place == 0 {
			return -1
		}
		p.at++
		if (place^p.mark)>>width == 0 {
			return int(place&(1<<width-1)) - 1
		}
	}
}

// hash returns the hash of key in the maps of this base.
func (b *Base) hash(key string) uint64 { return maphash.String(b.seed, key) }
