package engine

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cellway/cellway"
)

// An answerBody is the body of a cell's answer on its way to the client.
type answerBody struct {
	c    *Call
	left int64 // of one that has a length
	dec  chunkDecoder
	mode bodyMode

	mem  *[]byte // where it is read to
	n    int     // bytes in mem that were not taken in
	out  []byte
	done bool
	werr error  // of the client
	bad  Reason // of the cell
}

// A bodyMode says how a body comes and how it goes.
type bodyMode uint8

const (
	modeNone    bodyMode = iota
	modeSized            // as it comes
	modeToClose          // as it comes, until the connections close
	modeEnchunk          // until the cell's connection closes; in chunks
	modeRechunk          // in chunks, both
	modeDechunk          // in chunks; until the client's connection closes
)

// The room around bytes that become a chunk.
const (
	chunkBefore = 8 // a size and a line's end
	chunkAfter  = 2
)

// begin takes in the answer's head.
func (b *answerBody) begin(h *AnswerHead) {
	b.n, b.left, b.done, b.werr, b.bad = 0, 0, false, nil, OK
	b.out = b.out[:0]
	old := b.c.head.Minor == 0
	switch {
	case h.NoBody || h.Length == 0:
		b.mode, b.done = modeNone, true
	case h.Length > 0:
		b.mode, b.left = modeSized, h.Length
	case h.Chunked && old:
		b.mode = modeDechunk
		b.dec.reset()
	case h.Chunked:
		b.mode = modeRechunk
		b.dec.reset()
	case old:
		b.mode = modeToClose
	default:
		b.mode = modeEnchunk
	}
}

// take deals with an answer whose head is there.
func (k *Call) take(l *link) {
	h := &k.reply.head
	if h.Status == 101 {
		early := k.body.unread()
		k.body.halt(l) // from here on both connections are the tunnel's alone
		if !k.switches(h) || early || k.body.spoilt() {
			k.detach(l)
			l.conn.Close()
			k.fail(cellway.CellProtocol, 502, errSwitch)
			return
		}
		k.tunnel(l)
		return
	}
	if k.inspect() {
		k.swallow(l)
		return
	}
	k.body.hush()
	if cause := k.cause(); cause != nil && !k.arrived() {
		k.body.halt(l)
		k.release(l)
		k.failCause(cause) // it would be broken off behind its head
		return
	}
	if k.sendStart() {
		k.sendRest(l, nil)
	}
	k.body.halt(l)
	k.release(l)
}

// arrived reports whether the answer, whose head is there, is there to its end for sure.
func (k *Call) arrived() bool {
	b := &k.answer
	return b.mode == modeNone || b.mode == modeSized && int64(len(k.reply.rest())) >= b.left
}

// inspect takes in the head of a final answer, and reports whether the answer is
// to be swallowed.
func (k *Call) inspect() bool {
	h := &k.reply.head
	k.answer.begin(h)
	if e := k.o.Edit; e != nil {
		k.fields.lines = append(k.fields.lines[:0], h.Fields...)
		k.rep.Swallowed = e.InspectAnswer(h.Status, &k.fields)
	}
	return k.rep.Swallowed
}

// release takes the answered call off its link, and keeps that for another one
// if nothing speaks against it.
func (k *Call) release(l *link) {
	r, b := &k.reply, &k.answer
	whole := k.detach(l) && b.done && b.werr == nil && b.bad == OK && b.n == 0 &&
		!r.head.Close && !k.body.spoilt() && len(l.left) == 0
	now := k.Now()
	if b.done && b.n > 0 {
		l.e.strayed(now, now)
	}
	if !whole {
		l.conn.Close()
		return
	}
	l.keep(now)
}

// sendStart sends the client the answer's head, with what there is of its body.
// It reports whether that went well.
func (k *Call) sendStart() bool {
	h, r := &k.reply.head, &k.reply
	k.filterAnswer(h.Fields)
	if e := k.o.Edit; e != nil {
		e.EditAnswer(h.Status, &k.fields)
	}
	k.takeConnection()
	k.answered, k.rep.HeadSent = true, true
	if k.body.unread() {
		k.closing = true // nobody can say what the rest would be taken for
	}
	k.out = k.appendAnswer(k.out[:0], h)
	if err := k.sendFirst(r); err != nil {
		k.failWrite(err)
		return false
	}
	return true
}

