package sqlitestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
)

// A lock keeps other processes from a store. The system frees it when the
// process ends, however it ends. The lock's file stays behind: to remove it
// would let two processes lock two files of the same name.
type lock struct{ f *os.File }

// errHeld is the error of lockFile when another process has the lock.
var errHeld = errors.New("held by another process")

// takeLock locks the store file for this process.
func takeLock(path, file string) (*lock, error) {
	name := file + ".lock"
	f, err := lockFile(name)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("open store %s: %s has it open; two control planes can't share one file, so stop that one first: %w",
			path, holder(name), cellway.ErrStoreDown)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: lock it: %w: %w", path, cellway.ErrStoreDown, err)
	}
	l := &lock{f}
	if err := l.note(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: write %s: %w: %w", path, name, cellway.ErrStoreDown, err), l.release())
	}
	return l, nil
}

// note replaces the content of the lock's file, which only people read.
func (l *lock) note(s string) error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(s), 0)
	return err
}

func (l *lock) release() error { return errors.Join(l.note(""), l.f.Close()) }

// holder names the process that has the lock, as well as can be known.
func holder(name string) string {
	if f, err := os.Open(name); err == nil {
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, 32))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			return fmt.Sprintf("process %d", pid)
		}
	}
	return "another process"
}
