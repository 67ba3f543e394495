package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ownerName is the file in a folder of [TempDir] that its process holds locked.
const ownerName = ".cellway-owner"

// TempDir makes a new folder in the system's folder for temporary files, whose
// name begins with prefix, and returns how to remove it with all in it. First it
// removes what processes that were killed have left under that prefix: such a
// folder has the mark of this function, and the process that held it has gone.
// Nothing else is touched, and what can't be removed stays.
//
// Who drops remove drops the mark: the folder is swept as abandoned then.
func TempDir(prefix string) (dir string, remove func() error, err error) {
	sweep(os.TempDir(), prefix)
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", nil, err
	}
	owner, err := own(dir)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("folder %s: %w", dir, err), os.RemoveAll(dir))
	}
	return dir, func() error {
		err := removeMarked(dir)
		if owner != nil {
			err = errors.Join(err, owner.Close()) // not before: another process would sweep it, too
		}
		return err
	}, nil
}

// removeMarked removes a folder, its mark last: one without a mark would stay for
// ever, should the process be killed meanwhile.
func removeMarked(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs error
	for _, e := range entries {
		if e.Name() != ownerName {
			errs = errors.Join(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if errs != nil {
		return errs
	}
	return os.RemoveAll(dir)
}

// own marks dir as this process's until the process ends or the mark is closed;
// nil where the system has no such lock. The mark has its name only when it is
// locked, so that nobody takes the folder for abandoned meanwhile.
func own(dir string) (io.Closer, error) {
	fresh := filepath.Join(dir, ownerName+".new")
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(f)
	if err == nil && locked {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err == nil && locked {
		err = os.Rename(fresh, filepath.Join(dir, ownerName))
	}
	if err != nil || !locked {
		return nil, errors.Join(err, f.Close(), os.Remove(fresh))
	}
	return f, nil
}

// sweep removes the folders of processes that have gone.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // MkdirTemp will say so
	}
	for _, e := range entries {
		if dir := filepath.Join(parent, e.Name()); strings.HasPrefix(e.Name(), prefix) && e.IsDir() && ours(dir) {
			sweepOne(dir)
		}
	}
}

// sweepOne removes dir if it has the mark and nobody holds it.
func sweepOne(dir string) {
	name := filepath.Join(dir, ownerName)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if locked, err := tryLock(f); err == nil && locked {
		_ = removeMarked(dir) // what stays is tried again at the next start
	}
}
