package engine

import "bytes"

// The phases of a connection, as its client's bytes go by.
type phase uint8

const (
	inHead phase = iota
	inBody
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailers
	inRaw // anything goes: HTTP/2, or an upgraded connection
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// A framing follows the bytes that a client sends, from head to head, and says
// how many of them can be read in one way only.
type framing struct {
	limits HeadLimits
	h2c    bool // the HTTP/2 preface is welcome

	head  Head  // memory for parsing; it points nowhere between calls
	begun bool  // a head has been read
	ended int64 // requests that went by whole
	chunks
}

// advance takes in b, which starts where the last advance stopped, and returns
// how many of its bytes may be passed on. The rest is a head, line or trailers
// still incomplete; give it again with more. After a refusal nothing more may
// be read from the client.
func (f *framing) advance(b []byte) (n int, r Reason) {
	for n < len(b) {
		took, r := f.step(b[n:])
		n += took
		if r != OK || took == 0 {
			return n, r
		}
	}
	return n, OK
}

// step takes in one head, line or stretch of data from b, which is not empty;
// none if it is incomplete.
func (f *framing) step(b []byte) (took int, r Reason) {
	switch f.phase {
	case inHead:
		return f.takeHead(b)
	case inRaw:
		return len(b), OK
	case inBody:
		took = int(min(f.left, int64(len(b))))
		if f.left -= int64(took); f.left == 0 {
			f.end()
		}
		return took, OK
	}
	if took, r = f.chunks.step(b); f.phase == inHead {
		f.end()
	}
	return took, r
}

// midHead reports whether part of a head has arrived, given how many bytes
// wait to be taken in.
func (f *framing) midHead(waiting int) bool { return f.phase == inHead && waiting > 0 }

func (f *framing) takeHead(b []byte) (int, Reason) {
	if !f.begun && len(b) >= 3 && bytes.HasPrefix([]byte(preface), b[:min(len(b), len(preface))]) {
		switch {
		case !f.h2c:
			return 0, ReasonH2
		case len(b) < len(preface):
			return 0, OK
		}
		f.phase = inRaw
		return len(preface), OK
	}
	length, next, r := ScanHead(b, f.scanned)
	if r != OK {
		return 0, r
	}
	if length == 0 {
		f.scanned = next
		if f.limits.Bytes > 0 && len(b) > f.limits.Bytes {
			return 0, ReasonTooLarge
		}
		return 0, OK
	}
	f.scanned = 0
	if r := f.head.Parse(b[:length], f.limits); r != OK {
		return 0, r
	}
	f.begun = true
	switch {
	case f.head.Chunked:
		f.chunks.begin()
	case f.head.Length > 0:
		f.phase, f.left = inBody, f.head.Length
	default:
		f.end()
	}
	return length, OK
}

// end ends a request.
func (f *framing) end() {
	f.phase = inHead
	f.ended++
}
