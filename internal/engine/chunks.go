package engine

import "bytes"

const (
	maxChunkLine  = 256     // bytes of a chunk's first line, extensions included
	maxChunkHex   = 15      // digits of a chunk's size
	maxChunkExtra = 8 << 10 // bytes of framing beyond what ordinary chunks need
	maxTrailers   = 4000    // bytes of the trailers: net/http looks no further
)

// A chunks follows a chunked body (RFC 9112, section 7.1) from its first size
// to the end of its trailers. Whatever could be read in two ways is refused.
type chunks struct {
	phase   phase // inHead when the body has ended
	scanned int   // bytes of an unfinished head or of unfinished trailers already scanned
	left    int64 // of the chunk, or of a body that has a length
	extra   int64 // framing bytes beyond what ordinary chunks need
}

// begin makes c ready for the first chunk.
func (c *chunks) begin() { *c = chunks{phase: inChunkSize} }

// step takes in one line or stretch of data from b, which is not empty; none
// if it is incomplete.
func (c *chunks) step(b []byte) (took int, r Reason) {
	switch c.phase {
	case inChunkSize:
		return c.takeLine(b)
	case inChunkData:
		took = int(min(c.left, int64(len(b))))
		if c.left -= int64(took); c.left == 0 {
			c.phase = inChunkEnd
		}
		return took, OK
	case inChunkEnd:
		if took, r = takeLineEnd(b); took > 0 {
			c.phase = inChunkSize
		}
		return took, r
	default:
		return c.takeTrailers(b)
	}
}

// takeLine reads "size [;extensions] CRLF".
func (c *chunks) takeLine(b []byte) (int, Reason) {
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
	for _, x := range line[digits : end-1] {
		if x < ' ' && x != '\t' || x >= 0x7f {
			return 0, ReasonChunkExt
		}
	}
	// Data pays for its own framing, so that small chunks are fine and a flood
	// of extensions is not.
	c.extra = max(0, c.extra+int64(end)+2-16-2*min(size, 1<<40))
	if c.extra > maxChunkExtra {
		return 0, ReasonChunkExt
	}
	if size == 0 {
		c.phase, c.scanned = inTrailers, 0
	} else {
		c.phase, c.left = inChunkData, size
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
func (c *chunks) takeTrailers(b []byte) (int, Reason) {
	if b[0] == '\r' {
		if len(b) == 1 {
			return 0, OK
		}
		if b[1] != '\n' {
			return 0, ReasonBareCR
		}
		c.phase = inHead
		return 2, OK
	}
	length, next, r := ScanHead(b, c.scanned)
	if r != OK {
		return 0, r
	}
	if length == 0 && len(b) > maxTrailers || length > maxTrailers {
		return 0, ReasonTrailers
	}
	if length == 0 {
		c.scanned = next
		return 0, OK
	}
	c.scanned = 0
	for rest := b[:length-2]; len(rest) > 0; {
		var field Field
		if field, rest, r = cutField(rest); r != OK {
			return 0, r
		}
		if framesMessage(field.Name) {
			return 0, ReasonTrailerName
		}
	}
	c.phase = inHead
	return length, OK
}

// cutField reads the first of some field lines, each of which ends with CRLF.
func cutField(b []byte) (f Field, rest []byte, r Reason) {
	end := bytes.IndexByte(b, '\r')
	if end < 0 || end+1 >= len(b) {
		return Field{}, nil, ReasonBareCR
	}
	f, r = parseField(b[:end])
	return f, b[end+2:], r
}

// A chunkDecoder reads what a chunked body holds. The zero chunkDecoder is to be
// reset.
type chunkDecoder struct {
	chunks
	trailers []Field // when done; they point into the bytes that were given last
}

// reset makes d ready for another body; it keeps its memory.
func (d *chunkDecoder) reset() {
	d.begin()
	d.trailers = d.trailers[:0]
}

// done reports whether the body has ended, trailers included.
func (d *chunkDecoder) done() bool { return d.phase == inHead }

// advance takes in b, which starts where the last advance stopped. It returns
// how many bytes it has taken, and the data that stands at the end of these; it
// may be empty. If nothing was taken and d is not done, a line is incomplete:
// give it again with more behind it. After a refusal the body can't be read on.
func (d *chunkDecoder) advance(b []byte) (data []byte, n int, r Reason) {
	for n < len(b) && d.phase != inHead {
		phase := d.phase
		took, r := d.step(b[n:])
		if r != OK {
			return nil, n, r
		}
		if took == 0 {
			break
		}
		unit := b[n : n+took]
		n += took
		switch phase {
		case inChunkData:
			return unit, n, OK
		case inTrailers:
			for rest := unit[:len(unit)-2]; len(rest) > 0; {
				var f Field
				f, rest, _ = cutField(rest) // step has read it
				d.trailers = append(d.trailers, f)
			}
		}
	}
	return nil, n, OK
}
