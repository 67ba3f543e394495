package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway/internal/regular"
)

// A keeper keeps the last good list of a source on disk, so that a gateway that
// starts with nobody to ask starts from there.
type keeper struct {
	path string // "" for none
}

// load returns the list, or nil if there is none.
func (k keeper) load() (*Workers, error) {
	if k.path == "" {
		return nil, nil
	}
	b, err := regular.Read(k.path, MaxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kept list of workers: %w", err)
	}
	w, err := ParseWorkers(b)
	if err != nil {
		return nil, fmt.Errorf("kept list of workers %s: %w", k.path, err)
	}
	return w, nil
}

// save writes w in place of what is there, or leaves that whole. Only its owner
// may read it, for the salt.
func (k keeper) save(w *Workers) error {
	if k.path == "" {
		return nil
	}
	b, err := json.Marshal(w)
	if err == nil {
		err = keepFile(k.path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the list of workers: %w", err)
	}
	return nil
}

// keepFile writes b in place of what is there, or leaves that whole. Only its owner
// may read it.
func keepFile(path string, b []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".workers-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to tell
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
