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
	switch {
	case err != nil:
	case sig == suspendNow:
		awaitStopped(p.Pid)
	case sig == endKill:
		// Children of its own, as of a server that has workers, would stay.
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // most have none
	}
	return err
}
