package routemap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cellway/cellway"
)

// MaxOverlay is the size in bytes that an encoded overlay may not exceed, and
// OpenOverlay the part of it that is open to every change: the rest is kept
// for cell records, holds and flips, so that a drain always fits.
const (
	MaxOverlay  = 256 << 10
	OpenOverlay = MaxOverlay * 3 / 4
)

const overlayMagic = "CWYO"

// The sections of an overlay.
const (
	secOverCells  = 1 + iota
	secOverGeodes // reserved
	secOverBuckets
	secOverRecords
	secOverHolds
	overlaySections = secOverHolds
)

// An overlay is all that changed since a base: whole records that stand before
// the base's, and absences that hide them. It is immutable once it is part of
// a map.
type overlay struct {
	cells   []*cellway.Cell // changed ones by id, then new ones as they came
	recs    map[string]record
	buckets map[uint32]bucket
	holds   map[string]cellway.Hold
	size    int // bytes when encoded, but for frame and padding
}

func (o *overlay) clone() *overlay {
	return &overlay{
		cells:   slices.Clone(o.cells),
		recs:    cloneMap(o.recs),
		buckets: cloneMap(o.buckets),
		holds:   cloneMap(o.holds),
		size:    o.size,
	}
}

// cloneMap is maps.Clone that never returns nil.
func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Sizes of the encoded records, to know when an overlay is full without
// encoding it at every change.

func cellSize(c *cellway.Cell) int {
	var w writer
	w.cell(c)
	return len(w.b)
}

func recordSize(key string, rec record) int {
	var w writer
	w.record(key, rec)
	return len(w.b)
}

func holdSize(h cellway.Hold) int {
	var w writer
	w.hold(h)
	return len(w.b)
}

const bucketSize = 4 + 2 + 8

func (o *overlay) setRecord(key string, rec record) {
	o.dropRecord(key)
	o.recs[key] = rec
	o.size += recordSize(key, rec)
}

func (o *overlay) dropRecord(key string) {
	if old, ok := o.recs[key]; ok {
		o.size -= recordSize(key, old)
		delete(o.recs, key)
	}
}

func (o *overlay) setBucket(i uint32, b bucket) {
	if _, ok := o.buckets[i]; !ok {
		o.size += bucketSize
	}
	o.buckets[i] = b
}

func (o *overlay) setHold(h cellway.Hold) {
	o.dropHold(string(h.Key))
	o.holds[string(h.Key)] = h
	o.size += holdSize(h)
}

func (o *overlay) dropHold(key string) {
	if old, ok := o.holds[key]; ok {
		o.size -= holdSize(old)
		delete(o.holds, key)
	}
}

func (w *writer) record(key string, rec record) {
	w.text(key)
	w.u8(uint8(rec.kind))
	switch {
	case rec.kind.isEntry():
		w.u16(rec.cell)
		w.u64(uint64(rec.epoch))
		if rec.kind.isOverride() {
			w.note(rec.note)
		}
	case rec.kind == recAlias:
		w.text(string(rec.target))
	case rec.kind == recTombstone:
		w.u64(uint64(rec.epoch))
	}
}

func (r *reader) record(cells int) (string, record) {
	key, rec := r.text(), record{kind: recKind(r.u8()), cell: noCell}
	switch {
	case r.err != nil:
	case !cellway.Key(key).Valid():
		r.fail("%.80q is not a key", key)
	case rec.kind.isEntry():
		rec.cell, rec.epoch = r.u16(), cellway.Epoch(r.u64())
		if r.err == nil && int(rec.cell) >= cells && !(rec.cell == noCell && rec.kind == recKind(cellway.Quarantine)) {
			r.fail("key %q: owner %d of %d cells", key, rec.cell, cells)
		}
		if rec.kind.isOverride() {
			rec.note = r.note()
		}
	case rec.kind == recAlias:
		rec.target = cellway.Key(r.text())
		if r.err == nil && (!rec.target.Valid() || cellway.Key(key).IsComposite()) {
			r.fail("alias %q to %.80q is malformed", key, rec.target)
		}
	case rec.kind == recTombstone:
		rec.epoch = cellway.Epoch(r.u64())
	case rec.kind != recAbsence:
		r.fail("key %q: kind %d is unknown", key, rec.kind)
	}
	return key, rec
}

