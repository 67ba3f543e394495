package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cellway/cellway"
)

// The most that files may hold which people write. They are far above what any
// such file needs.
const (
	maxKeyring = 1 << 20 // bytes
	maxToken   = 16 << 10
	maxPEM     = 8 << 20 // certificates and keys; a system's authorities take about 300 KB
)

// errTooLarge is the error of a file that holds more than its kind can.
var errTooLarge = errors.New("file is too large")

// errNotRegular is the error of what is no regular file.
var errNotRegular = fmt.Errorf("not a regular file: %w", cellway.ErrInvalid)

// An opener opens files by name: an os.Root or the system.
type opener struct {
	stat func(name string) (fs.FileInfo, error)
	open func(name string, flag int, perm fs.FileMode) (*os.File, error)
	path func(name string) string // for messages
}

// openRegular opens a regular file and nothing else. To open a pipe may wait for
// ever, to open a device may do anything. The second look is at what was opened:
// it may be another thing by then.
func (o opener) openRegular(name string, flag int) (*os.File, fs.FileInfo, error) {
	if info, err := o.stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil, notRegular(o.path(name), info)
	}
	f, err := o.open(name, flag|dontWait, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(o.path(name), info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// read reads a regular file of at most that many bytes. The error wraps
// [errTooLarge] if it has more; then next to nothing of it was read.
func (o opener) read(name string, most int64) ([]byte, error) {
	f, info, err := o.openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := info.Size()
	if size <= most {
		b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		if size, err = b.ReadFrom(io.LimitReader(f, most+1)); err != nil {
			return nil, err
		}
		if size <= most {
			return b.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("%s has %d bytes, the most that it can have is %d: %w", o.path(name), size, most, errTooLarge)
}

// system opens files by their path.
func system() opener {
	return opener{os.Stat, os.OpenFile, func(path string) string { return path }}
}

// readRegular reads the regular file at a path, of at most that many bytes.
func readRegular(path string, most int64) ([]byte, error) { return system().read(path, most) }

func notRegular(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is %s; remove it, or put a file in its place: %w", path, kindOf(info.Mode()), errNotRegular)
}

// kindOf names what is no regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "no file"
}
