package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// A lock keeps other processes from a store. The system frees it when the
// process ends, however it ends. The lock's file stays behind: to remove it
// would let two processes lock two files of the same name.
type lock struct{ f *os.File }

// errHeld is the error of lockFile when another process has the lock.
var errHeld = errors.New("held by another process")

// takeLock locks the store file for this process.
func takeLock(_ context.Context, path, file string) (*lock, error) {
	name := file + ".lock"
	f, err := lockFile(name)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("open store %s: %s has it open; two control planes can't share one file, so stop that one first: %w",
			path, holder(name), cellway.ErrStoreDown)
	}
	return locked(f, err, path, name)
}

// locked is the outcome of a lockFile that was not held by another.
func locked(f *os.File, err error, path, name string) (*lock, error) {
	if err != nil {
		return nil, fmt.Errorf("open store %s: lock it: %w: %w", path, cellway.ErrStoreDown, err)
	}
	l := &lock{f}
	if err := l.note(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: write %s: %w: %w", path, name, cellway.ErrStoreDown, err), l.release())
	}
	return l, nil
}

// awaitLock takes the lock when other processes have done with it, which takes
// them as long as opening the file does.
func awaitLock(ctx context.Context, path, file string) (*lock, error) {
	name := file + ".lock"
	for {
		f, err := lockFile(name)
		if !errors.Is(err, errHeld) {
			return locked(f, err, path, name)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("open store %s: %s is opening it: %w: %w", path, holder(name), cellway.ErrStoreDown, context.Cause(ctx))
		}
	}
}

// note replaces the content of the lock's file, which only people read.
func (l *lock) note(s string) error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(s), 0)
	return err
}

// release frees what it may free: nothing, if l is nil.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.note(""), l.f.Close())
}

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