func (w *writer) hold(h cellway.Hold) {
	w.text(string(h.Key))
	w.text(h.Move)
	w.time(h.Until)
	w.u32(h.HoldMS)
}

func (r *reader) hold() cellway.Hold {
	h := cellway.Hold{Key: cellway.Key(r.text()), Move: r.text(), Until: r.time(), HoldMS: r.u32()}
	if r.err == nil {
		if err := h.Validate(); err != nil {
			r.fail("%v", err)
		}
	}
	return h
}

func (o *overlay) encode() []byte {
	w := newFrame(overlayMagic)
	w.section(secOverCells, func() {
		w.uvarint(len(o.cells))
		for _, c := range o.cells {
			w.cell(c)
		}
	})
	w.section(secOverBuckets, func() {
		w.uvarint(len(o.buckets))
		for _, i := range sortedKeys(o.buckets) {
			w.u32(i)
			w.u16(o.buckets[i].cell)
			w.u64(uint64(o.buckets[i].epoch))
		}
	})
	w.section(secOverRecords, func() {
		w.uvarint(len(o.recs))
		for _, k := range sortedKeys(o.recs) {
			w.record(k, o.recs[k])
		}
	})
	w.section(secOverHolds, func() {
		w.uvarint(len(o.holds))
		for _, k := range sortedKeys(o.holds) {
			w.hold(o.holds[k])
		}
	})
	return w.b
}

// decodeOverlay reads an overlay of base.
func decodeOverlay(raw []byte, base *Base) (*overlay, error) {
	if len(raw) > MaxOverlay {
		return nil, fmt.Errorf("overlay has %d bytes, the most is %d: %w", len(raw), MaxOverlay, ErrFormat)
	}
	sec, err := sections("overlay", overlayMagic, raw, overlaySections)
	if err != nil {
		return nil, err
	}
	if len(sec[secOverGeodes]) > 0 {
		return nil, fmt.Errorf("overlay has geodes, which format %d only reserves: %w", FormatVersion, ErrTooNew)
	}
	o := new(overlay).clone()
	r := &reader{b: sec[secOverCells]}
	added := map[cellway.CellID]bool{}
	last := cellway.CellID("")
	for range r.count(10) {
		c := r.cell()
		_, known := base.cell(c.ID)
		switch {
		case r.err != nil:
		case known && (len(added) > 0 || c.ID <= last) || added[c.ID]:
			r.fail("cell %s is out of order", c.ID)
		case !known:
			added[c.ID] = true
		default:
			last = c.ID
		}
		o.cells = append(o.cells, c)
		o.size += cellSize(c)
	}
	if err := r.end("overlay cells"); err != nil {
		return nil, err
	}
	cells := len(base.cells) + len(added)
	if cells > cellway.MaxCells {
		return nil, fmt.Errorf("overlay: %d cells, the most is %d: %w", cells, cellway.MaxCells, ErrFormat)
	}
	r = &reader{b: sec[secOverBuckets]}
	next := uint64(0)
	for range r.count(bucketSize) {
		i, b := r.u32(), bucket{r.u16(), cellway.Epoch(r.u64())}
		if r.err == nil && (uint64(i) < next || i >= base.settings.Buckets || int(b.cell) >= cells) {
			r.fail("bucket %d, owner %d of %d, is out of order or of bounds", i, b.cell, cells)
		}
		next = uint64(i) + 1
		o.setBucket(i, b)
	}
	if err := r.end("overlay buckets"); err != nil {
		return nil, err
	}
	r = &reader{b: sec[secOverRecords]}
	prev := ""
	for range r.count(2) {
		key, rec := r.record(cells)
		if r.err == nil && key <= prev {
			r.fail("key %q is out of order", key)
		}
		prev = key
		o.setRecord(key, rec)
	}
	if err := r.end("overlay records"); err != nil {
		return nil, err
	}
	r = &reader{b: sec[secOverHolds]}
	prev = ""
	for range r.count(14) {
		h := r.hold()
		if r.err == nil && string(h.Key) <= prev {
			r.fail("hold of %q is out of order", h.Key)
		}
		prev = string(h.Key)
		o.setHold(h)
	}
	return o, r.end("overlay holds")
}

// cell returns the index of the base's cell with that id.
func (b *Base) cell(id cellway.CellID) (int, bool) {
	return slices.BinarySearchFunc(b.cells, id, func(c *cellway.Cell, id cellway.CellID) int { return cmp.Compare(c.ID, id) })
}
