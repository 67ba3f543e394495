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

const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	maxChunkLine  = 256     // bytes of a chunk's first line, extensions included
	maxChunkHex   = 15      // digits of a chunk's size
	maxChunkExtra = 8 << 10 // bytes of framing beyond what ordinary chunks need
	maxTrailers   = 4000    // bytes of the trailers: net/http looks no further
)

// A framing follows the bytes that a client sends, from head to head, and says
// how many of them can be read in one way only.
type framing struct {
	limits HeadLimits
	h2c    bool // the HTTP/2 preface is welcome

	head    Head // memory for parsing; it points nowhere between calls
	phase   phase
	begun   bool  // a head has been read
	scanned int   // bytes of the unfinished head or trailers already scanned
	ended   int64 // requests that went by whole
	left    int64 // of the body or chunk
	extra   int64 // framing bytes beyond what ordinary chunks need
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
	case inBody, inChunkData:
		took = int(min(f.left, int64(len(b))))
		if f.left -= int64(took); f.left == 0 {
			if f.phase == inBody {
				f.end()
			} else {
				f.phase = inChunkEnd
			}
		}
		return took, OK
	case inChunkSize:
		return f.takeChunkLine(b)
	case inChunkEnd:
		if took, r = takeLineEnd(b); took > 0 {
			f.phase = inChunkSize
		}
		return took, r
	case inTrailers:
		return f.takeTrailers(b)
	}
	return len(b), OK
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
		f.phase, f.extra = inChunkSize, 0
	case f.head.Length > 0:
		f.phase, f.left = inBody, f.head.Length
	default:
		f.end()
	}
	return length, OK
}

// takeChunkLine reads "size [;extensions] CRLF".
func (f *framing) takeChunkLine(b []byte) (int, Reason) {
	end := bytes.IndexByte(b[:min(len(b), maxChunkLine)], '\n')
	line := b
	if end >= 0 {
		line = b[:end]
	}
	digits, size := 0, int64(0)
	for digits < len(line) && hexValue(line[digits]) >= 0 {
		if digits == maxChunkHex {
			return 0, ReasonChunkSize
		}
		size = size<<4 | int64(hexValue(line[digits]))
		digits++
	}
	switch {
	case end < 0 && len(b) >= maxChunkLine:
		return 0, ReasonChunkExt
	case digits == len(line) && end < 0:
		return 0, OK
	case digits == len(line):
		return 0, ReasonBareLF
	case digits == 0:
		return 0, ReasonChunkSize
	case line[digits] != ';' && line[digits] != '\r':
		return 0, ReasonChunkSize
	case end < 0:
		return 0, OK
	case line[end-1] != '\r':
		return 0, ReasonBareLF
	}
	for _, c := range line[digits : end-1] {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return 0, ReasonChunkExt
		}
	}
	// Data pays for its own framing, so that small chunks are fine and a flood
	// of extensions is not.
	f.extra = max(0, f.extra+int64(end)+2-16-2*min(size, 1<<40))
	if f.extra > maxChunkExtra {
		return 0, ReasonChunkExt
	}
	if size == 0 {
		f.phase, f.scanned = inTrailers, 0
	} else {
		f.phase, f.left = inChunkData, size
	}
	return end + 1, OK
}

func takeLineEnd(b []byte) (int, Reason) {
	if b[0] != '\r' || len(b) > 1 && b[1] != '\n' {
		return 0, ReasonChunkEnd
	}
	if len(b) == 1 {
		return 0, OK
	}
	return 2, OK
}

// takeTrailers reads the fields after the last chunk, with the empty line.
func (f *framing) takeTrailers(b []byte) (int, Reason) {
	if b[0] == '\r' {
		if len(b) == 1 {
			return 0, OK
		}
		if b[1] != '\n' {
			return 0, ReasonBareCR
		}
		f.end()
		return 2, OK
	}
	length, next, r := ScanHead(b, f.scanned)
	if r != OK {
		return 0, r
	}
	if length == 0 && len(b) > maxTrailers || length > maxTrailers {
		return 0, ReasonTrailers
	}
	if length == 0 {
		f.scanned = next
		return 0, OK
	}
	f.scanned = 0
	for rest := b[:length-2]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\r')
		field, r := parseField(rest[:end])
		if r != OK {
			return 0, r
		}
		if framesMessage(field.Name) {
			return 0, ReasonTrailerName
		}
		rest = rest[end+2:]
	}
	f.end()
	return length, OK
}

// end ends a request.
func (f *framing) end() {
	f.phase = inHead
	f.ended++
}
