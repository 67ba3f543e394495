package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway/internal/regular"
)

// replaceFile writes a file so that its name always has a whole one, after a
// power cut too. What the name leads to is replaced, and not what leads there; a
// device or a pipe is written to.
func replaceFile(file string, mode fs.FileMode, write func(io.Writer) error) error {
	if to, err := filepath.EvalSymlinks(file); err == nil {
		file = to
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		return &fs.PathError{Op: "replace", Path: file, Err: errors.New("is a folder; name a file in it")}
	}
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	regular.Sweep(file)
	return regular.Make(file, mode, write, os.Rename)
}

// newFile writes a file that is not there yet, and whose name has a whole one
// from the first on. If somebody else makes it meanwhile, the error is
// [fs.ErrExist], and theirs stays.
func newFile(file string, mode fs.FileMode, write func(io.Writer) error) error {
	regular.Sweep(file)
	return regular.Make(file, mode, write, func(temp, file string) error {
		err := os.Link(temp, file)
		switch {
		case err == nil:
			return os.Remove(temp)
		case errors.Is(err, fs.ErrExist):
			return &fs.PathError{Op: "make", Path: file, Err: fs.ErrExist}
		}
		return claim(temp, file)
	})
}

// claim gives temp its name where a file can't have two: the name is made first.
func claim(temp, file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(temp, file)); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
