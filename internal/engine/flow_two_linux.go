//go:build race || 386 || s390x

package engine

import "slices"

// writeTwo writes a and b to a socket, once and without waiting.
func writeTwo(fd int, a, b []byte) (int, error) {
	return writeDescriptor(fd, slices.Concat(a, b))
}
