// Package lines keeps programs from waiting for whoever reads their logs.
package lines

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// most is how many bytes wait for a reader.
const most = 4 << 20

// A Writer is a log's way out of a program that must not wait for whoever reads
// it: a full pipe, a full disk or a reader that has gone costs lines, which are
// counted, and nothing else. Lines keep their order. It is safe for concurrent
// use. A nil Writer takes nothing.
type Writer struct {
	w      io.Writer
	loss   func(w io.Writer, lost uint64)
	losing func(why error)
	gather time.Duration
	piece  int // bytes of whole lines in one write; 0: any number

	dropped atomic.Uint64

	mu      sync.Mutex
	queue   []byte        // lines that wait
	batch   []byte        // those that are written now
	spare   []byte        // memory for the queue
	told    uint64        // of dropped: how many have been owned up to
	failing bool          // lines have been lost since one was written
	cried   bool          // losing was called since then
	last    time.Time     // when losing was called last
	busy    chan struct{} // closed when the goroutine that writes has ended; nil: there is none

	torn bool // the last write ended within a line; the writing goroutine's own
}

// NewWriter returns a Writer to w. loss, if not nil, is called when w takes lines
// again after some were lost, to say so on w. It starts nothing: what writes begins
// with the first line and ends with the last.
func NewWriter(w io.Writer, loss func(w io.Writer, lost uint64)) *Writer {
	return &Writer{w: w, loss: loss}
}

// Of returns w itself if it is a Writer, or one to it that gathers lines for a
// moment.
func Of(w io.Writer) *Writer {
	l, ok := w.(*Writer)
	if !ok {
		l = NewWriter(w, nil)
		l.Gather(Moment)
	}
	return l
}

// Moment is how long lines of which there are thousands a second may wait for each
// other.
const Moment = 2 * time.Millisecond

// Gather has lines wait that long for others that are written with them. Call it
// before the first line.
func (l *Writer) Gather(wait time.Duration) { l.gather = wait }

// OnLosing has f called when lines begin to be lost, with the reason, and not
// again within a minute: of a loss that begins within one, with the first line
// that is lost after it. It is called by whoever writes a line, so it must not
// wait, and not write to l. Call it before the first line.
func (l *Writer) OnLosing(f func(why error)) { l.losing = f }

// pipeBuf is how much a pipe takes at once, beside what others write to it (POSIX,
// PIPE_BUF; this is Linux's, and more than others promise).
const pipeBuf = 4096

// ForPipe has lines written in pieces that a pipe takes whole, so that others' lines
// stand between them and never within one that is shorter. Call it before the first
// line.
func (l *Writer) ForPipe() { l.piece = pipeBuf }

// write writes whole lines, and returns how many bytes were taken.
func (l *Writer) write(lines []byte) (n int, err error) {
	if l.piece == 0 {
		return l.w.Write(lines)
	}
	for n < len(lines) && err == nil {
		end := min(n+l.piece, len(lines))
		if at := bytes.LastIndexByte(lines[n:end], '\n'); at >= 0 {
			end = n + at + 1
		} else if at = bytes.IndexByte(lines[end:], '\n'); at >= 0 {
			end += at + 1
		} else {
			end = len(lines)
		}
		var took int
		took, err = l.w.Write(lines[n:end])
		if n += max(0, took); err == nil && n < end {
			err = io.ErrShortWrite
		}
	}
	return n, err
}

// errTooSlow is why lines are lost that nobody has refused.
var errTooSlow = errors.New("whoever reads it is too slow, or stuck")

// lost counts lines that are lost, and tells once of each time that they begin
// to be.
func (l *Writer) lost(lines []byte, why error) {
	l.dropped.Add(countLines(lines))
	l.mu.Lock()
	l.failing = true
	now := time.Now()
	cry := l.losing != nil && !l.cried && (l.last.IsZero() || now.Sub(l.last) >= time.Minute)
	if cry {
		l.cried, l.last = true, now
	}
	l.mu.Unlock()
	if cry {
		l.losing(why)
	}
}

// Failing reports whether lines are lost now: the last one was.
func (l *Writer) Failing() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// Write takes one or more whole lines, and never fails.
func (l *Writer) Write(b []byte) (int, error) {
	if l == nil {
		return len(b), nil
	}
	l.mu.Lock()
	if len(l.queue)+len(b) > most {
		l.mu.Unlock()
		l.lost(b, errTooSlow)
		return len(b), nil
	}
	defer l.mu.Unlock()
	l.queue = append(l.queue, b...)
	if l.busy == nil {
		l.busy = make(chan struct{})
		go l.drain(l.busy)
	}
	return len(b), nil
}

// Unwrap returns what l writes to.
func (l *Writer) Unwrap() io.Writer { return l.w }

// Dropped returns how many lines were lost.
func (l *Writer) Dropped() uint64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

// Flush returns when all lines are written, or after that long, with how many were not
// by then. They may still be.
func (l *Writer) Flush(within time.Duration) (left uint64) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	busy := l.busy
	l.mu.Unlock()
	if busy == nil {
		return 0
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-busy:
		return 0
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return countLines(l.queue) + countLines(l.batch)
}

// drain writes what waits until nothing does.
func (l *Writer) drain(done chan struct{}) {
	for {
		if l.gather > 0 {
			time.Sleep(l.gather)
		}
		l.mu.Lock()
		batch := l.queue
		if len(batch) == 0 {
			l.busy = nil
			l.mu.Unlock()
			close(done)
			return
		}
		l.queue, l.batch, l.spare = l.spare[:0], batch, nil
		lost := l.dropped.Load() - l.told
		l.mu.Unlock()

		var err error
		if l.torn {
			// What follows is a line of its own.
			if _, err = l.w.Write([]byte{'\n'}); err == nil {
				l.torn = false
			}
		}
		if !l.torn {
			var n int
			n, err = l.write(batch)
			if n = max(0, n); n < len(batch) {
				l.lost(batch[n:], err)
				l.torn = n > 0 && batch[n-1] != '\n'
			} else {
				l.mu.Lock()
				l.failing, l.cried = false, false
				l.mu.Unlock()
			}
			if err == nil && lost > 0 && l.loss != nil {
				l.loss(l.w, lost)
				l.mu.Lock()
				l.told += lost
				l.mu.Unlock()
			}
		} else {
			l.lost(batch, err)
		}

		l.mu.Lock()
		l.batch = nil
		if l.spare = batch[:0]; cap(l.spare) > most/4 {
			l.spare = nil // a burst is over
		}
		l.mu.Unlock()
	}
}

// countLines counts lines; the rest of one is one, too.
func countLines(b []byte) uint64 {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return uint64(n)
}
