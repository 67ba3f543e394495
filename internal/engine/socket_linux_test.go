package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// newSockets returns both ends of a connection, one as a socket.
func newSockets(t *testing.T) (*socket, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Movable(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := c.(*socket)
	t.Cleanup(func() { s.Close(); s.drop(); other.Close() })
	other.SetDeadline(time.Now().Add(10 * time.Second))
	return s, other.(*net.TCPConn)
}

// stay is a stay in a loop that does nothing: asked counts what is asked of it.
func stay(t *testing.T, s *socket) (fd int, number uint32, asked *atomic.Int64) {
	t.Helper()
	fd, ok := s.leave()
	if !ok {
		t.Fatal("it can't be moved")
	}
	asked = new(atomic.Int64)
	return fd, s.arrive(func(uint32) { asked.Add(1) }), asked
}

func TestSocketMovesThereAndBack(t *testing.T) {
	s, other := newSockets(t)
	fds := descriptors(t)
	buf := make([]byte, 10)
	for range 5 {
		fd, _, _ := stay(t, s)
		io.WriteString(other, "loop")
		eventually(t, "it comes", func() bool {
			n, err := readDescriptor(fd, buf)
			return err == nil && string(buf[:n]) == "loop"
		})
		if n, err := writeDescriptor(fd, []byte("back")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := io.ReadFull(other, buf[:4]); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(buf); err != errInLoop {
			t.Errorf("a read in a loop: %v", err)
		}
		if _, err := s.Write(buf); err != errInLoop {
			t.Errorf("a write in a loop: %v", err)
		}
		if _, ok := s.leave(); ok {
			t.Error("it has left twice")
		}
		r := newReserve(fd)
		if err := s.enter(r); err != nil {
			t.Fatal(err)
		}
		r.give()
		io.WriteString(other, "poller")
		if n, err := io.ReadFull(s, buf[:6]); err != nil || string(buf[:n]) != "poller" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	if n := descriptors(t); n > fds {
		t.Errorf("%d descriptors, want %d at most", n, fds)
	}
	if s.LocalAddr().String() != other.RemoteAddr().String() || s.RemoteAddr().String() != other.LocalAddr().String() {
		t.Error("it has other addresses")
	}
}

// What was asked for while a loop had it, or was about to, holds afterwards, and
// what is asked of one stay is nothing to the next.
func TestSocketKeepsWhatIsAskedOfIt(t *testing.T) {
	s, other := newSockets(t)
	_, first, asked := stay(t, s)
	s.SetDeadline(past)
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	if closed, late, here := s.wants(first); closed || !late || !here {
		t.Error("it does not say so")
	}
	r := &reserve{fd: -1, of: -1}
	if err := s.enter(r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read: %v", err)
	}
	if _, err := s.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write: %v", err)
	}
	if _, _, here := s.wants(first); here {
		t.Error("it is still there")
	}
	s.SetDeadline(time.Time{})

	_, ok := s.leave()
	if !ok {
		t.Fatal("it can't be moved")
	}
	s.Close() // before the loop begins with it
	second := s.arrive(func(uint32) { t.Error("it was asked for before") })
	if closed, late, here := s.wants(second); !closed || late || !here {
		t.Error("the loop does not hear of what was asked before")
	}
	if _, _, here := s.wants(first); here {
		t.Error("it takes one stay for another")
	}
	if n, err := other.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the other side reads %d, %v", n, err)
	}
	if err := s.enter(r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read: %v", err)
	}
	if err := s.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it closes twice: %v", err)
	}
}

// The other side sees no orderly end before the reset that it is to see.
func TestSocketResetsFromLoop(t *testing.T) {
	s, other := newSockets(t)
	stay(t, s)
	resetOnClose(s)
	s.Close()
	s.drop()
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the other side reads %v, want a reset", err)
	}
	if err := s.SetLinger(0); err == nil {
		t.Error("it has options without a descriptor")
	}
	if raw, err := s.SyscallConn(); err != nil || raw.Control(func(uintptr) { t.Error("called") }) == nil {
		t.Error("it has a descriptor after its end")
	}
}

// Anybody may ask anything at any time, while it moves.
func TestSocketIsSafeWhileItMoves(t *testing.T) {
	s, other := newSockets(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, f := range []func(){
		func() { s.SetReadDeadline(time.Time{}) },
		func() { s.SetWriteDeadline(time.Now().Add(time.Hour)) },
		func() {
			if peek(s.lasting()) != peekNothing {
				t.Error("it has something to read")
			}
		},
		func() { s.LocalAddr(); s.SyscallConn() },
	} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	r := &reserve{fd: -1, of: -1}
	for range 200 {
		stay(t, s)
		if err := s.enter(r); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	io.WriteString(s, "x")
	if _, err := other.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}
