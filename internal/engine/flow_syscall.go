//go:build unix && (!linux || race || 386 || s390x)

package engine

import "syscall"

// readDescriptor reads once. It does not wait.
func readDescriptor(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// writeDescriptor writes once. It does not wait.
func writeDescriptor(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, b)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
