//go:build !race

package engine

import (
	"syscall"
	"unsafe"
)

// Descriptors of connections do not block, so these calls come back at once, and
// the scheduler need not be told of them. That saves some of what they cost.

// readDescriptor reads once. It does not wait.
func readDescriptor(fd int, b []byte) (int, error) { return call(syscall.SYS_READ, fd, b) }

// writeDescriptor writes once. It does not wait.
func writeDescriptor(fd int, b []byte) (int, error) { return call(syscall.SYS_WRITE, fd, b) }

func call(number uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
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
