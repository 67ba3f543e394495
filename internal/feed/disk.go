package feed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway/internal/regular"
)

// A disk is what the store asks of a folder. Names have no separators.
type disk interface {
	ReadFile(name string, most int64) ([]byte, error) // a regular file of at most that many bytes
	Size(name string) (int64, error)                  // of a regular file, without opening it
	List() ([]string, error)
	Create(name string) (diskFile, error)    // a new file; it must not exist
	OpenWrite(name string) (diskFile, error) // to write in place; made if it does not exist
	Rename(from, to string) error
	Remove(name string) error
	Sync() error // makes the names durable
	Close() error
}

// A diskFile is an open file of a disk.
type diskFile interface {
	io.Writer
	io.WriterAt
	Sync() error     // makes content and size durable
	DataSync() error // makes content durable
	Close() error
}

// A folder is a disk under an os.Root, so that no name leads out of it.
type folder struct{ root *os.Root }

func openFolder(dir string) (disk, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return folder{root}, nil
}

func (f folder) Rename(from, to string) error { return f.root.Rename(from, to) }
func (f folder) Remove(name string) error     { return f.root.Remove(name) }
func (f folder) Close() error                 { return f.root.Close() }

func (f folder) opener() regular.Opener {
	return regular.Opener{Stat: f.root.Stat, OpenFile: f.root.OpenFile, Path: func(name string) string { return filepath.Join(f.root.Name(), name) }}
}

func (f folder) ReadFile(name string, most int64) ([]byte, error) { return f.opener().Read(name, most) }

func (f folder) Size(name string) (int64, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, regular.Refuse(f.opener().Path(name), info)
	}
	return info.Size(), nil
}

func (f folder) List() ([]string, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (f folder) Create(name string) (diskFile, error) {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f folder) OpenWrite(name string) (diskFile, error) {
	file, _, err := f.opener().Open(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f folder) Sync() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	err = dir.Sync()
	if cerr := dir.Close(); err == nil {
		err = cerr
	}
	return err
}

type osFile struct{ *os.File }

func (f osFile) DataSync() error { return dataSync(f.File) }

// writeWhole puts data under name such that after a crash the name holds
// either what it held before or all of data: a temporary file, its fsync, the
// rename. The name itself is durable after the folder's Sync.
func writeWhole(d disk, name string, data []byte) error {
	tmp := tempPrefix + name
	if err := d.Remove(tmp); err != nil && !isNotExist(err) {
		return fmt.Errorf("remove old %s: %w", tmp, err)
	}
	f, err := d.Create(tmp)
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		if err = d.Rename(tmp, name); err != nil {
			if _, odd := d.Size(name); errors.Is(odd, regular.ErrNotRegular) {
				err = fmt.Errorf("%w: %w", odd, err)
			}
		}
	}
	if err != nil {
		_ = d.Remove(tmp) // the next start removes it too
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// tempPrefix begins the names of files that are being written.
const tempPrefix = "tmp-"

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
