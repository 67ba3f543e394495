//go:build linux

package main

import (
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A poller waits for connections. The generator and the cells are loops over
// one, in one thread: a goroutine for each connection would cost more than the
// proxies that are measured.
type poller struct {
	fd     int
	events []syscall.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &poller{fd, make([]syscall.EpollEvent, 256)}, nil
}

// add has the poller tell when fd can be read.
func (p *poller) add(fd int) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &e))
}

// watchWrite has the poller tell also, or no longer, when fd can be written to.
func (p *poller) watchWrite(fd int, yes bool) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if yes {
		e.Events |= syscall.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_MOD, fd, &e))
}

// wait waits, at most so long, until something can be done. What it returns is
// valid until the next call.
func (p *poller) wait(limit time.Duration) ([]syscall.EpollEvent, error) {
	n, err := syscall.EpollWait(p.fd, p.events, int(limit.Milliseconds()))
	if err == syscall.EINTR {
		return nil, nil
	}
	return p.events[:max(n, 0)], os.NewSyscallError("epoll_wait", err)
}

// read and write never block, so the scheduler need not know of them. They
// return 0 and no error when nothing can be done now.
func read(fd int, b []byte) (n int, err error) {
	r, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR:
		return 0, nil
	case e != 0:
		return 0, os.NewSyscallError("read", e)
	case r == 0:
		return 0, errEnded
	}
	return int(r), nil
}

func write(fd int, b []byte) (n int, err error) {
	r, _, e := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR:
		return 0, nil
	case e != 0:
		return 0, os.NewSyscallError("write", e)
	}
	return int(r), nil
}

// socketOf returns a socket for addr, and addr as the kernel wants it.
func socketOf(addr string) (fd int, to *syscall.SockaddrInet4, err error) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, nil, err
	}
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	return fd, &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, os.NewSyscallError("socket", err)
}

// quick makes fd neither block nor wait for more to send.
func quick(fd int) error {
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	return os.NewSyscallError("fcntl", syscall.SetNonblock(fd, true))
}

// dial connects to addr.
func dial(addr string) (fd int, err error) {
	fd, to, err := socketOf(addr)
	if err != nil {
		return 0, err
	}
	if err := syscall.Connect(fd, to); err != nil {
		_ = syscall.Close(fd)
		return 0, os.NewSyscallError("connect", err)
	}
	return fd, quick(fd)
}

// listen listens on addr, and does not block when it accepts.
func listen(addr string) (fd int, err error) {
	fd, to, err := socketOf(addr)
	if err != nil {
		return 0, err
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, to); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	if err := syscall.Listen(fd, 1024); err != nil {
		return 0, os.NewSyscallError("listen", err)
	}
	return fd, os.NewSyscallError("fcntl", syscall.SetNonblock(fd, true))
}
