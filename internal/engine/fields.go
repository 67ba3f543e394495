package engine

import (
	"net/http"
	"slices"
	"unsafe"
)

// A Header is the fields of a message that is about to go on. Names are given
// in canonical form, as in X-Tenant-Id, and found in whatever case they stand.
type Header interface {
	// Values returns the values of a field in their order. They are the
	// callee's: valid until the message has gone, and the slice until the next
	// call of any method.
	Values(name string) []string
	// Set gives a field one value, in place of those that it has.
	Set(name, value string)
	// SetBytes is Set with a value that it copies.
	SetBytes(name string, value []byte)
	// AddBytes adds a line behind those that there are, and copies its value.
	AddBytes(name string, value []byte)
	// Del removes a field.
	Del(name string)
	// DelFunc removes the fields for whose names del is true. It may be called
	// more than once for one name; names are as the sender has spelt them.
	DelFunc(del func(name string) bool)
}

// An Editor edits messages on their way. Its methods are called by the goroutine
// that forwards the request.
type Editor interface {
	// EditRequest edits the header that goes to the cell, last of all. At that
	// point hop-by-hop fields, Proxy and every X-Cell-* have been removed, also
	// those spelt with other bytes than "-". It is called once for each attempt.
	EditRequest(h Header)

	// InspectAnswer sees the head of the cell's final answer before anything of
	// it goes to the client, X-Cell-* included, and may swallow it: then the
	// answer's body is thrown away, nothing is written, and the Report says
	// Swallowed. It edits nothing.
	InspectAnswer(status int, h Header) (swallow bool)

	// EditAnswer edits the header that goes to the client, after the cell's
	// header has been cleaned.
	EditAnswer(status int, h Header)
}

// HTTPHeader is a Header over one of net/http.
type HTTPHeader http.Header

// Values is [Header].Values.
func (h HTTPHeader) Values(name string) []string { return h[name] }

// Set is [Header].Set.
func (h HTTPHeader) Set(name, value string) { h[name] = []string{value} }

// SetBytes is [Header].SetBytes.
func (h HTTPHeader) SetBytes(name string, value []byte) { h[name] = []string{string(value)} }

// AddBytes is [Header].AddBytes. The values that there are may be shared with
// another header, which stays as it is.
func (h HTTPHeader) AddBytes(name string, value []byte) {
	h[name] = slices.Concat(h[name], []string{string(value)})
}

// Del is [Header].Del.
func (h HTTPHeader) Del(name string) { delete(h, name) }

// DelFunc is [Header].DelFunc.
func (h HTTPHeader) DelFunc(del func(name string) bool) {
	for name := range h {
		if del(name) {
			delete(h, name)
		}
	}
}

// fields is a Header over lines of a head, which stay as they are. It keeps its
// memory when it is reset.
type fields struct {
	lines  []Field
	values []string
	copied []byte // what was set by SetBytes; earlier values may stand in what this was before
}

func (f *fields) reset() {
	f.lines, f.copied = f.lines[:0], f.copied[:0]
}

// Values is [Header].Values.
func (f *fields) Values(name string) []string {
	f.values = appendValues(f.values[:0], f.lines, name)
	return f.values
}

// Set is [Header].Set.
func (f *fields) Set(name, value string) { f.set(name, bytesOf(value)) }

// SetBytes is [Header].SetBytes.
func (f *fields) SetBytes(name string, value []byte) { f.set(name, f.keep(value)) }

// AddBytes is [Header].AddBytes.
func (f *fields) AddBytes(name string, value []byte) {
	f.lines = append(f.lines, Field{bytesOf(name), f.keep(value)})
}

func (f *fields) keep(value []byte) []byte {
	at := len(f.copied)
	f.copied = append(f.copied, value...)
	return f.copied[at:len(f.copied):len(f.copied)]
}

func (f *fields) set(name string, value []byte) {
	for i := range f.lines {
		if equalNames(f.lines[i].Name, name) {
			f.lines[i] = Field{bytesOf(name), value}
			f.del(name, i+1)
			return
		}
	}
	f.lines = append(f.lines, Field{bytesOf(name), value})
}

// Del is [Header].Del.
func (f *fields) Del(name string) { f.del(name, 0) }

func (f *fields) del(name string, from int) {
	for i := from; i < len(f.lines); i++ {
		if equalNames(f.lines[i].Name, name) {
			f.lines = slices.Delete(f.lines, i, i+1)
			i--
		}
	}
}

// DelFunc is [Header].DelFunc.
func (f *fields) DelFunc(del func(name string) bool) {
	kept := f.lines[:0]
	for _, line := range f.lines {
		if !del(stringOf(line.Name)) {
			kept = append(kept, line)
		}
	}
	f.lines = kept
}

// appendValues appends the values of the named field to dst.
func appendValues(dst []string, lines []Field, name string) []string {
	for i := range lines {
		if equalNames(lines[i].Name, name) {
			dst = append(dst, stringOf(lines[i].Value))
		}
	}
	return dst
}

// equalNames reports whether two names of fields are the same but for the case
// of their ASCII letters.
func equalNames(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && lowerByte(a[i]) != lowerByte(b[i]) {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// stringOf returns a string over the memory of b. It is valid for as long as b
// is not written to.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns the bytes of s, which nobody may write to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
