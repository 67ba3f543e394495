package serving

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

// A LogFile is a file that is written to at its end and can be opened again,
// when whoever rotates logs has moved it away.
type LogFile struct {
	path string

	mu sync.Mutex
	f  *os.File
}

// OpenLogFile opens the file at path, or makes it.
func OpenLogFile(path string) (*LogFile, error) {
	l := &LogFile{path: path}
	return l, l.Reopen()
}

// CheckLogFile reports why a log at path could not be written. It leaves
// nothing behind: a file that is not there yet is not made.
func CheckLogFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := regular.CheckMake(path); err != nil {
			return fmt.Errorf("%s can't be made: %w", path, err)
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: %w", path, cellway.ErrInvalid)
	case !info.Mode().IsRegular():
		return nil // a pipe without a reader would wait for one
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// Reopen opens the path again. If that fails, the old file stays in use. A pipe
// without a reader is an error: to wait for one may take for ever.
func (l *LogFile) Reopen() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|regular.DontWait, 0o640)
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("nobody reads the pipe %s; start its reader first: %w", l.path, cellway.ErrInvalid)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	old := l.f
	l.f = f
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// Write appends b. One that waits for a pipe's reader holds nobody up: Close ends
// it.
func (l *LogFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	f := l.f
	l.mu.Unlock()
	return f.Write(b)
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
