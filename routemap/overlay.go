package routemap

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// MaxOverlay is the size in bytes that an encoded overlay may not exceed, and
// OpenOverlay the part of it that is open to every change: the rest is kept
// for cell records, holds and flips, so that a drain always fits.
const (
	MaxOverlay  = 256 << 10
	OpenOverlay = MaxOverlay * 3 / 4
)

// An overlay is all that changed since a base: whole records that stand before
// the base's, and absences that hide them. It is immutable.
type overlay struct {
	cells   []*cellway.Cell // changed ones by id, then new ones as they came
	recs    []overRecord    // by key
	buckets []overBucket    // by number
	holds   []cellway.Hold  // by key

	index     keyIndex // of recs
	cellBytes int      // of cells, when encoded
	recBytes  int
	holdBytes int
}

// An overRecord is a record with its key, and the key's hash.
type overRecord struct {
	key  string
	hash uint64
	rec  record
}

func byKey(a, b overRecord) int { return strings.Compare(a.key, b.key) }

func againstKey(r overRecord, key string) int { return strings.Compare(r.key, key) }

// An overBucket is a bucket with its number.
type overBucket struct {
	number uint32
	bucket
}

// find returns the record of a key with that hash, or nil.
func (o *overlay) find(hash uint64, key string) *record {
	for p := o.index.probe(hash); ; {
		i := p.next()
		if i < 0 {
			return nil
		}
		if r := &o.recs[i]; r.key == key {
			return &r.rec
		}
	}
}

// hold returns the hold of exactly that key, or nil.
func (o *overlay) hold(key string) *cellway.Hold {
	i, ok := slices.BinarySearchFunc(o.holds, key, func(h cellway.Hold, key string) int { return strings.Compare(string(h.Key), key) })
	if !ok {
		return nil
	}
	return &o.holds[i]
}

// setCells, setRecords and setHolds give o its parts, which it then owns.

func (o *overlay) setCells(cells []*cellway.Cell) {
	o.cells, o.cellBytes = cells, 0
	for _, c := range cells {
		o.cellBytes += cellSize(c)
	}
}

func (o *overlay) setRecords(recs []overRecord) {
	o.recs, o.recBytes, o.index = recs, 0, newKeyIndex(len(recs), len(recs))
	for i := range recs {
		o.recBytes += recordSize(recs[i].key, &recs[i].rec)
		o.index.add(recs[i].hash, i)
	}
}

func (o *overlay) setHolds(holds []cellway.Hold) {
	o.holds, o.holdBytes = holds, 0
	for i := range holds {
		o.holdBytes += holdSize(&holds[i])
	}
}

// size returns the length of what encode returns.
func (o *overlay) size() int {
	return frameHeader +
		sectionSize(uvarintSize(len(o.cells))+o.cellBytes) +
		sectionSize(uvarintSize(len(o.buckets))+len(o.buckets)*bucketSize) +
		sectionSize(uvarintSize(len(o.recs))+o.recBytes) +
		sectionSize(uvarintSize(len(o.holds))+o.holdBytes)
}

// noChanges is the overlay of a map that is all base.
func noChanges() *overlay {
	o := new(overlay)
	o.setRecords(nil)
	return o
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// merge joins two sorted lists; where both have a key, the later's element
// stands. Elements of later that drop names are left out.
func merge[T any](earlier, later []T, order func(a, b T) int, drop func(T) bool) []T {
	out := make([]T, 0, len(earlier)+len(later))
	for len(later) > 0 {
		n, same := slices.BinarySearchFunc(earlier, later[0], order)
		out = append(out, earlier[:n]...)
		if same {
			n++
		}
		earlier = earlier[n:]
		if !drop(later[0]) {
			out = append(out, later[0])
		}
		later = later[1:]
	}
	return append(out, earlier...)
}
