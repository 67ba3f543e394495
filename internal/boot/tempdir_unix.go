//go:build unix

package boot

import (
	"errors"
	"os"
	"syscall"
)

// tryLock claims f for as long as it is open, unless somebody else has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// ours reports whether this user made dir: in a folder that all users share,
// another's names mean nothing.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Getuid())
}
