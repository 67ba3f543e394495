package front

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"
)

// An Entry is a line of an access log under construction: an object of JSON with
// the fields in the order in which they are added, as package slog writes them. It
// is made on a request's way, in memory that is used again. Names are plain ASCII
// without quotes; values are whatever the client sent.
type Entry []byte

// usualEntry is room for most entries.
const usualEntry = 640

// Begin begins an entry of the request that ended at now, in e's memory.
func (e Entry) Begin(now time.Time) Entry {
	e = append(slices.Grow(e[:0], usualEntry), `{"time":"`...)
	e = now.AppendFormat(e, time.RFC3339Nano)
	return append(e, `","level":"INFO","msg":"request"`...)
}

// End ends the entry, and its line.
func (e Entry) End() Entry { return append(e, '}', '\n') }

func (e Entry) name(name string) Entry {
	e = append(e, ',', '"')
	e = append(e, name...)
	return append(e, '"', ':')
}

// maxLogged bounds what a client may write into one field.
const maxLogged = 512

// Text adds a string, of which the start is enough.
func (e Entry) Text(name, v string) Entry {
	e = append(e.name(name), '"')
	return append(e.escape(v[:min(len(v), maxLogged)]), '"')
}

// Bytes is Text with bytes, of which nothing is kept.
func (e Entry) Bytes(name string, v []byte) Entry {
	return e.Text(name, unsafe.String(unsafe.SliceData(v), len(v)))
}

// TextIfAny adds a string unless it is empty.
func (e Entry) TextIfAny(name, v string) Entry {
	if v == "" {
		return e
	}
	return e.Text(name, v)
}

// ErrorIfAny adds what an error says, unless there is none.
func (e Entry) ErrorIfAny(name string, err error) Entry {
	if err == nil {
		return e
	}
	return e.Text(name, err.Error())
}

// Int adds a number.
func (e Entry) Int(name string, v int64) Entry { return strconv.AppendInt(e.name(name), v, 10) }

// Milliseconds adds a duration in milliseconds, to the microsecond.
func (e Entry) Milliseconds(name string, d time.Duration) Entry {
	e = e.name(name)
	us := d.Microseconds()
	if us < 0 {
		e, us = append(e, '-'), -us
	}
	e = strconv.AppendInt(e, us/1000, 10)
	if us %= 1000; us == 0 {
		return e
	}
	e = append(e, '.', byte('0'+us/100))
	if us %= 100; us == 0 {
		return e
	}
	if e = append(e, byte('0'+us/10)); us%10 == 0 {
		return e
	}
	return append(e, byte('0'+us%10))
}

// Time adds a time.
func (e Entry) Time(name string, v time.Time) Entry {
	e = append(e.name(name), '"')
	return append(v.AppendFormat(e, time.RFC3339Nano), '"')
}

// AddrIfAny adds an address unless it is the zero one.
func (e Entry) AddrIfAny(name string, v netip.Addr) Entry {
	if !v.IsValid() {
		return e
	}
	e = append(e.name(name), '"')
	if v.Zone() != "" { // which may be any text
		return append(e.escape(v.String()), '"')
	}
	return append(v.AppendTo(e), '"')
}

// TrueIf adds a flag if it is set.
func (e Entry) TrueIf(name string, v bool) Entry {
	if !v {
		return e
	}
	return append(e.name(name), "true"...)
}

// escape adds a string as it stands between quotes (RFC 8259, section 7). What is
// no UTF-8 becomes U+FFFD; DEL, the controls U+0080 to U+009F and the line separators
// of Unicode are escaped, too: some readers end a line there, and some terminals obey.
func (e Entry) escape(s string) Entry {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				e = append(append(e, s[from:i]...), `\ufffd`...)
			case r <= '\u009f' || r == '\u2028' || r == '\u2029':
				e = append(append(e, s[from:i]...), `\u`...)
				e = append(e, hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			default:
				i += n
				continue
			}
			i += n
			from = i
			continue
		}
		e = append(e, s[from:i]...)
		switch c {
		case '"', '\\':
			e = append(e, '\\', c)
		case '\n':
			e = append(e, '\\', 'n')
		case '\r':
			e = append(e, '\\', 'r')
		case '\t':
			e = append(e, '\\', 't')
		default:
			e = append(e, `\u00`...)
			e = append(e, hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(e, s[from:]...)
}

const hex = "0123456789abcdef"

// Kept returns b's memory, to be used again for an entry, or nil if it is much more
// than one usually takes.
func Kept(b []byte) []byte {
	if cap(b) > 2<<10 {
		return nil
	}
	return b[:0]
}

// Logged reports whether a request is to have an entry: if it went well, that share
// of them, 0 for all and below 0 for none.
func Logged(well bool, share float64) bool {
	return !well || share == 0 || share > 0 && rand.Float64() < share
}

// Clip returns a copy of the start of s, of which as much is enough for people.
func Clip(s string) string { return strings.Clone(s[:min(len(s), maxLogged)]) }
