//go:build unix && !linux

package proc

import "syscall"

// childAttr gives a child a process group of its own, so that a Ctrl-C in the
// terminal reaches the parent alone.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitStopped does not wait: nothing tells here when a child has stopped.
func awaitStopped(int) {}
