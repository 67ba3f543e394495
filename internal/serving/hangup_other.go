//go:build !unix

package serving

import "os"

// hangup lists the signals that have files read again: none here.
var hangup []os.Signal
