package engine

// An inbuf holds bytes that were read and what was made of them refers to. It is
// small until something does not fit.
type inbuf struct {
	from    *buffers
	mem     *[]byte // what buf was lent as; nil if it has grown, or there is none
	buf     []byte
	start   int // the bytes not taken in yet are buf[start:end]
	end     int
	scanned int // of these, how many belong to an unfinished head and were scanned
}

func (b *inbuf) bytes() []byte { return b.buf[b.start:b.end] }

func (b *inbuf) empty() bool { return b.start == b.end }

// space returns room for more bytes. What was taken in before is no longer
// needed when it is called.
func (b *inbuf) space() []byte {
	b.room(1)
	return b.buf[b.end:]
}

// add appends bytes.
func (b *inbuf) add(more []byte) {
	b.room(len(more))
	b.end += copy(b.buf[b.end:], more)
}

// room makes room for n bytes.
func (b *inbuf) room(n int) {
	if b.buf == nil {
		b.mem = b.from.getTiny()
		b.buf = *b.mem
	}
	if b.start == b.end {
		b.start, b.end = 0, 0
	}
	if len(b.buf)-b.end >= n {
		return
	}
	if b.start > 0 {
		b.end = copy(b.buf, b.bytes())
		b.start = 0
	}
	if need := b.end + n; need > len(b.buf) {
		var mem *[]byte
		var buf []byte
		switch {
		case need <= smallBuffer:
			mem = b.from.getSmall()
			buf = *mem
		case need <= wholeBuffer:
			mem = b.from.getWhole()
			buf = *mem
		default:
			buf = make([]byte, max(need, 2*len(b.buf)))
		}
		copy(buf, b.buf[:b.end])
		b.giveBack()
		b.mem, b.buf = mem, buf
	}
}

// tighten puts what little there is in a large buffer into a small one.
func (b *inbuf) tighten() {
	var mem *[]byte
	switch n := b.end; {
	case b.mem == nil || len(*b.mem) != wholeBuffer || n > smallBuffer:
		return
	case n <= tinyBuffer:
		mem = b.from.getTiny()
	default:
		mem = b.from.getSmall()
	}
	copy(*mem, b.buf[:b.end])
	b.giveBack()
	b.mem, b.buf = mem, *mem
}

// giveBack gives the memory back, whatever it holds.
func (b *inbuf) giveBack() {
	switch {
	case b.mem == nil:
	case len(*b.mem) == tinyBuffer:
		b.from.putTiny(b.mem)
	case len(*b.mem) == wholeBuffer:
		b.from.putWhole(b.mem)
	default:
		b.from.putSmall(b.mem)
	}
	b.mem = nil
	b.buf = nil
}

// reset empties b and gives its memory back.
func (b *inbuf) reset() {
	b.giveBack()
	b.start, b.end, b.scanned = 0, 0, 0
}
