package http2

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// An Owner of a stream is told when the stream has been reset, on any goroutine.
type Owner interface{ StreamReset() }

// A Stream is one request of a client and its answer, as a connection of HTTP/1.1.
// Reads give the request and then io.EOF. Close resets a stream whose answer is not
// whole.
type Stream struct {
	c     *Conn
	id    uint32
	fault code // what is wrong with it; of the Conn's reader

	since    time.Time // when its head had come
	isHead   bool
	gRPC     bool
	trailers bool  // there are trailers, or may be
	length   int64 // what was declared; -1: nothing was

	// The mutex of c guards these.
	cond      sync.Cond
	owner     Owner
	err       error // it can't be read or written any more
	out       side  // the deadlines
	inside    side
	window    int64 // what may be sent
	waits     bool  // for more of that
	received  int64 // what the client may send
	owed      int64 // what was read of that since it was told
	left      int64 // of what was declared
	inEnded   bool  // the client has sent all
	data      []byte
	off       int
	tail      []byte // trailers
	chunked   bool
	chunk     int    // what is left of the chunk that is being read
	pre       []byte // what is to be read before data; text, at first
	text      []byte // the head
	last      bool   // the last chunk was read
	alive     bool   // it counts among those
	staysOpen bool
	closing   bool // Close was called
	closed    bool
	unserved  bool // nothing has come of it

	answer answer
	broken bool // Close is to reset it in any case
}

// A side is one direction's deadline.
type side struct {
	up    bool
	timer *time.Timer
}

func (s *Stream) init(window int64) {
	s.cond.L = &s.c.mu
	s.window, s.received = window, streamWindow
	s.answer.s, s.answer.o = s, &s.c.out
}

// Conn returns the connection that the stream is one of.
func (s *Stream) Conn() *Conn { return s.c }

// GRPC reports whether the request is one of gRPC.
func (s *Stream) GRPC() bool { return s.gRPC }

// SetOwner has o told when the client resets the stream, or its connection ends.
func (s *Stream) SetOwner(o Owner) {
	s.c.mu.Lock()
	s.owner = o
	gone := s.err != nil
	s.c.mu.Unlock()
	if gone {
		o.StreamReset()
	}
}

// StayOpen has reads wait behind the request, until the stream is reset or closed. For
// who takes the end of what a client sends for its end.
func (s *Stream) StayOpen() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.staysOpen = true
}

// Reset reports whether the client has reset the stream, or its connection has ended.
func (s *Stream) Reset() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.err != nil && !s.closed
}

// reset makes it one that can't be read or written any more.
func (s *Stream) reset(err error) {
	s.c.mu.Lock()
	if s.err != nil {
		s.c.mu.Unlock()
		return
	}
	s.err = err
	s.settleLocked()
	s.c.owed += int64(len(s.data) - s.off)
	s.data, s.off = nil, 0
	o := s.owner
	s.cond.Broadcast()
	s.c.mu.Unlock()
	if o != nil {
		o.StreamReset()
	}
}

// settleLocked has the stream count no longer among those that are alive, if it is not:
// another one may begin in its place, though it may be served a moment longer.
func (s *Stream) settleLocked() {
	if s.alive && (s.err != nil || s.inEnded && s.answer.state == atDone) {
		s.alive = false
		s.c.alive--
	}
}

// drop forgets a stream that nobody serves.
func (s *Stream) drop() {
	putText(s.text)
	s.text = nil
}

// frameBody completes the head by how the body is framed, now that the stream is to
// be served.
func (s *Stream) frameBody() {
	switch {
	case s.length >= 0 && !s.trailers, s.inEnded && len(s.data) == 0 && !s.trailers:
		if s.length >= 0 {
			s.text = appendLength(s.text, s.length)
		}
	case s.inEnded && !s.trailers:
		s.text = appendLength(s.text, int64(len(s.data)))
	default:
		s.chunked = true
		s.text = append(s.text, "Transfer-Encoding: chunked\r\n"...)
	}
	s.text = append(s.text, "Connection: close\r\n\r\n"...)
	s.pre = s.text
}

func appendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// add adds data that has come.
func (s *Stream) add(p []byte) {
	if s.off > 0 && len(s.data)+len(p) > cap(s.data) {
		s.data = s.data[:copy(s.data, s.data[s.off:])]
		s.off = 0
	}
	s.data = append(s.data, p...)
}

// Buffered returns how much can be read without waiting.
func (s *Stream) Buffered() int {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return len(s.pre) + len(s.data) - s.off
}

// Read reads the request.
func (s *Stream) Read(p []byte) (n int, err error) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		if n, err = s.readLocked(p); n > 0 || err != nil {
			break
		}
		s.cond.Wait()
	}
	s.creditLocked()
	return n, err
}

