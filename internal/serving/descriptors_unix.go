//go:build unix

package serving

import "syscall"

// RaiseDescriptors raises the soft limit of open files to the hard one, and
// returns what is allowed now.
func RaiseDescriptors() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if l.Cur < l.Max {
		raised := l
		raised.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
			return uint64(l.Cur), err
		}
		l = raised
	}
	return uint64(l.Cur), nil
}