// sendRest sends what follows. err is what a read has met already, or nil.
func (k *Call) sendRest(l *link, err error) {
	b := &k.answer
	for ; !b.done; err = nil {
		if b.bad == OK && b.werr == nil && err == nil {
			err = l.run(b)
		}
		switch {
		case b.werr != nil:
			k.failWrite(b.werr)
			return
		case b.bad != OK:
			k.failRead(fmt.Errorf("%s: %w", b.bad.Detail(), errMalformed))
			return
		case err == io.EOF && (b.mode == modeToClose || b.mode == modeEnchunk):
			b.done = true
			if b.mode == modeEnchunk {
				k.out = append(k.out[:0], "0\r\n\r\n"...)
				k.last, k.lastAt = k.out, atWrite
			}
		case err != nil:
			k.failRead(err)
			return
		}
	}
}

// appendAnswer appends the head that the client gets.
func (k *Call) appendAnswer(dst []byte, h *AnswerHead) []byte {
	b := &k.answer
	if b.mode == modeToClose || b.mode == modeDechunk {
		k.closing = true
	}
	dst = k.appendStatus(dst, h.Status, h.Phrase)
	dst = appendLines(dst, k.fields.lines)
	dst = k.appendDate(dst)
	switch {
	case b.mode == modeRechunk:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
		dst = appendTrailerNames(dst, h.Fields, k.isTrailer)
	case b.mode == modeEnchunk:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case h.Length >= 0 && h.Status >= 200 && h.Status != 204:
		dst = appendLength(dst, h.Length)
	}
	if h.Status == 426 && k.head.Minor == 1 { // it must say to what
		n := len(dst)
		for i := range h.Fields {
			if foldEqual(h.Fields[i].Name, "upgrade") {
				dst = appendLine(dst, "Upgrade", h.Fields[i].Value)
			}
		}
		if len(dst) > n && !k.head.Close && !k.closing {
			dst = append(dst, "Connection: Upgrade\r\n"...)
		}
	}
	return k.appendConnection(dst)
}

// isTrailer reports whether a trailer of the cell's answer, whose name is in
// canonical form, may go on.
func (k *Call) isTrailer(name string) bool {
	return !isHopByHop(name) && !framesMessage([]byte(name)) && (k.o.KeepCellHeaders || !isCellField(name))
}

// sendFirst sends the head that the call's out has, with what there is of the
// body, in one write.
func (k *Call) sendFirst(r *reply) error {
	b := &k.answer
	rest := r.rest()
	head := len(k.out)
	switch b.mode {
	case modeNone:
		b.n = len(rest) // nobody asked for that
		return k.sendOrKeep(k.out, true)
	case modeSized, modeToClose:
		if b.mode == modeSized {
			if int64(len(rest)) > b.left {
				b.n = len(rest) - int(b.left)
				rest = rest[:b.left]
			}
			b.left -= int64(len(rest))
			b.done = b.left == 0
		}
		// Right before the body there is room: the cell's head is not needed
		// any more.
		body := r.at + r.size
		if head <= body && r.buf != nil {
			copy(r.buf[body-head:body], k.out)
			k.rep.BytesOut += int64(len(rest))
			return k.sendOrKeep(r.buf[body-head:body+len(rest)], b.done)
		}
		k.out = append(k.out, rest...)
	default:
		b.out = b.out[:0]
		took := b.feed(rest)
		if left := rest[took:]; len(left) > 0 && b.bad == OK {
			if b.done {
				b.n = len(left)
			} else {
				b.keep(left)
			}
		}
		k.out = append(k.out, b.out...)
	}
	if b.mode == modeSized || b.mode == modeToClose {
		k.rep.BytesOut += int64(len(rest))
	}
	return k.sendOrKeep(k.out, b.done && b.bad == OK)
}

// sendOrKeep sends bytes to the client, or keeps them if they are the last.
func (k *Call) sendOrKeep(m []byte, last bool) error {
	if last {
		k.last, k.lastAt = m, atWrite
		return nil
	}
	_, err := k.write(m, atWrite)
	return err
}

// feed frames what p holds of the body into b.out, and returns how much of p
// that was.
func (b *answerBody) feed(p []byte) (n int) {
	k := b.c
	switch b.mode {
	case modeEnchunk:
		if len(p) > 0 {
			b.out = appendChunk(b.out, p)
			k.rep.BytesOut += int64(len(p))
		}
		return len(p)
	case modeRechunk, modeDechunk:
	default:
		b.out = append(b.out, p...)
		return len(p)
	}
	for n < len(p) && !b.dec.done() {
		data, took, r := b.dec.advance(p[n:])
		n += took
		if r == OK && len(b.dec.trailers) > maxAnswerFields {
			r = ReasonTrailers
		}
		if r != OK {
			b.bad = r
			return n
		}
		if took == 0 {
			break
		}
		if len(data) == 0 {
			continue
		}
		k.rep.BytesOut += int64(len(data))
		if b.mode == modeRechunk {
			b.out = appendChunk(b.out, data)
		} else {
			b.out = append(b.out, data...)
		}
	}
	if b.dec.done() {
		b.done = true
		if b.mode == modeRechunk {
			b.out = append(b.out, "0\r\n"...)
			for _, f := range b.dec.trailers {
				if k.isTrailer(string(f.Name)) && !isHopField(f.Name) {
					b.out = appendLine(b.out, stringOf(f.Name), f.Value)
				}
			}
			b.out = append(b.out, "\r\n"...)
		}
	}
	return n
}

