package engine

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

var errBodyTooLarge = errors.New("the request's body is over the limit")

// A sentBody is the client's body on its way to the cell, for one attempt.
type sentBody struct {
	t      *transfer
	of     *try
	src    io.Reader
	busy   baton // held while reading
	closed atomic.Bool
	read   atomic.Bool // something was asked for
}

// newBody returns the body for the next attempt, or nil if there is none.
func (t *transfer) newBody() *sentBody {
	if !t.hasBody {
		return nil
	}
	b := &sentBody{t: t, src: t.in.Body, busy: newBaton()}
	if t.o.Body != nil {
		b.src = t.o.Body.view()
	}
	t.mu.Lock()
	b.of = t.try
	t.bodies = append(t.bodies, b)
	t.mu.Unlock()
	return b
}

// bodyAgain is Request.GetBody: http.Transport calls it where nothing of the
// request was sent, or the method is safe and no byte of an answer came.
func (t *transfer) bodyAgain() (io.ReadCloser, error) {
	if !t.o.Body.Rewind() {
		return nil, errBodyClosed
	}
	return t.newBody(), nil
}

// mayResend reports whether another attempt would send the whole body.
func (t *transfer) mayResend() bool {
	if !t.hasBody {
		return true
	}
	if t.o.Body != nil {
		return t.o.Body.Rewind()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bodies {
		if b.read.Load() {
			return false
		}
	}
	return true
}

// bodyEnded reports whether the client's body was read to its end.
func (t *transfer) bodyEnded() bool {
	return !t.hasBody || t.bodyEOF.Load() || t.o.Body != nil && t.o.Body.atEnd.Load()
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.busy.take()
	defer b.busy.pass()
	t := b.t
	t.watch.waitsForClient(true)
	defer t.watch.waitsForClient(false)
	if b.closed.Load() || b.of.unsound.Load() {
		return 0, errBodyClosed
	}
	if t.unwanted() {
		// The cell answered without asking for the body. Reading it now would
		// tell the client to send it.
		<-t.ctx.Done()
		return 0, errBodyClosed
	}
	b.read.Store(true)
	t.invite()
	n, err := b.src.Read(p)
	total := t.bytesIn.Add(int64(n))
	switch {
	case t.o.MaxBody > 0 && total > t.o.MaxBody:
		n, err = 0, errBodyTooLarge
		t.setBodyErr(err)
	case err == io.EOF:
		t.bodyEOF.Store(true)
		copyTrailers(t.trailers, t.in.Trailer)
	case err != nil && err != errBodyClosed:
		t.setBodyErr(err)
	}
	return n, err
}

// Close ends the body for the transport. It does not wait for a read.
func (b *sentBody) Close() error {
	b.closed.Store(true)
	return nil
}

func (t *transfer) setBodyErr(err error) { t.bodyErr.CompareAndSwap(nil, &err) }

// unblock ends a read from the client, and once the head is out a write to it,
// when the request's context ends.
func (t *transfer) unblock() {
	if t.closeBodies() {
		t.rc.SetReadDeadline(past)
	}
	if t.streaming.Load() || t.interim.writing.Load() {
		t.rc.SetWriteDeadline(past)
	}
}

// closeBodies closes all bodies and reports whether one is being read.
func (t *transfer) closeBodies() (reading bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bodies {
		b.closed.Store(true)
		if b.busy.tryTake() {
			b.busy.pass()
		} else {
			reading = true
		}
	}
	return reading
}

// releaseBody makes sure that nobody reads the client's body any longer, as
// net/http wants it when a handler returns.
func (t *transfer) releaseBody() {
	if !t.hasBody || t.o.Body != nil { // a Replay sees to it itself
		return
	}
	if t.closeBodies() && t.rc.SetReadDeadline(past) != nil {
		return // it can't be ended
	}
	t.mu.Lock()
	bodies := t.bodies
	t.mu.Unlock()
	for _, b := range bodies {
		b.busy.take()
		b.busy.pass()
	}
}

// copyTrailers adds the trailers that may go on to dst.
func copyTrailers(dst, src http.Header) {
	if dst == nil {
		return
	}
	for name, v := range src {
		if mayTrail(name) {
			dst[name] = v
		}
	}
}
