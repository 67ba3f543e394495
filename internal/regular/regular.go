// Package regular is for files that are nothing but files.
//
// A name in a setting or a folder may stand for a pipe that nobody writes to, a
// device, or far more bytes than memory has. A program that only reads a
// certificate or a map must neither wait for these nor end by them. What it writes
// must be there whole or not at all, after a power cut too.
package regular

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cellway/cellway"
)

// ErrTooLarge is the error of a file that holds more than its kind can.
var ErrTooLarge = errors.New("file is too large")

// ErrNotRegular is the error of what is no regular file.
var ErrNotRegular = fmt.Errorf("not a regular file: %w", cellway.ErrInvalid)

// An Opener opens files by name: those of an os.Root, or of the system.
type Opener struct {
	Stat     func(name string) (fs.FileInfo, error)
	OpenFile func(name string, flag int, perm fs.FileMode) (*os.File, error)
	Path     func(name string) string // for messages
}

// Open opens a regular file and nothing else. To open a pipe may wait for
// ever, to open a device may do anything. The second look is at what was opened:
// it may be another thing by then.
func (o Opener) Open(name string, flag int) (*os.File, fs.FileInfo, error) {
	if info, err := o.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil, Refuse(o.Path(name), info)
	}
	f, err := o.OpenFile(name, flag|DontWait, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = Refuse(o.Path(name), info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read reads a regular file of at most that many bytes. The error wraps
// [ErrTooLarge] if it has more; then next to nothing of it was read.
func (o Opener) Read(name string, most int64) ([]byte, error) {
	f, info, err := o.Open(name, os.O_RDONLY)
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
	return nil, fmt.Errorf("%s has %d bytes, the most that it can have is %d: %w", o.Path(name), size, most, ErrTooLarge)
}

// System opens files by their path.
func System() Opener {
	return Opener{os.Stat, os.OpenFile, func(path string) string { return path }}
}

// Read reads the regular file at a path, of at most that many bytes: see
// [Opener.Read].
func Read(path string, most int64) ([]byte, error) { return System().Read(path, most) }

// Refuse is the error of what info says is no regular file.
func Refuse(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is %s; remove it, or put a file in its place: %w", path, kindOf(info.Mode()), ErrNotRegular)
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
