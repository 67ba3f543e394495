//go:build unix

package serving

import (
	"os"
	"syscall"
)

// hangup lists the signals that have files read again.
var hangup = []os.Signal{syscall.SIGHUP}
