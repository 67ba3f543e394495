package engine

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

type bodyKind uint8

const (
	bodyNone     bodyKind = iota
	bodyBuffered          // all of it came with the head
	bodyStreamed
)

// lastWrite is how long a cell that has answered may take for the end of the
// request's body.
const lastWrite = 20 * time.Millisecond

// A body is the body of a call's request on its way to the cell. One that came
// with the head is sent with the head. Any other is read by a goroutine that
// lives while an attempt does, so that the cell may answer before it has all.
type body struct {
	c    *Call
	kind bodyKind
	sent atomic.Int64 // bytes of it that were read to be sent

	// These belong to whoever reads it: the goroutine, while there is one.
	at      int   // what came with the head and is not taken in yet is the call's in.buf[at:end]
	left    int64 // of a body that has a length
	dec     chunkDecoder
	kept    []byte  // all that was taken in, unless lost
	keptMem *[]byte // what kept was lent as; nil if it is its own
	limit   int     // of kept
	lost    bool    // something was taken in that is not kept
	out     []byte  // taken in and to be sent
	tail    []byte  // the last chunk and the trailers, once they are known
	mem     *[]byte
	n       int    // bytes in mem
	over    []byte // what came behind the body

	direct bool // what is taken in is sent without being framed
	to     *link
	err    error // what is wrong with it

	asked   bool        // the client needs no 100 any more
	begun   bool        // something was read, or may have been
	taken   atomic.Bool // all of it was taken in
	ended   atomic.Bool // and sent
	cut     bool        // it was ended before, so that its link is of no use any more
	settled atomic.Bool // it will not be sent again
	stop    atomic.Bool
	proceed chan struct{} // closed when the cell asks for the body
	quit    chan struct{} // closed when it is no longer wanted
	done    chan struct{} // closed when the goroutine has ended; nil: there is none

	interim sync.Mutex // held while an interim answer is written
	silent  bool       // the final answer has begun
}

// begin takes in the call's head.
func (b *body) begin() {
	k := b.c
	h := &k.head
	b.sent.Store(0)
	b.silent = false
	b.kind = bodyNone
	if h.Length <= 0 && !h.Chunked {
		return
	}
	b.at = k.in.start + k.size
	if h.Length > 0 && int64(k.in.end-b.at) >= h.Length {
		b.kind = bodyBuffered
		return
	}
	b.kind, b.left, b.limit = bodyStreamed, h.Length, 0
	b.dec.reset()
	b.kept, b.out, b.tail, b.over = b.kept[:0], b.out[:0], b.tail[:0], nil
	b.cut = false
	b.n, b.lost, b.begun, b.asked, b.err = 0, false, false, false, nil
	b.taken.Store(false)
	b.ended.Store(false)
	b.settled.Store(false)
}

// KeepBody keeps up to limit bytes of the request's body while it streams, so
// that it can be sent once more; if limit is zero, [MaxReplay]. One whose
// declared length is above it is not kept at all.
func (k *Call) KeepBody(limit int) {
	if limit = or(limit, MaxReplay); k.head.Length <= int64(limit) {
		k.body.limit = limit
	}
}

// Rewind reports whether the next Forward can send the body from its start.
func (k *Call) Rewind() bool { return k.body.rewind() }

func (b *body) rewind() bool { return b.kind != bodyStreamed || !b.lost && b.err == nil }

// unread reports whether some of the body was not read, so that what comes next
// from the client is no head. A cell may answer a moment before it is known that
// it has got all.
func (b *body) unread() bool { return b.kind == bodyStreamed && !b.taken.Load() }

// spoilt reports whether a link must not be used again because of the body that
// was sent over it.
func (b *body) spoilt() bool { return b.kind == bodyStreamed && (b.cut || !b.ended.Load()) }

// buffered returns a body that came with the head. It is sent now.
func (b *body) buffered() []byte {
	if b.kind != bodyBuffered {
		return nil
	}
	b.sent.Store(b.c.head.Length)
	return b.c.in.buf[b.at : b.at+int(b.c.head.Length)]
}

// end takes the request out of the call's bytes. It returns true if some of it
// is still to come.
func (b *body) end() (rest bool) {
	in := &b.c.in
	switch b.kind {
	case bodyNone:
		in.start += b.c.size
	case bodyBuffered:
		in.start = b.at + int(b.c.head.Length)
	default:
		b.giveBack()
		b.dropKept()
		if !b.taken.Load() {
			return true
		}
		in.start = b.at
		if len(b.over) > 0 {
			in.start, in.end = 0, 0
			in.add(b.over)
		}
		b.over = nil
		if cap(b.out) > largeBuffer {
			b.out = nil
		}
	}
	return false
}

