package routemap

import (
	"encoding/binary"
	"fmt"
	"time"

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

func (w *writer) u8(v uint8)       { w.b = append(w.b, v) }
func (w *writer) u16(v uint16)     { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32)     { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64)     { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *writer) uvarint(v int)    { w.b = binary.AppendUvarint(w.b, uint64(v)) }
func (w *writer) text(s string)    { w.uvarint(len(s)); w.b = append(w.b, s...) }
func (w *writer) bytes(p []byte)   { w.uvarint(len(p)); w.b = append(w.b, p...) }
func (w *writer) time(t time.Time) { w.u64(uint64(t.Unix())) }
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

// A reader takes the format's values from a buffer. After the first error
// everything it returns is zero.
type reader struct {
	b   []byte
	err error
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

// count reads a uvarint that counts things of at least least bytes each, so
// that a count can't make the reader allocate more than the input's size.
func (r *reader) count(least int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || (n > 1 && r.b[n-1] == 0) {
		r.fail("count is cut short or not in its shortest form")
		return 0
	}
	r.b = r.b[n:]
	if v > uint64(len(r.b)/max(least, 1)) {
		r.fail("count %d is larger than what follows", v)
		return 0
	}
	return int(v)
}

func (r *reader) text() string { return string(r.take(r.count(1))) }

func (r *reader) bool() bool {
	v := r.u8()
	if v > 1 {
		r.fail("flag is %d", v)
	}
	return v == 1
}

func (r *reader) time() time.Time {
	s := r.u64()
	if s > 253402300799 {
		r.fail("time %d is after the year 9999", s)
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
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

// sections reads a frame and returns its sections by id. Ids above known are
// skipped unless they are critical.
func sections(what, magic string, b []byte, known uint16) (map[uint16][]byte, error) {
	r := &reader{b: b}
	if string(r.take(4)) != magic {
		return nil, fmt.Errorf("%s: not one: it does not start with %q: %w", what, magic, ErrFormat)
	}
	version, least := r.u16(), r.u16()
	if r.err != nil {
		return nil, r.end(what)
	}
	if err := readable(what, version, least); err != nil {
		return nil, err
	}
	out := make(map[uint16][]byte, known)
	last := -1
	for len(r.b) > 0 && r.err == nil {
		id, flags, zero, size := r.u16(), r.u16(), r.u32(), r.u64()
		if r.err != nil {
			break
		}
		if size > uint64(len(r.b)) {
			r.fail("section %d claims %d bytes, %d are there", id, size, len(r.b))
			break
		}
		body := r.take(int(size))
		for _, c := range r.take((8 - int(size)%8) % 8) {
			if c != 0 {
				r.fail("padding after section %d is not zero", id)
			}
		}
		switch {
		case int(id) <= last || zero != 0 || flags&^flagCritical != 0:
			r.fail("section %d is out of order or has unknown flags", id)
		case id <= known:
			out[id] = body
		case flags&flagCritical != 0:
			return nil, fmt.Errorf("%s: section %d is needed to read it and unknown to format %d: %w", what, id, FormatVersion, ErrTooNew)
		}
		last = int(id)
	}
	return out, r.end(what)
}

// readable refuses a part that this package is too old for, naming both
// numbers.
func readable(what string, version, least uint16) error {
	if least > FormatVersion {
		return fmt.Errorf("%s: format %d needs a reader of format %d or later, this one reads up to %d; upgrade it first: %w",
			what, version, least, FormatVersion, ErrTooNew)
	}
	if version == 0 || least == 0 || least > version {
		return fmt.Errorf("%s: format %d for readers from %d makes no sense: %w", what, version, least, ErrFormat)
	}
	return nil
}

// Cell records stand alike in base and overlay.

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

func (r *reader) cell() *cellway.Cell {
	c := &cellway.Cell{
		ID:    cellway.CellID(r.text()),
		Title: r.text(),
		State: cellway.CellState(r.u8()),
		Admit: r.u8(),
		Guard: cellway.GuardKind(r.u8()),
	}
	c.Region, c.Zone = r.text(), r.text()
	for range r.count(1) {
		c.Endpoints = append(c.Endpoints, r.text())
	}
	last := ""
	for i := range r.count(2) {
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
	w.time(n.reviewBy)
}

func (r *reader) note() note {
	return note{by: r.text(), reason: r.text(), reviewBy: r.time()}
}
