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
	raw, err := tl.SyscallConn()
	if err != nil {
		return nil
	}
	b := &burst{raw: raw}
	if at, ok := tl.Addr().(*net.TCPAddr); ok && !at.IP.IsUnspecified() && len(at.IP) > 0 {
		b.local = at
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = setOptions(int(fd)) }); err != nil || failed != nil {
		return nil
	}
	return b
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

// take returns a connection that waits, or nil if none does, or none can be had
// like that.
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
	err := b.raw.Control(func(fd uintptr) {
		if n, sa, err := syscall.Accept4(int(fd), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC); err == nil {
			nfd, from = n, sa
		}
	})
	if err != nil || nfd < 0 {
		b.taken.Store(0)
		return nil // whoever may wait sees why
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