// behind returns what came behind the request, all of which was taken in.
func (b *body) behind() []byte {
	in := &b.c.in
	switch {
	case b.kind == bodyNone:
		return in.buf[in.start+b.c.size : in.end]
	case b.kind == bodyBuffered:
		return in.buf[b.at+int(b.c.head.Length) : in.end]
	case len(b.over) > 0:
		return b.over
	}
	return in.buf[b.at:in.end]
}

// send sends the head that the call's out has and what there is of the body,
// sees to it that the rest follows, and reads the answer.
func (b *body) send(l *link) (nothing bool, err error) {
	k := b.c
	if l.used {
		if found := l.flow.look(); found != peekNothing {
			l.stray = found == peekBytes && l.raw != nil // else it may be TLS's own
			return true, errStale
		}
	}
	in := &k.in
	wait := k.head.Expect && !b.asked && !b.begun && b.at == in.end
	b.direct = false
	b.out = append(b.out[:0], k.out...)
	b.frame(b.kept)
	if !wait && !b.ended.Load() {
		b.begun = true
		b.at += b.take(in.buf[b.at:in.end])
		if b.err != nil {
			k.c.cut(errBody)
			return false, b.err
		}
	}
	if b.finished() {
		b.frameEnd()
	}
	n, err := l.conn.Write(b.out)
	if err != nil && n == 0 {
		return true, err
	}
	if b.finished() {
		b.taken.Store(true)
		b.ended.Store(true)
	} else {
		b.start(l, wait)
	}
	// The cell may have answered early and closed: its answer is what counts.
	return false, l.run(&k.reply)
}

// finished reports whether all of the body was taken in.
func (b *body) finished() bool {
	if b.c.head.Chunked {
		return b.dec.done()
	}
	return b.left == 0
}

// take takes in what p holds of the body: it is kept, and framed for the cell.
// It returns how much of p that was.
func (b *body) take(p []byte) (n int) {
	if !b.c.head.Chunked {
		n = int(min(int64(len(p)), b.left))
		b.left -= int64(n)
		b.add(p[:n])
		return n
	}
	for n < len(p) && b.err == nil && !b.dec.done() {
		data, took, r := b.dec.advance(p[n:])
		n += took
		if r != OK {
			b.err = &Refusal{r}
			return n
		}
		if took == 0 {
			break
		}
		b.add(data)
	}
	return n
}

// add takes in data of the body.
func (b *body) add(data []byte) {
	if len(data) == 0 {
		return
	}
	total := b.sent.Add(int64(len(data)))
	if most := b.c.o.MaxBody; most > 0 && total > most {
		b.err = errBodyTooLarge
		return
	}
	switch {
	case b.lost:
	case b.settled.Load() || len(b.kept)+len(data) > b.limit:
		b.lost = true
		b.dropKept()
	default:
		b.keep(data)
	}
	b.frame(data)
}

// keep keeps data that was taken in. Much of it goes to memory that is lent.
func (b *body) keep(data []byte) {
	if need := len(b.kept) + len(data); need > cap(b.kept) && need > smallBuffer && b.keptMem == nil && b.limit <= MaxReplay {
		b.keptMem = b.c.c.srv.pools.getReplay()
		b.kept = append((*b.keptMem)[:0], b.kept...)
	}
	b.kept = append(b.kept, data...)
}

// dropKept forgets what was kept.
func (b *body) dropKept() {
	if b.keptMem != nil {
		b.c.c.srv.pools.putReplay(b.keptMem)
		b.keptMem, b.kept = nil, nil
	}
	if b.kept = b.kept[:0]; cap(b.kept) > 2*smallBuffer {
		b.kept = nil
	}
}

// frame appends data to what is to be sent.
func (b *body) frame(data []byte) {
	switch {
	case len(data) == 0 || b.direct:
	case b.c.head.Chunked:
		b.out = appendChunk(b.out, data)
	default:
		b.out = append(b.out, data...)
	}
}

// frameEnd appends the end of the body, with the trailers that may go on.
func (b *body) frameEnd() {
	if !b.c.head.Chunked {
		return
	}
	if len(b.tail) == 0 { // else it is sent once more
		b.tail = append(b.tail, "0\r\n"...)
		for _, f := range b.dec.trailers {
			if mayTrail(http.CanonicalHeaderKey(string(f.Name))) {
				b.tail = appendLine(b.tail, stringOf(f.Name), f.Value)
			}
		}
		b.tail = append(b.tail, "\r\n"...)
	}
	b.out = append(b.out, b.tail...)
}

// start starts the goroutine that sends the rest of the body over l, after a
// 100 if the client waits for one.
func (b *body) start(l *link, wait bool) {
	c := b.c.c
	c.expire(notExpired)
	b.to, b.cut = l, false
	b.stop.Store(false)
	b.quit, b.done = make(chan struct{}), make(chan struct{})
	b.proceed = nil
	if wait {
		b.proceed = make(chan struct{})
	} else {
		c.waits.Store(c.srv.now())
	}
	go b.pump(b.done, b.proceed)
}

