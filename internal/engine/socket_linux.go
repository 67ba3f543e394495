package engine

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errInLoop says that a connection is read and written by its loop alone.
var errInLoop = errors.New("the connection is in a loop")

// A socket is a connection of TCP that can be moved between the runtime's poller
// and a loop. While a loop has it, only the loop reads and writes it; the
// deadlines that others set, and their Close, come to the loop as a call of
// attend, with the number of its stay: one that comes late is for another one.
type socket struct {
	conn atomic.Pointer[net.TCPConn] // nil while a loop has it, or nobody
	ends [2]net.Addr                 // local, remote

	mu     sync.Mutex
	fd     int  // while a loop has it, or nobody
	fresh  bool // nobody has had it yet
	stay   uint32
	attend func(stay uint32) // nil: the loop has not begun with it
	closed bool
	reset  bool      // the other side shall see that it is broken off
	reads  time.Time // the deadlines that were set while a loop has it
	writes time.Time
}

// newSocket returns c as one that can be moved, if it can.
func newSocket(c net.Conn) net.Conn {
	tc, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	s := &socket{ends: [2]net.Addr{tc.LocalAddr(), tc.RemoteAddr()}, fd: -1}
	s.conn.Store(tc)
	return s
}

// socketOf returns the socket that c sends its bytes over as they are, or nil.
func socketOf(c net.Conn) *socket {
	for {
		switch inner := c.(type) {
		case *socket:
			return inner
		case *cellConn:
			c = inner.Conn
		case *tls.Conn:
			return nil
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}

// tcp returns the connection in the runtime's poller, where one that nobody has
// had yet then gets its place; nil if a loop has it.
func (s *socket) tcp() *net.TCPConn {
	if c := s.conn.Load(); c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tcpLocked()
}

func (s *socket) tcpLocked() *net.TCPConn {
	if !s.fresh {
		return s.conn.Load()
	}
	s.fresh = false
	f := os.NewFile(uintptr(s.fd), "socket")
	s.fd = -1
	c, err := net.FileConn(f)
	f.Close()
	tc, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		s.closed = true
		return nil
	}
	s.conn.Store(tc)
	return tc
}

// isFresh reports whether nobody has had the connection yet.
func (s *socket) isFresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fresh
}

// leave takes the connection out of the runtime's poller, and returns its
// descriptor for a loop, which begins with arrive. It returns false if that can't
// be.
func (s *socket) leave() (fd int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		s.fresh = false
		return s.fd, true
	}
	if fd = s.copyLocked(); fd < 0 {
		return -1, false
	}
	s.leaveLocked(fd)
	return fd, true
}

// leaveTogether takes two connections out, which others have had already, or none:
// then their descriptors are below 0.
func leaveTogether(a, b *socket) (fdA, fdB int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if fdA = a.copyLocked(); fdA < 0 {
		return -1, -1
	}
	if fdB = b.copyLocked(); fdB < 0 {
		syscall.Close(fdA)
		return -1, -1
	}
	a.leaveLocked(fdA)
	b.leaveLocked(fdB)
	return fdA, fdB
}

// copyLocked returns another descriptor of a connection that the runtime's poller has;
// below 0: there is none.
func (s *socket) copyLocked() int {
	c := s.conn.Load()
	if s.closed || c == nil {
		return -1
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return -1
	}
	fd := -1
	_ = raw.Control(func(old uintptr) { // or it is closed
		if n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, old, syscall.F_DUPFD_CLOEXEC, 0); errno == 0 {
			fd = int(n)
		}
	})
	return fd
}

// leaveLocked gives up the descriptor that the runtime's poller has for another one.
func (s *socket) leaveLocked(fd int) {
	c := s.conn.Swap(nil)
	c.Close() // the other descriptor keeps the connection
	s.fd, s.reads, s.writes = fd, time.Time{}, time.Time{}
}

// enter gives the connection back to the runtime's poller. For a moment that takes
// another descriptor, which r has if there is none. If it fails, the connection is
// closed.
func (s *socket) enter(r *reserve) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := os.NewFile(uintptr(s.fd), "socket")
	s.fd, s.attend = -1, nil
	c, err := net.FileConn(f)
	if err != nil && r.give() {
		c, err = net.FileConn(f)
	}
	f.Close()
	r.refill()
	if err != nil {
		s.closed = true
		return err
	}
	tc := c.(*net.TCPConn)
	s.conn.Store(tc)
	if !s.reads.IsZero() {
		tc.SetReadDeadline(s.reads)
	}
	if !s.writes.IsZero() {
		tc.SetWriteDeadline(s.writes)
	}
	if s.closed {
		return tc.Close()
	}
	return nil
}

