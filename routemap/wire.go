package routemap

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/cellway/cellway"
)

// The frame that all parts of a published map share: four bytes of magic, the
// format version and the lowest version whose readers understand the part,
// then sections. A section has an id, a flag that says whether a reader that
// does not know the id may skip it, a length, and its bytes padded to eight.
const (
	// FormatVersion is the version of the byte format that this package writes.
	FormatVersion = 1
	// minReader is the lowest format version whose readers understand what this
	// package writes.
	minReader = 1

	frameHeader   = 8
	sectionHeader = 16

	flagCritical = 1

	maxTime = 253402300799 // the end of the year 9999
)

// A writer appends the format's values to a buffer.
type writer struct{ b []byte }

// newFrame starts a part.
func newFrame(magic string) *writer {
	w := &writer{b: []byte(magic)}
	w.u16(FormatVersion)
	w.u16(minReader)
	return w
}

func (w *writer) u8(v uint8)    { w.b = append(w.b, v) }
func (w *writer) u16(v uint16)  { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32)  { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64)  { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *writer) uvarint(v int) { w.b = binary.AppendUvarint(w.b, uint64(v)) }
func (w *writer) text(s string) { w.uvarint(len(s)); w.b = append(w.b, s...) }

// time writes seconds since 1970, and 0 for the zero time.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.u64(0)
		return
	}
	w.u64(uint64(t.Unix()))
}

func (w *writer) bool(v bool) {
	if v {
		w.u8(1)
	} else {
		w.u8(0)
	}
}

// section appends a critical section whose bytes fill appends.
func (w *writer) section(id uint16, fill func()) {
	w.u16(id)
	w.u16(flagCritical)
	w.u32(0)
	at := len(w.b)
	w.u64(0)
	fill()
	binary.LittleEndian.PutUint64(w.b[at:], uint64(len(w.b)-at-8))
	for len(w.b)%8 != 0 {
		w.b = append(w.b, 0)
	}
}

// The sizes of what a writer appends, so that a part's size is known without
// writing it.

func uvarintSize(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func textSize(s string) int { return uvarintSize(len(s)) + len(s) }

func sectionSize(body int) int { return sectionHeader + (body+7)&^7 }

// A reader takes the format's values from a buffer. After the first error
// everything it returns is zero.
type reader struct {
	b   []byte
	err error
	// lent is set where the buffer belongs to what is read for good, so that
	// texts may point into it.
	lent bool
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrFormat)
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.fail("cut short: %d bytes wanted, %d there", n, len(r.b))
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) u8() uint8 {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if p := r.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// count reads a uvarint in its shortest form that counts at most most things
// of at least least bytes each, so that a count can't make the reader allocate
// more than the input's size.
func (r *reader) count(least, most int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.fail("count is cut short or not in its shortest form")
		return 0
	}
	r.b = r.b[n:]
	switch {
	case v > uint64(len(r.b)/least):
		r.fail("count %d is larger than what follows", v)
		return 0
	case v > uint64(most):
		r.fail("count is %d, the most is %d", v, most)
		return 0
	}
	return int(v)
}

// noMost is for counts that only the size of the input bounds.
const noMost = 1<<31 - 1

func (r *reader) text() string {
	p := r.take(r.count(1, noMost))
	if r.lent {
		return unsafe.String(unsafe.SliceData(p), len(p))
	}
	return string(p)
}

func (r *reader) bool() bool {
	v := r.u8()
	if v > 1 {
		r.fail("flag is %d", v)
	}
	return v == 1
}

// seconds reads a time as seconds since 1970.
func (r *reader) seconds() int64 {
	s := r.u64()
	if s > maxTime {
		r.fail("time %d is after the year 9999", s)
		return 0
	}
	return int64(s)
}

func (r *reader) time() time.Time {
	if s := r.seconds(); s != 0 {
		return time.Unix(s, 0).UTC()
	}
	return time.Time{}
}

// end fails unless all bytes were read.
func (r *reader) end(what string) error {
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w", what, r.err)
	}
	return nil
}

// A layout says of what sections a kind of part is made.
type layout struct {
	what  string
	magic string
	ids   []uint16 // of its sections, ascending; a part has all of them
}

// A frame is a part taken apart.
type frame struct {
	version, least uint16
	body           map[uint16][]byte
	last           int // where the last section of the layout begins
}

