//go:build unix

package feed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cellway/cellway"
)

// lockFolder opens a folder and claims it for this process. The claim ends
// with the process, however that ends. If the folder can be read but not
// claimed for another reason than another process, it is returned beside the
// error.
func lockFolder(dir string) (disk, io.Closer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	f, _, err := folder{root}.opener().Open(lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return folder{root}, nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		root.Close()
		return nil, nil, fmt.Errorf("state folder %s is used by another process; give each router its own: %w", dir, cellway.ErrInUse)
	}
	if err != nil {
		f.Close()
		return folder{root}, nil, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return folder{root}, f, nil
}
