package engine

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// burstMost is how many connections are taken one after the other before a
	// pause of burstPause, so that a crowd of them leaves time for all else.
	burstMost  = 64
	burstPause = time.Millisecond

	keepAlive     = 15 // seconds, as package net has it
	keepAliveMost = 9
)

// A burst takes connections that wait to be accepted, without a place in the
// runtime's poller: those that join a loop have one there.
type burst struct {
	file  *os.File // another descriptor of the listener
	raw   syscall.RawConn
	local net.Addr     // of all connections; nil: each may have another
	taken atomic.Int32 // without a pause
}

// newBurst returns what takes the connections of l, or nil if l is no TCP
// listener. They get their options from it, as package net sets them.
func newBurst(l net.Listener) *burst {
	tl, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	of, err := tl.SyscallConn()
	if err != nil {
		return nil
	}
	b, fd := &burst{}, -1
	var failed error
	if err := of.Control(func(own uintptr) {
		if failed = setOptions(int(own)); failed != nil {
			return
		}
		n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, own, syscall.F_DUPFD_CLOEXEC, 0)
		if fd = int(n); errno != 0 {
			failed = errno
		}
	}); err != nil || failed != nil {
		return nil
	}
	// It does not block, and so it has a place in the runtime's poller.
	b.file = os.NewFile(uintptr(fd), "listener")
	if b.raw, err = b.file.SyscallConn(); err != nil {
		b.close()
		return nil
	}
	if at, ok := tl.Addr().(*net.TCPAddr); ok && !at.IP.IsUnspecified() && len(at.IP) > 0 {
		b.local = at
	}
	return b
}

// close ends it.
func (b *burst) close() {
	if b != nil {
		_ = b.file.Close() // the listener has another descriptor
	}
}

// setOptions sets what connections inherit from their listener.
func setOptions(fd int) error {
	for _, o := range [][3]int{
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, keepAlive},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, keepAlive},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, keepAliveMost},
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
	} {
		if err := syscall.SetsockoptInt(fd, o[0], o[1], o[2]); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	return nil
}

// take waits for a connection and returns it. It returns nil if none can be had
// like that: then an Accept of the listener says why.
func (b *burst) take() net.Conn {
	if b == nil {
		return nil
	}
	if b.taken.Load() >= burstMost {
		b.taken.Store(0)
		time.Sleep(burstPause)
	}
	nfd := -1
	var from syscall.Sockaddr
	err := b.raw.Read(func(fd uintptr) (done bool) {
		for {
			n, sa, err := syscall.Accept4(int(fd), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
			switch err {
			case nil:
				nfd, from = n, sa
			case syscall.EINTR, syscall.ECONNABORTED:
				continue
			case syscall.EAGAIN:
				b.taken.Store(0)
				return false
			}
			return true
		}
	})
	if err != nil || nfd < 0 {
		return nil
	}
	b.taken.Add(1)
	local := b.local
	if local == nil {
		if sa, err := syscall.Getsockname(nfd); err == nil {
			local = addrOf(sa)
		}
	}
	if local == nil {
		local = new(net.TCPAddr)
	}
	return &socket{ends: [2]net.Addr{local, addrOf(from)}, fd: nfd, fresh: true}
}

// addrOf returns an address as package net has it.
func addrOf(sa syscall.Sockaddr) net.Addr {
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)))
	case *syscall.SockaddrInet6:
		a := &net.TCPAddr{IP: append(net.IP(nil), sa.Addr[:]...), Port: sa.Port}
		if sa.ZoneId != 0 {
			if on, err := net.InterfaceByIndex(int(sa.ZoneId)); err == nil {
				a.Zone = on.Name
			}
		}
		return a
	}
	return new(net.TCPAddr)
}
