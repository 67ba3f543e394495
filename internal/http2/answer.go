package http2

import (
	"bytes"
	"errors"
	"os"
)

var errAnswer = errors.New("the answer is none of HTTP/1.1")

// Where an answer is.
type place uint8

const (
	atHead    place = iota
	atSized         // in a body that has a length
	atClose         // in one that ends with the connection
	atSize          // in the first line of a chunk
	atChunk         // in its data
	atLineEnd       // behind that
	atTail          // in the trailers
	atDone
)

// mostHead is more than any head has that a router passes on.
const mostHead = 1 << 20

// An answer makes frames of the bytes of HTTP/1.1. It belongs to who writes, who holds
// the connection's mutex where it does so.
type answer struct {
	s     *Stream
	o     *output
	state place
	left  int64
	held  []byte // the beginning of a head, of a line or of trailers
	frame int    // where in the output the frame begins that may end the stream; -1: nowhere
	err   error
}

// write takes in more of the answer.
func (a *answer) write(p []byte) (n int, err error) {
	c := a.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil {
		return 0, a.err
	}
	a.frame = -1
	a.err = a.waitLocked()
	for n < len(p) && a.err == nil && a.state != atDone {
		n += a.take(p[n:])
	}
	if err := c.commitLocked(); a.err == nil {
		a.err = err
	}
	if a.err != nil {
		return n, a.err
	}
	return len(p), nil
}

// waitLocked waits until there is room for frames.
func (a *answer) waitLocked() error {
	s, c := a.s, a.s.c
	for {
		switch {
		case s.err != nil:
			return s.err
		case s.out.up:
			return os.ErrDeadlineExceeded
		case a.o.err != nil:
			return a.o.err
		case !a.o.full():
			c.appendingLocked()
			return nil
		}
		a.waitOnceLocked()
	}
}

func (a *answer) waitOnceLocked() {
	s := a.s
	a.frame = -1
	s.waits = true
	a.o.waiting++
	s.cond.Wait()
	a.o.waiting--
	s.waits = false
}

// take takes in what p begins with, and returns how much that is.
func (a *answer) take(p []byte) (n int) {
	switch a.state {
	case atHead, atTail:
		return a.takeBlock(p)
	case atSized, atChunk:
		n = a.data(p[:min(int64(len(p)), a.left)])
		if a.left -= int64(n); a.left == 0 {
			if a.state == atChunk {
				a.state = atLineEnd
				a.left = 2
			} else {
				a.err = a.done()
			}
		}
		return n
	case atClose:
		return a.data(p)
	case atLineEnd:
		n = int(min(int64(len(p)), a.left))
		if a.left -= int64(n); a.left == 0 {
			a.state = atSize
		}
		return n
	default: // atSize
		return a.takeSize(p)
	}
}

// takeSize takes in the first line of a chunk.
func (a *answer) takeSize(p []byte) (n int) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		if a.held = append(a.held, p...); len(a.held) > 256 {
			a.err = errAnswer
		}
		return len(p)
	}
	line := p[:end]
	if len(a.held) > 0 {
		line = append(a.held, line...)
		a.held = a.held[:0]
	}
	size := int64(0)
	for i, c := range line {
		d := hexValue(c)
		if d < 0 {
			if i == 0 || c != '\r' && c != ';' {
				a.err = errAnswer
			}
			break
		}
		if size = size<<4 | int64(d); size > 1<<50 {
			a.err = errAnswer
			break
		}
	}
	if a.left = size; size > 0 {
		a.state = atChunk
	} else {
		a.state = atTail
	}
	return end + 1
}

func hexValue(c byte) int {
	switch {
	case c-'0' < 10:
		return int(c - '0')
	case c-'a' < 6:
		return int(c-'a') + 10
	case c-'A' < 6:
		return int(c-'A') + 10
	}
	return -1
}

// takeBlock takes in lines up to an empty one: a head or trailers.
func (a *answer) takeBlock(p []byte) (n int) {
	b, before := p, len(a.held)
	if before > 0 {
		a.held = append(a.held, p...)
		b = a.held
	}
	end := 0
	if a.state == atTail && len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
		end = 2 // there are none
	} else if at := bytes.Index(b[max(0, before-3):], []byte("\r\n\r\n")); at >= 0 {
		end = max(0, before-3) + at + 4
	} else {
		if before == 0 {
			a.held = append(a.held, p...)
		}
		if len(a.held) > mostHead {
			a.err = errAnswer
		}
		return len(p)
	}
	if a.state == atHead {
		a.head(b[:end-2])
	} else {
		a.trailers(b[:end-2])
	}
	a.held = a.held[:0]
	return end - before
}

// cutLine returns the first line of b without its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return nil, nil
	}
	return b[:i-1], b[i+1:]
}

// cutField reads a line.
func cutField(line []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, false
	}
	return line[:i], bytes.Trim(line[i+1:], " \t"), true
}

