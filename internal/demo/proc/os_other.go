//go:build !unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

// signalProcess can only kill here: a child that is asked to stop is killed,
// and none can be suspended.
func signalProcess(p *os.Process, sig ending) error {
	switch sig {
	case endKill, endStop:
		return p.Kill()
	default:
		return errors.ErrUnsupported
	}
}
