package serving

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

// A LogFile is a file that is written to at its end and can be opened again,
// when whoever rotates logs has moved it away. Where that fails, it is tried again
// as long as something is written.
type LogFile struct {
	path string

	mu    sync.Mutex
	f     *os.File
	fresh bool      // it was empty, and nothing was written to it
	stale bool      // to open it again has failed last
	tried time.Time // when that was
}

// reopenEvery is how often it is tried again.
const reopenEvery = time.Second

// OpenLogFile opens the file at path, or makes it.
func OpenLogFile(path string) (*LogFile, error) {
	l := &LogFile{path: path}
	return l, l.Reopen()
}

// checkLogFile reports why a log at path could not be written. It leaves
// nothing behind: a file that is not there yet is not made.
func checkLogFile(path string) error {
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

// Reopen opens the path again. If that fails, the old file stays in use until it can
// be. A pipe without a reader is an error: to wait for one may take for ever.
func (l *LogFile) Reopen() error {
	f, err := l.open()
	l.mu.Lock()
	l.stale, l.tried = err != nil, time.Now()
	if err != nil {
		l.mu.Unlock()
		return err
	}
	old := l.f
	info, err := f.Stat()
	l.f, l.fresh = f, err == nil && info.Mode().IsRegular() && info.Size() == 0
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

func (l *LogFile) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|regular.DontWait, 0o640)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("nobody reads the pipe %s; start its reader first: %w", l.path, cellway.ErrInvalid)
	}
	return f, err
}

// Stale reports whether what is written goes to an old file, as the path can't be
// opened again.
func (l *LogFile) Stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stale
}

// isRegular reports whether w is a file on a disk, which nobody else writes to.
func isRegular(w io.Writer) bool {
	if l, ok := w.(*LogFile); ok {
		w, _ = l.current()
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// current returns the file in use, and whether it is time to try to open it again.
func (l *LogFile) current() (f *os.File, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f, l.stale && time.Since(l.tried) >= reopenEvery
}

// begins reports whether b would be the first that is written to the file.
func (l *LogFile) begins(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.fresh
	l.fresh = was && len(b) == 0
	return was
}

// Write appends b. One that waits for a pipe's reader holds nobody up: Close ends
// it. What is written while the file is opened again goes to one or the other, whole.
func (l *LogFile) Write(b []byte) (n int, err error) {
	f, again := l.current()
	if again {
		_ = l.Reopen() // it is tried again, and Stale tells
		f, _ = l.current()
	}
	if l.begins(b) && string(b) == "\n" {
		return 1, nil // it was to end a line that was torn in the old file
	}
	for {
		var took int
		took, err = f.Write(b[n:])
		n += max(0, took)
		now, _ := l.current()
		if !errors.Is(err, os.ErrClosed) || now == f {
			return n, err
		}
		f = now
	}
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}
