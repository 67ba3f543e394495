package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a file so that its name always has a whole one.
func replaceFile(file string, mode fs.FileMode, write func(io.Writer) error) (err error) {
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
	return os.Rename(f.Name(), file)
}