// readLocked reads what there is. If there is nothing, it returns zero.
func (s *Stream) readLocked(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case s.err != nil:
			return n, s.err
		case s.inside.up:
			if n > 0 {
				return n, nil
			}
			return 0, os.ErrDeadlineExceeded
		case len(s.pre) > 0:
			took := copy(p[n:], s.pre)
			s.pre = s.pre[took:]
			n += took
			if len(s.pre) == 0 && s.text != nil {
				putText(s.text)
				s.text, s.pre = nil, nil
			}
			continue
		case len(s.data) > s.off:
			if s.chunked && s.chunk == 0 {
				s.chunk = len(s.data) - s.off
				s.pre = strconv.AppendInt(s.pre[:0], int64(s.chunk), 16)
				s.pre = append(s.pre, "\r\n"...)
				continue
			}
			b := s.data[s.off:]
			if s.chunked {
				b = b[:s.chunk]
			}
			took := copy(p[n:], b)
			n += took
			s.took(took)
			if s.chunked {
				if s.chunk -= took; s.chunk == 0 {
					s.pre = append(s.pre[:0], "\r\n"...)
				}
			}
			continue
		case !s.inEnded:
			return n, nil
		case s.chunked && !s.last:
			s.last = true
			s.pre = append(s.pre[:0], "0\r\n"...)
			s.pre = append(s.pre, s.tail...)
			s.pre = append(s.pre, "\r\n"...)
			continue
		case n == 0 && !s.staysOpen:
			return 0, io.EOF
		}
		return n, nil
	}
	return n, nil
}

// took takes in that n bytes of data were read.
func (s *Stream) took(n int) {
	s.owed += int64(n)
	s.c.owed += int64(n)
	if s.off += n; s.off == len(s.data) {
		if s.data, s.off = s.data[:0], 0; cap(s.data) > maxFrame {
			s.data = nil
		}
	}
}

// creditLocked tells the client how much more it may send, where that is much.
func (s *Stream) creditLocked() {
	c := s.c
	stream := s.owed >= streamWindow/4 && !s.inEnded && s.err == nil
	if !stream && c.owed < connWindow/4 {
		return
	}
	c.appendingLocked() // also where that is full: there are no more of these than the client has sent
	if c.owed > 0 {
		c.out.buf = appendUpdate(c.out.buf, 0, uint32(c.owed))
		c.received += c.owed
		c.owed = 0
	}
	if stream {
		c.out.buf = appendUpdate(c.out.buf, s.id, uint32(s.owed))
		s.received += s.owed
		s.owed = 0
	}
	_ = c.commitLocked() // who reads will see that it has ended
}

// Write writes the answer.
func (s *Stream) Write(p []byte) (n int, err error) { return s.answer.write(p) }

// Close ends the stream. It is reset if its answer is not whole, and if the client
// has not sent all of its request.
func (s *Stream) Close() error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closing {
		return net.ErrClosed
	}
	s.closing = true
	s.answer.endLocked()
	s.closed = true
	s.inside.stop()
	s.out.stop()
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
	}
	c.owed += int64(len(s.data) - s.off)
	s.data = nil
	if s.err == nil {
		s.err = net.ErrClosed
		code, tell := codeNo, !s.inEnded
		switch {
		case s.unserved && s.answer.state == atHead:
			code, tell = codeRefused, true
		case s.answer.state != atDone || s.broken:
			code, tell = codeInternal, true
		default:
			c.answered.Add(1)
		}
		s.settleLocked()
		if tell {
			c.gaveUpLocked(s.id)
			c.appendingLocked()
			c.out.buf = appendReset(c.out.buf, s.id, code)
		}
	}
	_ = c.commitLocked() // who reads will see that it has ended
	s.creditLocked()
	s.cond.Broadcast()
	if s.text != nil {
		putText(s.text)
		s.text = nil
	}
	c.stoppedLocked()
	return nil
}

// Refuse closes a stream of which nothing has come: its client may send it anew.
func (s *Stream) Refuse() {
	s.Served(false)
	s.Close()
}

// Served says whether something may have come of the stream, which holds unless it is
// said otherwise. If nothing has, Close without an answer refuses it.
func (s *Stream) Served(yes bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.unserved = !yes
}

// stoppedLocked takes in that a stream is not served any more.
func (c *Conn) stoppedLocked() {
	if c.running--; c.running > 0 {
		return
	}
	c.since = time.Now()
	c.idle.Store(true)
	if c.final && !c.ended {
		c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// SetLinger has Close reset the stream, as it would a connection of TCP.
func (s *Stream) SetLinger(int) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.broken = true
	return nil
}

// LocalAddr is the connection's.
func (s *Stream) LocalAddr() net.Addr { return s.c.conn.LocalAddr() }

// RemoteAddr is the connection's.
func (s *Stream) RemoteAddr() net.Addr { return s.c.conn.RemoteAddr() }

// TLS returns the connection of TLS that the stream came over, or nil.
func (s *Stream) TLS() *tls.Conn {
	tc, _ := s.c.conn.(*tls.Conn)
	return tc
}

// SetDeadline sets both deadlines.
func (s *Stream) SetDeadline(t time.Time) error {
	s.set(&s.inside, t)
	return s.SetWriteDeadline(t)
}

// SetReadDeadline ends reads at a time.
func (s *Stream) SetReadDeadline(t time.Time) error {
	s.set(&s.inside, t)
	return nil
}

// SetWriteDeadline ends writes at a time. A write that is under way at that time, for
// this stream and others, ends when the client takes it, or as [Config.WriteTimeout] has
// it: it can't be taken back.
func (s *Stream) SetWriteDeadline(t time.Time) error {
	s.set(&s.out, t)
	return nil
}

// set sets a deadline.
func (s *Stream) set(d *side, t time.Time) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	d.stop()
	if d.up = false; t.IsZero() || s.closed {
		return
	}
	wait := time.Until(t)
	if wait > 0 {
		var timer *time.Timer
		timer = time.AfterFunc(wait, func() {
			s.c.mu.Lock()
			defer s.c.mu.Unlock()
			if d.timer == timer {
				d.up = true
				s.cond.Broadcast()
			}
		})
		d.timer = timer
		return
	}
	d.up = true
	s.cond.Broadcast()
}

func (d *side) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
