package engine

import (
	"maps"
	"net/http"
	"net/textproto"
	"sync"
	"sync/atomic"
)

// maxInterim is how many 1xx answers one request may get.
const maxInterim = 16

// A hint is an interim answer.
type hint struct {
	status int
	header http.Header
}

// interims are the interim answers of a transfer on their way to the client. The
// transport brings them where it reads other requests' answers as well, so they are
// written by a goroutine of their own.
type interims struct {
	count   atomic.Int32
	writing atomic.Bool

	mu     sync.Mutex // held while one is written
	silent bool       // w is for the final answer now

	queueMu sync.Mutex
	queue   []hint
	over    bool          // no more are taken in
	writer  chan struct{} // closed when the goroutine has ended; nil: there is none
}

// forwardInterim sends a 1xx answer on. The 100 goes by itself when the body is
// asked for.
func (t *transfer) forwardInterim(code int, h textproto.MIMEHeader) error {
	if code == http.StatusSwitchingProtocols {
		return errSwitch // the transport takes it for an interim one over HTTP/2
	}
	t.mu.Lock()
	e := t.endp
	t.mu.Unlock()
	if e != nil {
		t.pool.answered(e)
	}
	t.watch.move()
	if code == http.StatusContinue {
		return nil
	}
	in := &t.interim
	if in.count.Add(1) > maxInterim {
		return errInterim
	}
	if !t.in.ProtoAtLeast(1, 1) {
		return nil
	}
	in.queueMu.Lock()
	defer in.queueMu.Unlock()
	if in.over {
		return nil
	}
	in.queue = append(in.queue, hint{code, http.Header(h)})
	if in.writer == nil {
		in.writer = make(chan struct{})
		go t.writeInterims(in.writer)
	}
	return nil
}

// writeInterims writes those that there are.
func (t *transfer) writeInterims(done chan struct{}) {
	defer close(done)
	in := &t.interim
	for {
		in.queueMu.Lock()
		if len(in.queue) == 0 {
			in.writer = nil
			in.queueMu.Unlock()
			return
		}
		next := in.queue[0]
		in.queue = in.queue[1:]
		in.queueMu.Unlock()
		t.writeInterim(next.status, next.header)
	}
}

func (t *transfer) writeInterim(code int, h http.Header) {
	in := &t.interim
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.silent {
		return
	}
	in.writing.Store(true)
	defer in.writing.Store(false)
	if t.ctx.Err() != nil {
		return // nobody would end the write
	}
	dst := t.w.Header()
	final := maps.Clone(dst)
	clear(dst)
	t.answerHeader(dst, h)
	// Over HTTP/2 package http may be at it still when WriteHeader has returned, as the
	// client has gone. It writes a copy if there is a field that it has to leave out.
	dst["Content-Length"] = nil
	t.w.WriteHeader(code)
	clear(dst)
	maps.Copy(dst, final)
}

// invite sends the client a 100 before its body is read for the first time. net/http
// does so by itself, but not safely beside another interim answer.
func (t *transfer) invite() {
	if !t.expects || t.in.ProtoMajor != 1 {
		return
	}
	invited := &t.invited
	if t.o.Body != nil { // which may be sent again
		invited = &t.o.Body.invited
	}
	if !invited.Swap(true) {
		t.interim.wait(false)
		t.writeInterim(http.StatusContinue, nil)
	}
}

// wait waits until those that there are have gone. With last, there are no more.
func (in *interims) wait(last bool) {
	in.queueMu.Lock()
	in.over = in.over || last
	writer := in.writer
	in.queueMu.Unlock()
	if writer != nil {
		<-writer
	}
}

// silence ends interim answers when those that there are have gone: from now on w
// is for the final one.
func (t *transfer) silence() {
	in := &t.interim
	in.wait(true)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.silent = true
}
