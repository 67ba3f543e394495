package routemap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/cellway/cellway"
)

// recSize is the size of a record in a base: offset of its key, owner, kind,
// a zero byte, epoch (of an alias: the index of its target).
const recSize = 16

// A table finds records by key. It keeps the base's own bytes: fixed-size
// records sorted by key beside one run of all keys. Over them lies a hash
// index, built when the base is read.
type table struct {
	recs       []byte // n records
	keys       string // n keys, in the order of the records
	n          int
	composites int // keys with a part
	overrides  int
	aliases    int
	tombstones int

	index keyIndex

	notes   []byte        // of the overrides, in the order of the records
	noted   []noteRef     // where each of them is
	targets []cellway.Key // of the aliases, in the order of the records
	aliased []uint32      // which records they are
}

// A noteRef says where in the notes that of an override begins.
type noteRef struct{ rec, at uint32 }

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

// buildIndex indexes records that were found sound.
func (t *table) buildIndex(seed maphash.Seed) {
	t.index = newKeyIndex(t.n)
	for i := range t.n {
		t.index.add(maphash.String(seed, t.key(i)), i)
	}
}

// find returns the number of the record of a key with that hash, or -1.
func (t *table) find(hash uint64, key string) int {
	s := t.index.search(hash)
	for {
		if i := t.index.next(&s); i < 0 || t.key(i) == key {
			return i
		}
	}
}

// from returns the number of the first record whose key is not below key.
func (t *table) from(key string) int {
	lo, hi := 0, t.n
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); t.key(mid) < key {
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

// full returns record i whole.
func (t *table) full(i int) record {
	rec := t.short(i)
	if rec.kind.isOverride() {
		nth, _ := slices.BinarySearchFunc(t.noted, uint32(i), func(n noteRef, i uint32) int { return cmp.Compare(n.rec, i) })
		r := reader{b: t.notes[t.noted[nth].at:], lent: true}
		rec.note = new(r.note())
	}
	return rec
}

// check finds out whether the records can be trusted: keys well-formed and in
// order, owners below cells, kinds known, counts right. It must hold before
// anything else touches the table.
func (t *table) check(cells int) error {
	keys := unsafe.Slice(unsafe.StringData(t.keys), len(t.keys))
	from := uint32(0)
	var last []byte
	for i := range t.n {
		to := uint32(len(keys))
		if i+1 < t.n {
			to = t.offset(i + 1)
		}
		if t.offset(i) != from || to < from || int64(to) > int64(len(keys)) || to-from > cellway.MaxKey {
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
	if t.n == 0 && len(keys) > 0 {
		return fmt.Errorf("%d bytes of keys for no record: %w", len(keys), ErrFormat)
	}
	return nil
}

func (t *table) checkRecord(i int, key []byte, cells int) error {
	kind, cell := t.kind(i), t.cell(i)
	composite := bytes.IndexByte(key, '/') >= 0
	if composite {
		t.composites++
	}
	switch {
	case t.recs[i*recSize+7] != 0:
		return fmt.Errorf("reserved byte is not zero: %w", ErrFormat)
	case kind.isEntry():
		if kind.isOverride() {
			t.overrides++
		}
		if int(cell) >= cells && !(cell == noCell && kind == recKind(cellway.Quarantine)) {
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

// readNotes finds where the note of each override begins.
func (t *table) readNotes() error {
	if len(t.notes) > noMost {
		return fmt.Errorf("notes: %d bytes are too many: %w", len(t.notes), ErrFormat)
	}
	r := &reader{b: t.notes, lent: true}
	if t.overrides > 0 {
		t.noted = make([]noteRef, 0, t.overrides)
	}
	for i := 0; i < t.n && len(t.noted) < t.overrides && r.err == nil; i++ {
		if t.kind(i).isOverride() {
			t.noted = append(t.noted, noteRef{uint32(i), uint32(len(t.notes) - len(r.b))})
			r.note()
		}
	}
	return r.end("notes")
}

// readTargets reads what the aliases stand for.
func (t *table) readTargets(sec []byte) error {
	r := &reader{b: sec, lent: true}
	if t.aliases > 0 {
		t.targets, t.aliased = make([]cellway.Key, 0, t.aliases), make([]uint32, 0, t.aliases)
	}
	for i := 0; i < t.n && len(t.targets) < t.aliases; i++ {
		if t.kind(i) != recAlias {
			continue
		}
		target := cellway.Key(r.text())
		if r.err == nil && !target.Valid() {
			r.fail("alias target %.80q is not a key", target)
		}
		if r.err != nil {
			break
		}
		t.targets, t.aliased = append(t.targets, target), append(t.aliased, uint32(i))
	}
	return r.end("alias targets")
}

// A tableWriter collects records in the order of their keys.
type tableWriter struct {
	recs, notes, targets writer
	keys                 []byte

	n, composites, overrides, aliases, tombstones int
}

// grow makes room for n records with so many bytes of keys.
func (w *tableWriter) grow(n, keys int) {
	w.recs.b = slices.Grow(w.recs.b, n*recSize)
	w.keys = slices.Grow(w.keys, keys)
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
		w.notes.note(*rec.note)
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