// keep keeps the start of a line until the rest of it comes.
func (b *answerBody) keep(p []byte) {
	if b.mem == nil {
		b.mem = b.c.pool.all.buffers.get()
	}
	b.n = copy(*b.mem, p)
}

func (b *answerBody) space() []byte {
	if b.mem == nil {
		b.c.reply.drop()
		b.mem = b.c.pool.all.buffers.get()
	}
	m := *b.mem
	switch b.mode {
	case modeSized:
		if int64(len(m)) > b.left+1 { // one more, to see whether there is more than there should be
			m = m[:b.left+1]
		}
		return m
	case modeEnchunk:
		return m[chunkBefore : len(m)-chunkAfter]
	}
	return m[b.n:]
}

func (b *answerBody) took(n int) (more bool) {
	k := b.c
	k.c.move()
	m := *b.mem
	switch b.mode {
	case modeSized, modeToClose:
		if b.mode == modeSized && int64(n) > b.left {
			b.n = n - int(b.left)
			n = int(b.left)
		}
		m = m[:n]
		k.rep.BytesOut += int64(n)
		if b.mode == modeSized {
			b.left -= int64(n)
			b.done = b.left == 0
		}
	case modeEnchunk:
		k.rep.BytesOut += int64(n)
		m = chunkInPlace(m, n)
	default:
		b.out = b.out[:0]
		in := m[:b.n+n]
		took := b.feed(in)
		if b.bad != OK {
			return false
		}
		b.n = copy(*b.mem, in[took:])
		if m = b.out; len(m) == 0 {
			return !b.done
		}
	}
	b.werr = k.sendOrKeep(m, b.done)
	return b.werr == nil && !b.done
}

func (b *answerBody) quiet() {
	if b.n == 0 && !b.done {
		b.giveBack()
	}
}

func (b *answerBody) giveBack() {
	if b.mem != nil {
		b.c.pool.all.buffers.put(b.mem)
		b.mem = nil
	}
}

// appendChunk appends data as a chunk.
func appendChunk(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, data...)
	return append(dst, "\r\n"...)
}

// chunkInPlace makes a chunk of the n bytes in m behind room for a size.
func chunkInPlace(m []byte, n int) []byte {
	const digits = "0123456789abcdef"
	end := chunkBefore + n
	m[end], m[end+1] = '\r', '\n'
	i := chunkBefore - 2
	m[i], m[i+1] = '\r', '\n'
	for size := n; size > 0; size >>= 4 {
		i--
		m[i] = digits[size&15]
	}
	return m[i : end+chunkAfter]
}

// failWrite sorts the error of a write to the client.
func (k *Call) failWrite(err error) {
	k.broken = true
	if k.failCause(k.cause()) {
		return
	}
	k.fail(ClientGone, StatusClientGone, fmt.Errorf("write the answer: %w", err))
}

// failRead sorts the error of an answer that breaks off.
func (k *Call) failRead(err error) {
	k.broken = true
	if cause := k.cause(); cause != nil && !errors.Is(cause, errBody) && k.failCause(cause) {
		return
	}
	if k.cause() == errBody {
		k.failBody()
		return
	}
	k.fail(cellway.CellProtocol, 502, fmt.Errorf("read the answer: %w", err))
	switch k.answer.mode {
	case modeSized, modeEnchunk, modeRechunk:
		k.short = true
	}
}

// passInterim sends a 1xx answer on. The 100 goes by itself when the body is
// asked for.
func (k *Call) passInterim(e *endpoint) error {
	k.pool.answered(e)
	k.c.move()
	h := &k.reply.head
	if h.Status == 100 {
		k.body.ask()
		return nil
	}
	if k.interims++; k.interims > maxInterim {
		return errInterim
	}
	if k.head.Minor == 0 {
		return nil
	}
	k.filterAnswer(h.Fields)
	k.out = k.appendStatus(k.out[:0], h.Status, h.Phrase)
	k.out = appendLines(k.out, k.fields.lines)
	k.out = append(k.out, "\r\n"...)
	k.body.interim.Lock()
	defer k.body.interim.Unlock()
	if _, err := k.write(k.out, atWrite); err != nil {
		k.c.cut(errClientReset) // unless it was cut, which is why
		return err
	}
	k.c.enter(atCell, k.c.srv.now())
	return nil
}
