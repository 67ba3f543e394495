package routemap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"unsafe"

	"github.com/cellway/cellway"
)

// recSize is the size of a record in a base: offset of its key, owner, kind,
// a zero byte, epoch (of an alias: the index of its target).
const recSize = 16

// A table finds records by key. It keeps the base's own bytes: fixed-size
// records sorted by key beside one run of all keys. Over them lies a hash
// index of eight bytes a slot, at most two thirds full, built when the base is
// read; a slot holds half of the key's hash and the record's number plus one.
// The hash is seeded anew in each process, so that nobody can choose keys that
// collide; it decides no owner and is stored nowhere.
type table struct {
	recs       []byte // n records
	keys       string // n keys, in the order of the records
	n          int
	composites int // keys with a part
	overrides  int
	aliases    int
	tombstones int

	seed  maphash.Seed
	shift uint
	slots []uint64

	notes   []byte        // of the overrides, in the order of the records
	targets []cellway.Key // of the aliases, in the order of the records
}

func (t *table) offset(i int) uint32 { return binary.LittleEndian.Uint32(t.recs[i*recSize:]) }
func (t *table) cell(i int) uint16   { return binary.LittleEndian.Uint16(t.recs[i*recSize+4:]) }
func (t *table) kind(i int) recKind  { return recKind(t.recs[i*recSize+6]) }
func (t *table) number(i int) uint64 { return binary.LittleEndian.Uint64(t.recs[i*recSize+8:]) }

func (t *table) key(i int) string {
	from, to := t.offset(i), uint32(len(t.keys))
	if i+1 < t.n {
		to = t.offset(i + 1)
	}
	return t.keys[from:to]
}

// index builds the hash index over records that were found sound.
func (t *table) index() {
	if t.n == 0 {
		return
	}
	t.seed = maphash.MakeSeed()
	// The slots are a power of two, at least half as many again as the records.
	size := bits.Len(uint(t.n + t.n/2))
	t.shift = uint(64 - size)
	t.slots = make([]uint64, 1<<size)
	mask := uint64(len(t.slots) - 1)
	for i := range t.n {
		h := maphash.String(t.seed, t.key(i))
		at := h >> t.shift
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = h<<32 | uint64(i+1)
	}
}

// find returns the number of key's record, or -1.
func (t *table) find(key string) int {
	if t.n == 0 {
		return -1
	}
	h := maphash.String(t.seed, key)
	mask := uint64(len(t.slots) - 1)
	for at := h >> t.shift; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			return -1
		}
		if s>>32 == h&0xffffffff {
			if i := int(uint32(s)) - 1; t.key(i) == key {
				return i
			}
		}
	}
}

// search returns the number of the first record whose key is not below key.
func (t *table) search(key string) int {
	lo, hi := 0, t.n
	for lo < hi {
		if mid := (lo + hi) / 2; t.key(mid) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// short returns record i without the note of an override.
func (t *table) short(i int) record {
	rec := record{kind: t.kind(i), cell: t.cell(i)}
	if rec.kind == recAlias {
		rec.target = t.targets[t.number(i)]
	} else {
		rec.epoch = cellway.Epoch(t.number(i))
	}
	return rec
}

// full returns record i whole. Finding a note walks over the notes before it:
// full is for people, not for requests.
func (t *table) full(i int) record {
	rec := t.short(i)
	if rec.kind.isOverride() {
		nth := 0
		for j := range i {
			if t.kind(j).isOverride() {
				nth++
			}
		}
		r := reader{b: t.notes}
		for range nth {
			r.note()
		}
		rec.note = r.note()
	}
	return rec
}

// all calls yield with every record in the order of keys, whole.
func (t *table) all(yield func(key string, rec record) bool) {
	notes := reader{b: t.notes}
	for i := range t.n {
		rec := t.short(i)
		if rec.kind.isOverride() {
			rec.note = notes.note()
		}
		if !yield(t.key(i), rec) {
			return
		}
	}
}

// check finds out whether the records can be trusted: keys well-formed and in
// order, owners below cells, kinds known, counts right. It must hold before
// anything else touches the table.
func (t *table) check(cells int) error {
	if len(t.recs) != t.n*recSize {
		return fmt.Errorf("%d bytes of records for %d: %w", len(t.recs), t.n, ErrFormat)
	}
	keys := unsafe.Slice(unsafe.StringData(t.keys), len(t.keys))
	from := uint32(0)
	var last []byte
	for i := range t.n {
		to := uint32(len(keys))
		if i+1 < t.n {
			to = t.offset(i + 1)
		}
		if t.offset(i) != from || to < from || int(to) > len(keys) || to-from > cellway.MaxKey {
			return fmt.Errorf("record %d: key at %d to %d of %d: %w", i, t.offset(i), to, len(keys), ErrFormat)
		}
		key := keys[from:to]
		if !cellway.Key(unsafe.String(unsafe.SliceData(key), len(key))).Valid() {
			return fmt.Errorf("record %d: %.80q is not a key: %w", i, key, ErrFormat)
		}
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("record %d: key %q is not above %q: %w", i, key, last, ErrFormat)
		}
		if err := t.checkRecord(i, key, cells); err != nil {
			return fmt.Errorf("record %d, key %q: %w", i, key, err)
		}
		last, from = key, to
	}
	if int(from) != len(keys) {
		return fmt.Errorf("%d bytes of keys, %d used: %w", len(keys), from, ErrFormat)
	}
	return nil
}

func (t *table) checkRecord(i int, key []byte, cells int) error {
	kind, cell := t.kind(i), t.cell(i)
	composite := bytes.IndexByte(key, '/') >= 0
	if composite {
		t.composites++
	}
	owned := int(cell) < cells
	switch {
	case t.recs[i*recSize+7] != 0:
		return fmt.Errorf("reserved byte is not zero: %w", ErrFormat)
	case kind.isEntry():
		if kind.isOverride() {
			t.overrides++
		}
		if !owned && !(cell == noCell && kind == recKind(cellway.Quarantine)) {
			return fmt.Errorf("owner %d of %d cells: %w", cell, cells, ErrFormat)
		}
	case kind == recAlias:
		if composite || cell != noCell || t.number(i) != uint64(t.aliases) {
			return fmt.Errorf("alias is malformed: %w", ErrFormat)
		}
		t.aliases++
	case kind == recTombstone:
		if cell != noCell {
			return fmt.Errorf("tombstone has an owner: %w", ErrFormat)
		}
		t.tombstones++
	default:
		return fmt.Errorf("kind %d is unknown: %w", kind, ErrFormat)
	}
	return nil
}

// A tableWriter collects records in the order of their keys.
type tableWriter struct {
	recs, notes, targets writer
	keys                 []byte

	n, composites, overrides, aliases, tombstones int
}

func (w *tableWriter) add(key string, rec record) {
	number := uint64(rec.epoch)
	if rec.kind == recAlias {
		number = uint64(w.aliases)
		w.targets.text(string(rec.target))
		w.aliases++
	}
	if rec.kind == recTombstone {
		w.tombstones++
	}
	if rec.kind.isOverride() {
		w.notes.note(rec.note)
		w.overrides++
	}
	if cellway.Key(key).IsComposite() {
		w.composites++
	}
	w.recs.u32(uint32(len(w.keys)))
	w.recs.u16(rec.cell)
	w.recs.u8(uint8(rec.kind))
	w.recs.u8(0)
	w.recs.u64(number)
	w.keys = append(w.keys, key...)
	w.n++
}
