package engine

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A burstRig is a listener with so many connections that wait to be accepted, and
// their other ends.
func burstRig(t *testing.T, n int) (l net.Listener, others []net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	l = Movable(inner)
	for range n {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		others = append(others, c)
	}
	return l, others
}

// Connections that wait are accepted without a place in the runtime's poller, and
// are like those of package net all the same.
func TestConnectionsThatWaitAreAcceptedAsTheyAre(t *testing.T) {
	l, others := burstRig(t, 3)
	for i, other := range others {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		s := c.(*socket)
		if !s.isFresh() {
			t.Fatalf("connection %d is in the runtime's poller", i)
		}
		if got, want := fmt.Sprint(c.RemoteAddr(), c.LocalAddr()), fmt.Sprint(other.LocalAddr(), other.RemoteAddr()); got != want {
			t.Errorf("it is from and at %s, want %s", got, want)
		}
		for _, o := range [][3]int{
			{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1}, {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, keepAlive}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, keepAlive}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, keepAliveMost},
		} {
			if got, err := syscall.GetsockoptInt(s.fd, o[0], o[1]); got != o[2] || err != nil {
				t.Errorf("option %d is %d, %v, want %d", o[1], got, err, o[2])
			}
		}
		switch i {
		case 0: // a goroutine reads and writes it
			io.WriteString(other, "there")
			var b [5]byte
			if _, err := io.ReadFull(c, b[:]); string(b[:]) != "there" || err != nil {
				t.Errorf("read %q, %v", b, err)
			}
			if _, err := io.WriteString(c, "back!"); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadFull(other, b[:]); string(b[:]) != "back!" || err != nil {
				t.Errorf("read %q, %v", b, err)
			}
			c.SetReadDeadline(past)
			if _, err := c.Read(b[:]); !isDeadline(err) {
				t.Errorf("a read that is late: %v", err)
			}
		case 1: // a loop has it
			fd, ok := s.leave()
			if !ok || s.isFresh() {
				t.Fatal("it can't be moved")
			}
			if n, err := writeDescriptor(fd, []byte("loop")); n != 4 || err != nil {
				t.Error(n, err)
			}
			if _, err := c.Read(make([]byte, 1)); err != errInLoop {
				t.Errorf("a read in a loop: %v", err)
			}
			s.drop()
		}
		if err := c.Close(); err != nil && i != 1 {
			t.Error(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a read after the end")
		}
		if _, err := io.ReadAll(other); err != nil {
			t.Errorf("the other end: %v", err)
		}
	}
}

// A listener that is closed, or has no descriptor left, says so as ever.
func TestAClosedListenerAcceptsNothing(t *testing.T) {
	l, _ := burstRig(t, 1)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if c, err := l.Accept(); err == nil {
		t.Errorf("it accepted %v", c)
	}
}

// Connections over which nothing comes have no goroutine, and their first request
// is served where they are.
func TestLoopHasNewConnections(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.pathCell(nil))
	for range 4 {
		f.joined() // there are links
	}
	f.wantClients(4)
	before := runtime.NumGoroutine()
	var all []*rawClient
	for range 100 {
		all = append(all, f.raw())
	}
	f.wantClients(104)
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("%d goroutines for 100 connections over which nothing came", n)
	}
	resumed := f.resumed.Load()
	for _, c := range all {
		c.send(get("/first"))
		c.want(200, "/first")
	}
	if n := f.resumed.Load() - resumed; n > 0 {
		t.Errorf("%d first requests needed a goroutine", n)
	}
	f.wantClients(104)
	f.wantNothing()
}

// A connection that no loop can have is served by a goroutine, and one that is
// closed before it was served costs nothing.
func TestNewConnectionsWithoutALoop(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	f.joined()
	f.s.mu.Lock()
	loops := f.s.loops
	f.s.loops = nil
	f.s.mu.Unlock()
	for range 3 {
		c := f.raw()
		c.send(get("/goroutine"))
		c.want(200, "/goroutine")
		c.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	}
	f.s.mu.Lock()
	f.s.loops = loops
	f.s.mu.Unlock()
	fds := descriptors(t)
	for range 20 {
		f.raw().Close()
	}
	eventually(t, "all are closed", func() bool { return descriptors(t) <= fds })
}

// Of a crowd so many are taken without a pause, and where nobody waits, the count
// begins again.
func TestACrowdIsAcceptedInParts(t *testing.T) {
	l, _ := burstRig(t, burstMost+2)
	b := l.(movable).burst
	taken := func(want int32) {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if n := b.taken.Load(); n != want {
			t.Fatalf("%d were taken without a pause, want %d", n, want)
		}
	}
	for i := range int32(burstMost) {
		taken(i + 1)
	}
	taken(1)
	taken(2)
	go func() {
		eventually(t, "somebody waits", func() bool { return b.taken.Load() == 0 })
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
		}
	}()
	taken(1)
}
