//go:build !race && !386 && !s390x

package engine

import (
	"syscall"
	"unsafe"
)

// Descriptors of connections do not block, so these calls come back at once, and
// the scheduler need not be told of them. That saves some of what they cost.

// readDescriptor reads once from a socket. It does not wait.
func readDescriptor(fd int, b []byte) (int, error) {
	return call(syscall.SYS_RECVFROM, fd, b, syscall.MSG_DONTWAIT)
}

// writeDescriptor writes once to a socket. It does not wait.
func writeDescriptor(fd int, b []byte) (int, error) {
	return call(syscall.SYS_SENDTO, fd, b, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

func call(number uintptr, fd int, b []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}

// writeTwo writes a and b to a socket, once and without waiting.
func writeTwo(fd int, a, b []byte) (int, error) {
	if len(b) == 0 {
		return writeDescriptor(fd, a)
	}
	v := [2]syscall.Iovec{{Base: unsafe.SliceData(a)}, {Base: unsafe.SliceData(b)}}
	v[0].SetLen(len(a))
	v[1].SetLen(len(b))
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&v)), 2)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, errAgain
		default:
			return 0, errno
		}
	}
}
