//go:build unix

package engine

import "syscall"

// outOf are the errors of a machine that has none left of something.
var outOf = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}
