//go:build unix

package regular

import "syscall"

// DontWait has an open return at once, whatever the name stands for. It changes
// nothing for regular files.
const DontWait = syscall.O_NONBLOCK