// pump sends the rest of the body.
func (b *body) pump(done, proceed chan struct{}) {
	defer close(done)
	c := b.c.c
	defer func() {
		if p := recover(); p != nil { // others' calls go on
			c.srv.logPanic(p)
			c.cut(errDone)
		}
	}()
	if proceed != nil && !b.invite(proceed) {
		return
	}
	b.begun = true
	err := c.run(b)
	c.waits.Store(0)
	switch {
	case b.ended.Load() || b.stop.Load():
	case b.err != nil:
		c.cut(errBody)
	case err != nil && !isDeadline(err): // else somebody has ended it
		if b.err = err; err == io.EOF {
			b.err = io.ErrUnexpectedEOF
		}
		c.cut(errBody)
	}
}

// invite asks the client for the body when the cell does, or says nothing for a
// while.
func (b *body) invite(proceed chan struct{}) bool {
	k := b.c
	t := time.NewTimer(endless(k.pool.all.cfg.Timeouts.Continue))
	defer t.Stop()
	select {
	case <-proceed:
	case <-t.C:
	case <-b.quit:
		return false
	}
	b.interim.Lock()
	defer b.interim.Unlock()
	if b.silent || b.stop.Load() {
		return false
	}
	b.asked = true
	k.c.waits.Store(k.c.srv.now())
	if _, err := k.c.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
		k.c.waits.Store(0)
		b.err = err
		k.c.cut(errBody)
		return false
	}
	return true
}

// space is where more of the body goes.
func (b *body) space() []byte {
	if b.mem == nil {
		b.mem = b.c.c.srv.pools.get()
		in := &b.c.in
		b.n = copy(*b.mem, in.buf[b.at:in.end])
		b.at = in.end
	}
	m := (*b.mem)[b.n:]
	if !b.c.head.Chunked && int64(len(m)) > b.left {
		m = m[:b.left]
	}
	return m
}

// took sends on what came.
func (b *body) took(n int) (more bool) {
	c := b.c.c
	c.waits.Store(0)
	c.move()
	m := (*b.mem)[:b.n+n]
	b.out = b.out[:0]
	b.direct = !b.c.head.Chunked
	took := b.take(m)
	if b.err != nil {
		return false
	}
	send, end := b.out, b.finished()
	b.taken.Store(end)
	if !b.c.head.Chunked {
		send = m[:took]
	} else if end {
		b.frameEnd()
		send = b.out
		b.over = append([]byte(nil), m[took:]...)
	}
	b.n = copy(*b.mem, m[took:]) // none of a body that has a length, which is sent from there
	if len(send) > 0 {
		if _, err := b.to.conn.Write(send); err != nil {
			return false // the cell may have answered early
		}
		c.move()
	}
	if end {
		b.ended.Store(true)
		return false
	}
	c.waits.Store(c.srv.now())
	return !b.stop.Load()
}

func (b *body) quiet() {
	if b.n == 0 && b.mem != nil {
		b.giveBack()
	}
}

func (b *body) giveBack() {
	if b.mem != nil {
		b.c.c.srv.pools.put(b.mem)
		b.mem = nil
	}
}

// halt ends the goroutine, if there is one, and waits for that.
func (b *body) halt(l *link) {
	if b.kind != bodyStreamed || b.done == nil {
		return
	}
	c := b.c.c
	if b.taken.Load() {
		// All that is left to do is to say so, or the cell does not read what it
		// has answered.
		t := time.NewTimer(lastWrite)
		select {
		case <-b.done:
		case <-t.C:
		}
		t.Stop()
	}
	b.stop.Store(true)
	close(b.quit)
	if !b.ended.Load() {
		b.cut = true
		c.mu.Lock()
		c.conn.SetReadDeadline(past)
		l.conn.SetDeadline(past)
		c.mu.Unlock()
	}
	<-b.done
	b.done = nil
	c.waits.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.unlimitLocked()
	}
}

// failure returns what is wrong with the body.
func (b *body) failure() error {
	if b.err == nil {
		return io.ErrUnexpectedEOF
	}
	return b.err
}

// hush says that the final answer begins, and reports whether the client still
// waits for a 100, so that it has sent nothing of the body.
func (b *body) hush() {
	if b.kind != bodyStreamed {
		return
	}
	b.interim.Lock()
	b.silent = true
	b.interim.Unlock()
	b.settled.Store(true)
}

// ask says that the cell wants the body.
func (b *body) ask() {
	if b.kind == bodyStreamed && b.proceed != nil {
		close(b.proceed)
		b.proceed = nil
	}
}
