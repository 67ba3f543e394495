//go:build unix

package routerd

import (
	"os"
	"syscall"
)

// hangup lists the signals that have files read again.
var hangup = []os.Signal{syscall.SIGHUP}
