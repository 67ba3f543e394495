package proc

import "syscall"

// childAttr gives a child a process group of its own, so that a Ctrl-C in the
// terminal reaches the parent alone, and lets the kernel kill it with its
// parent, even while it is suspended.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
