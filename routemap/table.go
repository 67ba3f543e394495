package routemap

import (
	"encoding/binary"
	"hash/maphash"
	"sort"
	"unsafe"

	"github.com/cellway/cellway"
)

// A table finds the records of a base by key. It keeps the base's own bytes:
// records one behind the other, in the order of their keys. Over them lies a
// hash index of where each begins, built when the base is read: a look-up
// touches the index once and then the record, whose key, owner and epoch stand
// together.
type table struct {
	recs       []byte
	n          int
	composites int // keys with a part
	overrides  int
	aliases    int
	tombstones int

	index   keyIndex // of offsets in recs
	marks   []uint32 // offset of each markEvery-th record
	aliased []uint32 // offset of each alias
}

const markEvery = 64

// read reads records and indexes them by seed. Owners must be below cells.
func (t *table) read(sec []byte, cells int, seed maphash.Seed) error {
	r := &reader{b: sec, lent: true}
	t.n = r.count(aliasLeast, noMost)
	t.recs = r.b
	t.index = newKeyIndex(t.n, len(t.recs))
	t.marks = make([]uint32, 0, t.n/markEvery+1)
	last := ""
	// The index is filled from a batch at a time, so that the processor fetches
	// many of its places at once.
	var batch [markEvery]struct {
		hash uint64
		at   int
	}
	for i := range t.n {
		at := len(t.recs) - len(r.b)
		key, kind := r.placed(cells)
		if key == "" {
			var rec record
			key, rec = r.record(cells, false)
			kind = rec.kind
		}
		switch {
		case r.err != nil:
		case key <= last:
			r.fail("record %d: key %q is not above %q", i, key, last)
		case kind == recAbsence:
			r.fail("record %d: an absence of %q, where there is nothing to hide", i, key)
		}
		if r.err != nil {
			break
		}
		last = key
		t.count(key, kind)
		if kind == recAlias {
			t.aliased = append(t.aliased, uint32(at))
		}
		n := i % markEvery
		if n == 0 {
			t.marks = append(t.marks, uint32(at))
		}
		batch[n].hash, batch[n].at = maphash.String(seed, key), at
		if n == markEvery-1 || i == t.n-1 {
			for _, b := range batch[:n+1] {
				t.index.add(b.hash, b.at)
			}
		}
	}
	collapse(t.index.places)
	collapse(t.recs)
	return r.end("records")
}

// placed reads a record of the most common kind, a placed entry with a short
// key, or nothing.
func (r *reader) placed(cells int) (key string, kind recKind) {
	if len(r.b) == 0 {
		return "", 0
	}
	n := int(r.b[0])
	if n == 0 || n >= 0x80 || 1+n+entrySize > len(r.b) || r.b[1+n] != uint8(cellway.Placed) {
		return "", 0
	}
	key = unsafe.String(&r.b[1], n)
	if int(binary.LittleEndian.Uint16(r.b[2+n:])) >= cells || !cellway.Key(key).Valid() {
		return "", 0
	}
	r.b = r.b[1+n+entrySize:]
	return key, recKind(cellway.Placed)
}

func (t *table) count(key string, kind recKind) {
	if cellway.Key(key).IsComposite() {
		t.composites++
	}
	switch {
	case kind.isOverride():
		t.overrides++
	case kind == recAlias:
		t.aliases++
	case kind == recTombstone:
		t.tombstones++
	}
}

// key returns the key of the record at an offset, and where the rest of the
// record begins. No key is longer than two bytes of length can say.
func (t *table) key(at int) (key string, rest int) {
	n := int(t.recs[at])
	at++
	if n >= 0x80 {
		n = n&0x7f | int(t.recs[at])<<7
		at++
	}
	return unsafe.String(&t.recs[at], n), at + n
}

// find returns where the rest of the record of a key with that hash begins, or
// -1.
func (t *table) find(hash uint64, key string) int {
	for p := t.index.probe(hash); ; {
		at := p.next()
		if at < 0 {
			return -1
		}
		if k, rest := t.key(at); k == key {
			return rest
		}
	}
}

// short returns the record whose rest begins there, without the note of an
// override.
func (t *table) short(rest int) record {
	b := t.recs[rest:]
	switch kind := recKind(b[0]); kind {
	case recAlias:
		target, _ := t.key(rest + 1)
		return record{kind: kind, cell: noCell, target: cellway.Key(target)}
	case recTombstone:
		return record{kind: kind, cell: noCell, epoch: cellway.Epoch(binary.LittleEndian.Uint64(b[1:]))}
	default:
		return record{kind: kind, cell: binary.LittleEndian.Uint16(b[1:]), epoch: cellway.Epoch(binary.LittleEndian.Uint64(b[3:]))}
	}
}

// full returns the record whose rest begins there, whole.
func (t *table) full(rest int) record {
	rec := t.short(rest)
	if rec.kind.isOverride() {
		r := reader{b: t.recs[rest+entrySize:], lent: true}
		rec.note = new(r.note())
	}
	return rec
}

// A walk goes over the records of a table in the order of their keys.
type walk struct {
	t    *table
	next int    // offset of the next record
	key  string // of this one
	rest int    // where the rest of this one begins
}

// step goes to the next record and reports whether there is one.
func (w *walk) step() bool {
	if w.next >= len(w.t.recs) {
		return false
	}
	w.key, w.rest = w.t.key(w.next)
	switch kind := recKind(w.t.recs[w.rest]); {
	case kind == recAlias:
		_, w.next = w.t.key(w.rest + 1)
	case kind == recTombstone:
		w.next = w.rest + 1 + 8
	default:
		w.next = w.rest + entrySize
		if kind.isOverride() {
			r := reader{b: w.t.recs[w.next:], lent: true}
			r.note()
			w.next = len(w.t.recs) - len(r.b)
		}
	}
	return true
}

// from starts a walk at the first record whose key is not below key.
func (t *table) from(key string) *walk {
	i := sort.Search(len(t.marks), func(i int) bool {
		k, _ := t.key(int(t.marks[i]))
		return k >= key
	})
	w := &walk{t: t}
	if i > 0 {
		w.next = int(t.marks[i-1])
	}
	for {
		at := w.next
		if !w.step() || w.key >= key {
			w.next = at
			return w
		}
	}
}

// all calls yield with every record, whole, in the order of the keys.
func (t *table) all(yield func(key string, rec record) bool) {
	for w := (walk{t: t}); w.step() && yield(w.key, t.full(w.rest)); {
	}
}

// A tableWriter collects records in the order of their keys.
type tableWriter struct {
	table
	w writer
}

func (w *tableWriter) add(key string, rec record) {
	w.n++
	w.count(key, rec.kind)
	w.w.record(key, &rec)
}