// A reserve keeps one descriptor for when there is no other.
type reserve struct{ fd, of int }

// newReserve returns a reserve that is filled by duplicates of a descriptor.
func newReserve(of int) *reserve {
	r := &reserve{fd: -1, of: of}
	r.refill()
	return r
}

// give makes room for a descriptor, and reports whether it has.
func (r *reserve) give() bool {
	if r.fd < 0 {
		return false
	}
	syscall.Close(r.fd)
	r.fd = -1
	return true
}

func (r *reserve) refill() {
	if r.fd < 0 {
		if n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(r.of), syscall.F_DUPFD_CLOEXEC, 0); errno == 0 {
			r.fd = int(n)
		}
	}
}

// drop closes the descriptor that a loop has.
func (s *socket) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		syscall.Close(s.fd)
	}
	s.fd, s.attend, s.closed = -1, nil, true
}

// wants returns what others have asked of the loop: that it closes the
// connection, or ends its reads. The connection is not here if it has left that
// stay.
func (s *socket) wants(stay uint32) (closed, late, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed, !s.reads.IsZero(), s.fd >= 0 && s.stay == stay
}

// arrive has attend called when somebody asks for something from now on. What
// was asked for before, wants tells.
func (s *socket) arrive(attend func(stay uint32)) (stay uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stay++
	s.attend = attend
	return s.stay
}

// askLocked has the loop attend to the connection.
func (s *socket) askLocked() {
	if s.attend != nil {
		s.attend(s.stay)
	}
}

func (s *socket) Read(p []byte) (int, error) {
	if c := s.tcp(); c != nil {
		return c.Read(p)
	}
	return 0, errInLoop
}

func (s *socket) Write(p []byte) (int, error) {
	if c := s.tcp(); c != nil {
		return c.Write(p)
	}
	return 0, errInLoop
}

// Close closes the connection. A loop that has it does so when it comes to it;
// the other side is told at once, unless it is to see a reset.
func (s *socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.closed = true
	if c := s.conn.Load(); c != nil {
		return c.Close()
	}
	if s.fresh {
		s.fresh = false
		err := syscall.Close(s.fd)
		s.fd = -1
		return err
	}
	if s.fd < 0 {
		return nil
	}
	if !s.reset {
		_ = syscall.Shutdown(s.fd, syscall.SHUT_RDWR) // it may be gone already
	}
	s.askLocked()
	return nil
}

// CloseWrite ends the writing side.
func (s *socket) CloseWrite() error {
	if c := s.tcp(); c != nil {
		return c.CloseWrite()
	}
	return errInLoop
}

// SetLinger is that of a [net.TCPConn].
func (s *socket) SetLinger(sec int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conn.Load(); c != nil {
		return c.SetLinger(sec)
	}
	s.reset = sec == 0
	l := syscall.Linger{Onoff: 1, Linger: int32(sec)}
	return syscall.SetsockoptLinger(s.fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &l)
}

func (s *socket) LocalAddr() net.Addr  { return s.ends[0] }
func (s *socket) RemoteAddr() net.Addr { return s.ends[1] }

func (s *socket) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline ends reads at t. While a loop has the connection, any t but
// zero means at once.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.tcpLocked(); c != nil {
		return c.SetReadDeadline(t)
	}
	if s.reads = t; !t.IsZero() {
		s.askLocked()
	}
	return nil
}

// SetWriteDeadline ends writes at t. A loop's writes do not wait, so it counts
// for those of later.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.tcpLocked(); c != nil {
		return c.SetWriteDeadline(t)
	}
	s.writes = t
	return nil
}

// SyscallConn returns the descriptor that the connection has at the time, wherever
// that is. Only its Control is of use while a loop has the connection.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	if c := s.tcp(); c != nil {
		return c.SyscallConn()
	}
	return socketRaw{s}, nil
}

// A socketRaw is the descriptor of a socket, which changes when it is moved.
type socketRaw struct{ s *socket }

func (r socketRaw) Control(f func(fd uintptr)) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if c := r.s.conn.Load(); c != nil {
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(f)
	}
	if r.s.fd < 0 {
		return net.ErrClosed
	}
	f(uintptr(r.s.fd))
	return nil
}

func (r socketRaw) Read(func(fd uintptr) bool) error  { return errInLoop }
func (r socketRaw) Write(func(fd uintptr) bool) error { return errInLoop }

// lasting returns the descriptor in a form that outlasts moves.
func (s *socket) lasting() syscall.RawConn { return socketRaw{s} }
