package engine

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/cellway/cellway/internal/http2"
)

// errStale says that a connection was closed by its other side, or has bytes
// that nobody asked for. Nothing was sent over it.
var errStale = errors.New("the connection can't be used any more")

// A taker takes what a connection brings.
type taker interface {
	// space returns where the next bytes go. It is called when there may be
	// some; by a connection that can't tell, before it waits.
	space() []byte
	// took says that n bytes stand in that space, and returns whether more are
	// wanted.
	took(n int) (more bool)
	// quiet says that there is nothing at the moment. Memory that holds nothing
	// may be given back until space is called again.
	quiet()
}

// A flow is a connection that is read without holding memory while nothing
// comes. Where the connection has a descriptor, it is read as the runtime's
// poller says that there is something, and takers are called from within; such
// a taker may read and write other connections, but may not read this one.
type flow struct {
	conn  net.Conn
	raw   syscall.RawConn // of conn itself; nil: only conn.Read will do
	below syscall.RawConn // of what conn sends its bytes over, if that is known

	// These belong to the reader.
	t      taker
	trusts bool // a read that does not fill its space is the last: see client.quiet
	err    error
	send   []byte // to be sent before the first read
	check  bool   // whether the connection must be proven alive before
	unsent bool   // nothing of send went out
	stray  bool   // there was something to read that nobody has asked for
	step   func(fd uintptr) bool
	fd     int // while step runs; otherwise -1
}

// init makes f ready to read c.
func (f *flow) init(c net.Conn) {
	f.conn, f.fd = c, -1
	f.raw, f.below = rawConns(c)
	if f.raw != nil {
		f.step = f.advance // once, so that a run allocates nothing
	}
}

// again makes f ready to read its connection where that has a place in the
// runtime's poller anew.
func (f *flow) again() {
	f.fd = -1
	if f.raw, _ = rawConns(f.conn); f.raw != nil {
		f.step = f.advance
	}
}

// run reads until t wants no more, which is no error.
func (f *flow) run(t taker) error {
	_, f.trusts = t.(*client)
	f.t, f.err = t, nil
	if f.raw == nil {
		return f.runPlain()
	}
	err := f.raw.Read(f.step)
	f.fd, f.t = -1, nil
	if f.err != nil {
		return f.err
	}
	return err
}

// runPlain is run for a connection without a descriptor.
func (f *flow) runPlain() error {
	for {
		n, err := f.conn.Read(f.t.space())
		if n > 0 && !f.t.took(n) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ask sends b and reads what comes. With check, it first makes sure that the
// connection is open and has nothing to read: otherwise it returns errStale,
// and nothing was sent. Nothing was sent either if nothing says so.
//
// Both happen in one turn of the poller, which is told to look for readable
// bytes before b is sent: so no answer is missed, and none waited for in vain.
func (f *flow) ask(b []byte, check bool, t taker) (nothing bool, err error) {
	if f.raw == nil {
		return f.askPlain(b, check, t)
	}
	f.t, f.err, f.send, f.check, f.unsent = t, nil, b, check, false
	err = f.raw.Read(f.step)
	f.fd = -1
	if f.err != nil {
		err = f.err
	}
	rest := f.send
	f.send = nil
	switch {
	case err != nil:
		return f.unsent, err
	case rest == nil:
		return false, nil
	}
	if n, err := f.conn.Write(rest); err != nil {
		return n == 0 && len(rest) == len(b), err
	}
	return false, f.run(t)
}

func (f *flow) askPlain(b []byte, check bool, t taker) (nothing bool, err error) {
	if check && f.below != nil && peek(f.below) != peekNothing {
		return true, errStale
	}
	if n, err := f.conn.Write(b); err != nil {
		return n == 0, err
	}
	return false, f.run(t)
}

// advance is one turn of the poller. It returns true when the reader is to go
// on, and false to wait until there is something to read.
func (f *flow) advance(fd uintptr) bool {
	f.fd = int(fd)
	if f.send != nil {
		return f.advanceSend()
	}
	for {
		space := f.t.space()
		n, err := readDescriptor(f.fd, space)
		switch {
		case n > 0:
			if !f.t.took(n) {
				return true
			}
			if f.trusts && n < len(space) {
				f.t.quiet()
				return false
			}
		case err == nil:
			f.err = io.EOF
			return true
		case err == errAgain:
			f.t.quiet()
			return false
		default:
			f.err = err
			return true
		}
	}
}

// advanceSend is the first turn of ask.
func (f *flow) advanceSend() (done bool) {
	if f.check {
		f.check = false
		var one [1]byte
		if n, err := readDescriptor(f.fd, one[:]); err != errAgain {
			f.stray = n > 0
			f.err, f.unsent = errStale, true
			return true
		}
	}
	n, err := writeDescriptor(f.fd, f.send)
	switch {
	case n == len(f.send):
		f.send = nil
		return false
	case n > 0:
		f.send = f.send[n:]
		return true
	case err == errAgain:
		return true
	}
	f.err, f.unsent = err, true
	return true
}

// What peek finds.
const (
	peekNothing = iota // it is open, and there is nothing to read
	peekBytes          // there is something to read
	peekEnd            // the other side sends no more
	peekBroken         // the connection is no more
)

// look says, without reading, what there is to read from the other side.
func (f *flow) look() int {
	if s, ok := f.conn.(*http2.Stream); ok && s.Reset() {
		return peekBroken
	}
	if f.below == nil {
		return peekNothing // nobody knows
	}
	return peek(f.below)
}

// closeWrite ends the writing side, where the connection can.
func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// descriptorOf returns the descriptor of c itself, if it has one.
func descriptorOf(c net.Conn) syscall.RawConn {
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}
