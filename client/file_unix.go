//go:build unix

package client

import "syscall"

// dontWait has an open return at once, whatever the name stands for.
const dontWait = syscall.O_NONBLOCK
