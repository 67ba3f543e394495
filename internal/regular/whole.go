package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// tempMark stands between the name of a file and the digits of one that is being
// written to take its place. [Sweep] knows by it what is ours.
const tempMark = ".cellway-"

// sweepAfter is how long nothing was written to a file that [Sweep] removes. Who
// writes one is done sooner, or has gone.
const sweepAfter = time.Hour

// A Name gives a whole file its name. It moves temp, which is beside path.
type Name func(temp, path string) error

// Make writes a file beside the one it is to be, and has name give it its name when
// all of it is on the disk. After an error, or if the machine stops, path is what it
// was, or whole. What is left beside it by a process that was killed, [Sweep] removes.
func Make(path string, mode fs.FileMode, write func(io.Writer) error, name Name) error {
	return system().make(path, mode, write, name)
}

// Replace puts b in the place of what path holds, by [Make].
func Replace(path string, mode fs.FileMode, b []byte) error {
	return Make(path, mode, func(w io.Writer) error { _, err := w.Write(b); return err }, os.Rename)
}

// CheckMake reports why [Make] could not make path. It leaves nothing behind.
func CheckMake(path string) error {
	Sweep(path)
	f, err := create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Sweep removes what was left beside path by processes that were killed while they
// made it: files of the names that [Make] gives, and of the prefixes that earlier
// builds gave, followed by nothing but digits, to which nothing was written for an
// hour. What can't be removed stays. It returns the names of what went.
func Sweep(path string, earlier ...string) (removed []string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // whoever makes the file will say so
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !temporary(e.Name(), append(earlier, tempPrefix(path))) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < sweepAfter {
			continue
		}
		name := filepath.Join(filepath.Dir(path), e.Name())
		if os.Remove(name) == nil {
			removed = append(removed, name)
		}
	}
	return removed
}

func temporary(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if digits, ok := strings.CutPrefix(name, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return false
}

// tempPrefix begins the names of files that are to become path.
func tempPrefix(path string) string {
	base := filepath.Base(path)
	return "." + base[:min(len(base), 200)] + tempMark // a name has 255 bytes at most
}

// create makes a file that is to become path.
func create(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*")
	if bad, ok := errors.AsType[*fs.PathError](err); ok { // of a name that nobody gave
		return nil, &fs.PathError{Op: "make", Path: path, Err: bad.Err}
	}
	return f, err
}

// The steps of [Make] that may fail.
type steps struct {
	create func(path string) (*os.File, error)
	sync   func(f *os.File) error
	name   func(name Name, temp, path string) error
	last   func(folder string) error // makes the names of a folder last
}

func system() steps {
	return steps{create, (*os.File).Sync, func(name Name, temp, path string) error { return name(temp, path) }, SyncFolder}
}

func (s steps) make(path string, mode fs.FileMode, write func(io.Writer) error, name Name) (err error) {
	f, err := s.create(path)
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			f.Close()
			_ = os.Remove(temp) // it has its name already, or the first error is the one to tell
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if err := s.sync(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.name(name, temp, path); err != nil {
		return err
	}
	if err := s.last(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s is written, and may be lost if the machine stops: %w", path, err)
	}
	return nil
}

// SyncFolder makes the names in a folder last. One that may be written but not read is
// left to the system, as all are on Windows, which can't be asked for it.
func SyncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
