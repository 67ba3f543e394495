package engine

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// MaxReplay is the size in bytes up to which [NewReplay] keeps a body.
const MaxReplay = 64 << 10

var errBodyClosed = errors.New("the request's body is no longer wanted")

// A Replay is a request body that is kept while it streams, up to a limit, so
// that the request can be sent once more: to another cell, if a guard refused
// it before it ran, and so before anything happened.
type Replay struct {
	src   io.Reader
	limit int
	none  bool // the request has no body

	rc      atomic.Pointer[http.ResponseController] // to end a read; set by Forward
	settled atomic.Bool                             // it will not be sent again: keep nothing more
	atEnd   atomic.Bool                             // src has ended well
	edge    atomic.Bool                             // something was read, or is being read, that is not kept
	reading atomic.Bool
	invited atomic.Bool // the client was sent a 100
	current atomic.Pointer[replayView]

	turn  baton  // held while reading src, which may take long; the rest belongs to its holder
	kept  []byte // all that was read, unless lost
	lost  bool   // what is read is not kept
	begun bool   // something was read that was not kept
	ended error  // how src ended
}

// A replayView reads the body from its start, for one attempt.
type replayView struct {
	body   *Replay
	at     int // in kept
	closed atomic.Bool
}

// NewReplay keeps up to limit bytes of r's body; if limit is zero,
// [MaxReplay]. A body whose declared length is above it is not kept at all.
// Close it before the handler returns, and after the last Forward.
func NewReplay(r *http.Request, limit int) *Replay {
	b := &Replay{src: r.Body, limit: or(limit, MaxReplay), none: !HasBody(r), turn: newBaton()}
	b.lost = r.ContentLength > int64(b.limit)
	return b
}

// Rewind reports whether the next Forward can send the body from its start: as
// long as nothing was read, or no more than the limit of a body that is kept.
// The attempt before has ended when it is called.
func (b *Replay) Rewind() bool {
	if b.none {
		return true
	}
	if b.settled.Load() {
		return false
	}
	if !b.turn.tryTake() {
		return !b.edge.Load() // an attempt that has ended is still reading
	}
	defer b.turn.pass()
	if !b.lost {
		return true
	}
	if v := b.current.Load(); v != nil && !b.begun {
		v.closed.Store(true) // what it would still read would be missing
	}
	return !b.begun
}

// Close gives the memory back and ends a read under way. The body can't be
// used after it.
func (b *Replay) Close() {
	if b.none {
		return
	}
	b.settled.Store(true)
	if v := b.current.Swap(nil); v != nil {
		v.closed.Store(true)
	}
	if rc := b.rc.Load(); rc != nil && b.reading.Load() && rc.SetReadDeadline(past) == nil {
		b.turn.take()
		b.kept, b.lost = nil, true
		b.turn.pass()
	}
}

// view returns a reader from the body's start. The one before it reads no
// more.
func (b *Replay) view() *replayView {
	v := &replayView{body: b}
	if old := b.current.Swap(v); old != nil {
		old.closed.Store(true)
	}
	return v
}

// settle says that the body will not be sent again.
func (b *Replay) settle() { b.settled.Store(true) }

// Read gives what was kept and then what src gives. What is read for an
// attempt that has ended meanwhile is kept for the next.
func (v *replayView) Read(p []byte) (int, error) {
	b := v.body
	b.turn.take()
	defer b.turn.pass()
	switch {
	case v.closed.Load():
		return 0, errBodyClosed
	case v.at < len(b.kept):
		n := copy(p, b.kept[v.at:])
		v.at += n
		return n, nil
	case b.ended != nil:
		return 0, b.ended
	case len(p) == 0:
		return 0, nil
	}
	if b.settled.Load() {
		b.kept, b.lost, b.begun = nil, true, b.begun || len(b.kept) > 0
		v.at = 0
	}
	if b.lost {
		return b.pass(p)
	}
	room := b.limit - len(b.kept)
	if room == 0 {
		n, err := b.pass(p)
		if n > 0 {
			b.kept, b.lost = nil, true
			v.at = 0
		}
		return n, err
	}
	b.makeRoom(min(room, len(p)))
	n, err := b.read(b.kept[len(b.kept) : len(b.kept)+min(room, len(p))])
	b.kept = b.kept[:len(b.kept)+n]
	if v.closed.Load() {
		return 0, errBodyClosed
	}
	copy(p, b.kept[v.at:])
	v.at += n
	return n, err
}

// pass reads what is not kept. The caller has the turn.
func (b *Replay) pass(p []byte) (int, error) {
	b.edge.Store(true)
	n, err := b.read(p)
	if n > 0 {
		b.begun = true
	} else if !b.begun {
		b.edge.Store(false)
	}
	return n, err
}

// read reads src. The caller has the turn.
func (b *Replay) read(p []byte) (int, error) {
	b.reading.Store(true)
	n, err := b.src.Read(p)
	b.reading.Store(false)
	if err != nil {
		b.ended = err
		b.atEnd.Store(err == io.EOF)
	}
	return n, err
}

func (b *Replay) makeRoom(n int) {
	if need := len(b.kept) + n; need > cap(b.kept) {
		b.kept = append(make([]byte, 0, min(b.limit, max(need, 2*cap(b.kept)))), b.kept...)
	}
}

// HasBody reports whether a request that net/http read has a body.
func HasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// A baton is a lock that may be held, and waited for, as long as a read from a
// network takes.
type baton chan struct{}

func newBaton() baton { return make(baton, 1) }

func (b baton) take() { b <- struct{}{} }
func (b baton) pass() { <-b }

// tryTake takes the baton if nobody has it.
func (b baton) tryTake() bool {
	select {
	case b <- struct{}{}:
		return true
	default:
		return false
	}
}
