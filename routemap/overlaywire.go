package routemap

import (
	"bytes"
	"fmt"

	"github.com/cellway/cellway"
)

// The sections of an overlay.
const (
	secOverCells = 1 + iota
	_            // geodes, from a later format on
	secOverBuckets
	secOverRecords
	secOverHolds
)

func overlayLayout() layout {
	return layout{"overlay", "CWYO", []uint16{secOverCells, secOverBuckets, secOverRecords, secOverHolds}}
}

const (
	bucketSize   = 4 + 2 + 8
	entrySize    = 1 + 2 + 8 // of an entry, behind its key and before its note
	aliasLeast   = 5         // bytes of the smallest record but an absence
	absenceLeast = 3         // and of that
	holdLeast    = 16        // and of the smallest hold
)

func (w *writer) record(key string, rec *record) {
	w.text(key)
	w.u8(uint8(rec.kind))
	switch {
	case rec.kind.isEntry():
		w.u16(rec.cell)
		w.u64(uint64(rec.epoch))
		if rec.kind.isOverride() {
			w.note(*rec.note)
		}
	case rec.kind == recAlias:
		w.text(string(rec.target))
	case rec.kind == recTombstone:
		w.u64(uint64(rec.epoch))
	}
}

func recordSize(key string, rec *record) int {
	n := textSize(key) + 1
	switch {
	case rec.kind.isEntry():
		n += entrySize - 1
		if rec.kind.isOverride() {
			n += textSize(rec.note.by) + textSize(rec.note.reason) + 8
		}
	case rec.kind == recAlias:
		n += textSize(string(rec.target))
	case rec.kind == recTombstone:
		n += 8
	}
	return n
}

// record reads a record whose owner must be below cells, with its note or
// without.
func (r *reader) record(cells int, whole bool) (string, record) {
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
			if n := r.note(); whole {
				rec.note = new(n)
			}
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

func (w *writer) hold(h *cellway.Hold) {
	w.text(string(h.Key))
	w.text(h.Move)
	w.time(h.Until)
	w.u32(h.HoldMS)
}

func holdSize(h *cellway.Hold) int { return textSize(string(h.Key)) + textSize(h.Move) + 8 + 4 }

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
	w := newFrame(overlayLayout().magic)
	w.section(secOverCells, func() {
		w.uvarint(len(o.cells))
		for _, c := range o.cells {
			w.cell(c)
		}
	})
	w.section(secOverBuckets, func() {
		w.uvarint(len(o.buckets))
		for _, b := range o.buckets {
			w.u32(b.number)
			w.u16(b.cell)
			w.u64(uint64(b.epoch))
		}
	})
	w.section(secOverRecords, func() {
		w.uvarint(len(o.recs))
		for i := range o.recs {
			w.record(o.recs[i].key, &o.recs[i].rec)
		}
	})
	w.section(secOverHolds, func() {
		w.uvarint(len(o.holds))
		for i := range o.holds {
			w.hold(&o.holds[i])
		}
	})
	return w.b
}

// decodeOverlay reads an overlay of base. What it returns does not point into
// raw.
func decodeOverlay(raw []byte, base *Base) (*overlay, error) {
	if len(raw) > MaxOverlay {
		return nil, fmt.Errorf("overlay has %d bytes, the most is %d: %w", len(raw), MaxOverlay, ErrFormat)
	}
	f, err := overlayLayout().read(bytes.Clone(raw))
	if err != nil {
		return nil, err
	}
	o := new(overlay)
	cells, err := o.decodeCells(f.body[secOverCells], base)
	if err != nil {
		return nil, err
	}
	if err := o.decodeBuckets(f.body[secOverBuckets], base.settings.Buckets, cells); err != nil {
		return nil, err
	}
	if err := o.decodeRecords(f.body[secOverRecords], base, cells); err != nil {
		return nil, err
	}
	return o, o.decodeHolds(f.body[secOverHolds])
}

// decodeCells returns how many cells base and overlay have together.
func (o *overlay) decodeCells(sec []byte, base *Base) (int, error) {
	r := &reader{b: sec, lent: true}
	var cells []*cellway.Cell
	added := map[cellway.CellID]bool{}
	last := cellway.CellID("")
	for range r.count(cellLeast, cellway.MaxCells) {
		c := r.cell()
		if r.err != nil {
			break
		}
		if _, known := base.cell(c.ID); !known {
			if added[c.ID] {
				r.fail("cell %s stands twice", c.ID)
			}
			added[c.ID] = true
		} else {
			if len(added) > 0 || c.ID <= last {
				r.fail("cell %s is out of order", c.ID)
			}
			last = c.ID
		}
		cells = append(cells, c)
	}
	all := len(base.cells) + len(added)
	if all > cellway.MaxCells {
		r.fail("%d cells, the most is %d", all, cellway.MaxCells)
	}
	o.setCells(cells)
	return all, r.end("overlay cells")
}

func (o *overlay) decodeBuckets(sec []byte, buckets uint32, cells int) error {
	r := &reader{b: sec}
	next := uint64(0)
	for range r.count(bucketSize, MaxBuckets) {
		b := overBucket{r.u32(), bucket{r.u16(), cellway.Epoch(r.u64())}}
		if r.err == nil && (uint64(b.number) < next || b.number >= buckets || int(b.cell) >= cells) {
			r.fail("bucket %d, owner %d of %d, is out of order or of bounds", b.number, b.cell, cells)
		}
		if r.err != nil {
			break
		}
		next = uint64(b.number) + 1
		o.buckets = append(o.buckets, b)
	}
	return r.end("overlay buckets")
}

func (o *overlay) decodeRecords(sec []byte, base *Base, cells int) error {
	r := &reader{b: sec, lent: true}
	n := r.count(absenceLeast, noMost)
	recs := make([]overRecord, 0, n)
	prev := ""
	for range n {
		key, rec := r.record(cells, true)
		hash := base.hash(key)
		switch {
		case r.err != nil:
		case key <= prev:
			r.fail("key %q is out of order", key)
		case rec.kind == recAbsence && base.tab.find(hash, key) < 0:
			r.fail("absence of %q hides nothing", key)
		}
		if r.err != nil {
			break
		}
		prev = key
		recs = append(recs, overRecord{key, hash, rec})
	}
	if err := r.end("overlay records"); err != nil {
		return err
	}
	o.setRecords(recs)
	return nil
}

func (o *overlay) decodeHolds(sec []byte) error {
	r := &reader{b: sec, lent: true}
	n := r.count(holdLeast, noMost)
	holds := make([]cellway.Hold, 0, n)
	prev := cellway.Key("")
	for range n {
		h := r.hold()
		if r.err == nil && h.Key <= prev {
			r.fail("hold of %q is out of order", h.Key)
		}
		if r.err != nil {
			break
		}
		prev = h.Key
		holds = append(holds, h)
	}
	o.setHolds(holds)
	return r.end("overlay holds")
}