// head makes a frame of a head, which is given without the empty line.
func (a *answer) head(b []byte) {
	line, rest := cutLine(b)
	if len(line) < len("HTTP/1.1 200") || line[8] != ' ' {
		a.err = errAnswer
		return
	}
	digits := line[9:12]
	status := int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0')
	if status < 100 || status > 999 || status == 101 {
		a.err = errAnswer
		return
	}
	at := a.open(frameHeaders)
	defer a.undo(at)
	a.o.buf = append(a.o.buf, 0x20) // the table of fields is empty
	a.o.buf = appendStatus(a.o.buf, digits)
	length, chunked := int64(-1), false
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		name, value, ok := cutField(line)
		if !ok {
			a.err = errAnswer
			return
		}
		switch kindOf(name) {
		case isOfConnection:
			continue
		case isCoding:
			chunked = true
			continue
		case isLength:
			if status == 204 || status == 304 {
				continue // some clients would wait for what it announces
			}
			length = 0
			for _, c := range value {
				if c-'0' > 9 || length > 1<<58 {
					a.err = errAnswer
					return
				}
				length = length*10 + int64(c-'0')
			}
		}
		a.o.buf = appendField(a.o.buf, name, value)
	}
	a.close(at)
	switch {
	case status < 200:
		a.frame = -1
	case a.s.isHead || status == 204 || status == 304 || length == 0 && !chunked:
		a.err = a.done()
	case chunked:
		a.state = atSize
	case length > 0:
		a.state, a.left = atSized, length
	default:
		a.state = atClose
	}
}

// What a field is to HTTP/2.
const (
	isOther = iota
	isOfConnection
	isCoding
	isLength
)

func kindOf(name []byte) int {
	switch len(name) {
	case len("connection"):
		if fold(name, "connection") || fold(name, "keep-alive") {
			return isOfConnection
		}
	case len("upgrade"):
		if fold(name, "upgrade") {
			return isOfConnection
		}
	case len("proxy-connection"):
		if fold(name, "proxy-connection") {
			return isOfConnection
		}
	case len("transfer-encoding"):
		if fold(name, "transfer-encoding") {
			return isCoding
		}
	case len("content-length"):
		if fold(name, "content-length") {
			return isLength
		}
	}
	return isOther
}

// fold reports whether a name is s, which has no capital letters.
func fold(name []byte, s string) bool {
	for i := range len(s) {
		if lower(name[i]) != s[i] {
			return false
		}
	}
	return true
}

// trailers makes the last frame of trailers.
func (a *answer) trailers(b []byte) {
	if len(b) == 0 {
		a.err = a.done()
		return
	}
	at := a.open(frameHeaders)
	defer a.undo(at)
	a.o.buf = append(a.o.buf, 0x20)
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, value, ok := cutField(line)
		if !ok {
			a.err = errAnswer
			return
		}
		a.o.buf = appendField(a.o.buf, name, value)
	}
	a.close(at)
	a.err = a.done()
}

// open begins a frame.
func (a *answer) open(t uint8) (at int) {
	at = len(a.o.buf)
	a.o.buf = appendFrameHeader(a.o.buf, 0, t, 0, a.s.id)
	a.frame = at
	return at
}

// undo takes a frame back that can't be made.
func (a *answer) undo(at int) {
	if a.err != nil {
		a.o.buf = a.o.buf[:at]
	}
}

// close ends a frame of fields, and makes more of it if it is too long for one.
func (a *answer) close(at int) {
	n := len(a.o.buf) - at - frameHeader
	if n <= maxFrame {
		putLength(a.o.buf[at:], n)
		a.o.buf[at+4] |= flagEndHeaders
		return
	}
	rest := bytes.Clone(a.o.buf[at+frameHeader+maxFrame:])
	putLength(a.o.buf[at:], maxFrame)
	a.o.buf = a.o.buf[:at+frameHeader+maxFrame]
	for len(rest) > 0 {
		part := rest[:min(len(rest), maxFrame)]
		rest = rest[len(part):]
		flags := uint8(0)
		if len(rest) == 0 {
			flags = flagEndHeaders
		}
		a.o.buf = appendFrameHeader(a.o.buf, len(part), frameContinuation, flags, a.s.id)
		a.o.buf = append(a.o.buf, part...)
	}
}

func putLength(frame []byte, n int) {
	frame[0], frame[1], frame[2] = byte(n>>16), byte(n>>8), byte(n)
}

// data makes frames of a part of the body, and returns how much of it that was.
func (a *answer) data(p []byte) (made int) {
	for made < len(p) {
		n, err := a.reserve(min(len(p)-made, maxFrame))
		if err != nil {
			a.err = err
			return made
		}
		a.frame = len(a.o.buf)
		a.o.buf = appendFrameHeader(a.o.buf, n, frameData, 0, a.s.id)
		a.o.buf = append(a.o.buf, p[made:made+n]...)
		made += n
		a.s.c.told.Store(true)
	}
	return made
}

// reserve returns how much of n bytes may be sent, as soon as that is any.
func (a *answer) reserve(n int) (int, error) {
	s, c := a.s, a.s.c
	for {
		if len(a.o.buf) >= gathered {
			a.frame = -1
			if err := c.commitLocked(); err != nil {
				return 0, err
			}
		}
		if err := a.waitLocked(); err != nil {
			return 0, err
		}
		if may := min(int64(n), s.window, c.window); may > 0 {
			s.window -= may
			c.window -= may
			return int(may), nil
		}
		a.frame = -1
		if err := c.commitLocked(); err != nil {
			return 0, err
		}
		if min(s.window, c.window) <= 0 && s.err == nil && !s.out.up {
			a.waitOnceLocked()
		}
	}
}

// done ends the stream with the last frame, or one more.
func (a *answer) done() error {
	a.state = atDone
	a.s.settleLocked()
	if a.frame >= 0 {
		a.o.buf[a.frame+4] |= flagEndStream
		return nil
	}
	a.o.buf = appendFrameHeader(a.o.buf, 0, frameData, flagEndStream, a.s.id)
	return nil
}

// endLocked ends an answer that ends with the connection.
func (a *answer) endLocked() {
	if a.state != atClose || a.s.broken || a.err != nil {
		return
	}
	a.frame = -1
	if a.err = a.waitLocked(); a.err == nil {
		a.err = a.done()
	}
}
