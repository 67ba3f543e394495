//go:build unix

package feed

import "syscall"

// dontWait has an open return at once, whatever the name stands for. It changes
// nothing for regular files.
const dontWait = syscall.O_NONBLOCK
