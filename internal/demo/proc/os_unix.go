//go:build unix

package proc

import (
	"os"
	"syscall"
)

func signalProcess(p *os.Process, sig ending) error {
	err := p.Signal(map[ending]syscall.Signal{
		endKill:    syscall.SIGKILL,
		endStop:    syscall.SIGTERM,
		suspendNow: syscall.SIGSTOP,
		resumeNow:  syscall.SIGCONT,
	}[sig])
	if err == nil && sig == suspendNow {
		awaitStopped(p.Pid)
	}
	return err
}
