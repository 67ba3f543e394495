//go:build unix

package gatewayd

import (
	"syscall"
	"testing"
)

// hangUp has this process read its files again.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