// read takes a part apart. A part of this package's version or an older one
// has exactly the layout's sections; one of a newer version may have others
// beside them, which are skipped unless they are critical.
func (l layout) read(b []byte) (frame, error) {
	r := &reader{b: b}
	if string(r.take(4)) != l.magic {
		return frame{}, fmt.Errorf("%s: it is none, as it does not start with %q: %w", l.what, l.magic, ErrFormat)
	}
	f := frame{version: r.u16(), least: r.u16(), body: make(map[uint16][]byte, len(l.ids))}
	if r.err != nil {
		return frame{}, r.end(l.what)
	}
	if err := l.readable(f.version, f.least); err != nil {
		return frame{}, err
	}
	for last := 0; len(r.b) > 0; {
		at := len(b) - len(r.b)
		id, flags, zero, size := r.u16(), r.u16(), r.u32(), r.u64()
		if r.err == nil && size > uint64(len(r.b)) {
			r.fail("section %d claims %d bytes, %d are there", id, size, len(r.b))
		}
		body := r.take(int(size))
		for _, c := range r.take(-int(size) & 7) {
			if c != 0 {
				r.fail("padding after section %d is not zero", id)
			}
		}
		known := slices.Contains(l.ids, id)
		switch {
		case r.err != nil:
		case int(id) <= last || zero != 0 || flags&^flagCritical != 0:
			r.fail("section %d is out of order or has unknown flags", id)
		case known && flags != flagCritical:
			r.fail("section %d is not marked critical", id)
		case known:
			f.body[id], f.last = body, at
		case f.version <= FormatVersion:
			r.fail("section %d is not one of format %d", id, f.version)
		case flags == flagCritical:
			return frame{}, fmt.Errorf("%s: section %d of format %d is needed to read it and unknown to a reader of format %d; upgrade the reader first: %w",
				l.what, id, f.version, FormatVersion, ErrTooNew)
		}
		last = int(id)
	}
	if r.err == nil && len(f.body) < len(l.ids) {
		i := slices.IndexFunc(l.ids, func(id uint16) bool { _, ok := f.body[id]; return !ok })
		r.fail("section %d is missing", l.ids[i])
	}
	return f, r.end(l.what)
}

// readable refuses a part that this package is too old for, naming both
// numbers.
func (l layout) readable(version, least uint16) error {
	if least > FormatVersion {
		return fmt.Errorf("%s: format %d needs a reader of format %d or later, this one reads up to %d; upgrade it first: %w",
			l.what, version, least, FormatVersion, ErrTooNew)
	}
	if version == 0 || least == 0 || least > version {
		return fmt.Errorf("%s: format %d for readers from %d makes no sense: %w", l.what, version, least, ErrFormat)
	}
	return nil
}

// Cell records stand alike in base and overlay.

const (
	cellLeast   = 10 // bytes of the smallest cell record
	mostCellTag = 32
)

func (w *writer) cell(c *cellway.Cell) {
	w.text(string(c.ID))
	w.text(c.Title)
	w.u8(uint8(c.State))
	w.u8(c.Admit)
	w.u8(uint8(c.Guard))
	w.text(c.Region)
	w.text(c.Zone)
	w.uvarint(len(c.Endpoints))
	for _, e := range c.Endpoints {
		w.text(e)
	}
	w.uvarint(len(c.Tags))
	for _, k := range sortedKeys(c.Tags) {
		w.text(k)
		w.text(c.Tags[k])
	}
}

func cellSize(c *cellway.Cell) int {
	n := textSize(string(c.ID)) + textSize(c.Title) + 3 + textSize(c.Region) + textSize(c.Zone) + uvarintSize(len(c.Endpoints)) + uvarintSize(len(c.Tags))
	for _, e := range c.Endpoints {
		n += textSize(e)
	}
	for k, v := range c.Tags {
		n += textSize(k) + textSize(v)
	}
	return n
}

func (r *reader) cell() *cellway.Cell {
	c := &cellway.Cell{
		ID:    cellway.CellID(r.text()),
		Title: r.text(),
		State: cellway.CellState(r.u8()),
		Admit: r.u8(),
		Guard: cellway.GuardKind(r.u8()),
	}
	c.Region, c.Zone = r.text(), r.text()
	for range r.count(1, cellway.MaxEndpoints) {
		c.Endpoints = append(c.Endpoints, r.text())
	}
	last := ""
	for i := range r.count(2, mostCellTag) {
		k, v := r.text(), r.text()
		if i > 0 && k <= last {
			r.fail("tags of cell %q are not in order", c.ID)
		}
		if c.Tags == nil {
			c.Tags = map[string]string{}
		}
		c.Tags[k], last = v, k
	}
	if r.err == nil {
		if err := c.Validate(); err != nil {
			r.fail("%v", err)
		}
	}
	return c
}

func (w *writer) note(n note) {
	w.text(n.by)
	w.text(n.reason)
	w.u64(uint64(n.reviewBy))
}

func (r *reader) note() note {
	n := note{by: r.text(), reason: r.text(), reviewBy: r.seconds()}
	if r.err == nil {
		if err := n.check(); err != nil {
			r.fail("%v", err)
		}
	}
	return n
}
