package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	return makeFile(file, mode, write, os.Rename)
}

// newFile writes a file that is not there yet, and whose name has a whole one
// from the first on. If somebody else makes it meanwhile, the error is
// [fs.ErrExist], and theirs stays.
func newFile(file string, mode fs.FileMode, write func(io.Writer) error) error {
	return makeFile(file, mode, write, func(temp, file string) error {
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

// makeFile writes a file beside the one it is to be, and has name give it its
// name when all of it is on the disk.
func makeFile(file string, mode fs.FileMode, write func(io.Writer) error, name func(temp, file string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		if bad, ok := errors.AsType[*fs.PathError](err); ok { // of a name that nobody gave
			err = &fs.PathError{Op: "make", Path: file, Err: bad.Err}
		}
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := name(f.Name(), file); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

// syncFolder makes the names in a folder last. One that may be written but not
// read is left to the system.
func syncFolder(name string) error {
	d, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
