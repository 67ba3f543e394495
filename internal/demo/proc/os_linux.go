package proc

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// childAttr gives a child a process group of its own, so that a Ctrl-C in the
// terminal reaches the parent alone, and lets the kernel kill it with its
// parent, even while it is suspended.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when every thread of a process that was sent SIGSTOP has
// stopped, or after a second. The signal arrives at once, but a thread on
// another core may still finish an answer.
func awaitStopped(pid int) {
	for end := time.Now().Add(time.Second); !stopped(pid) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// stopped reports whether all threads of a process are stopped, or it is gone.
func stopped(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	for _, t := range threads {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/stat")
		// The state follows the name, which stands in parentheses.
		if i := bytes.LastIndex(b, []byte(") ")); err == nil && i >= 0 && b[i+2] != 'T' && b[i+2] != 't' {
			return false
		}
	}
	return true
}
