package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cellway/cellway"
)

// backupSuffix follows the store's name in that of a backup under way.
const backupSuffix = ".backup-"

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// Backup implements [store.Store]. What it writes is a SQLite file that [Open]
// opens and [Restore] checks. While it works it needs as much free space again,
// beside the store.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	f, err := os.CreateTemp(filepath.Dir(s.file), filepath.Base(s.file)+backupSuffix+"*") // mode 0600
	if err != nil {
		return s.fault("back up", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := s.copyTo(ctx, f.Name()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.fault("back up", err)
	}
	if _, err := io.Copy(w, reader{ctx, f}); err != nil {
		return fmt.Errorf("back up store %s: %w", s.path, err)
	}
	return nil
}

// copyTo writes a snapshot of the store to an empty file.
func (s *Store) copyTo(ctx context.Context, file string) error {
	db, err := open(s.file) // query_only would forbid it
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := connect(ctx, db)
	if err != nil {
		return err
	}
	defer c.close()
	return c.exec(ctx, "VACUUM INTO ?", file)
}

// A reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}

// Restore makes a new store at path from a backup. The backup is checked whole
// before anything has that name: what is cut off or damaged is an
// [cellway.ErrInvalid], and so is the file of another program or of a newer
// schema. A store that exists is an [cellway.ErrExists] and is left alone.
func Restore(ctx context.Context, backup io.Reader, path string) (err error) {
	file, lock, err := claim(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	return makeFile(path, file, "restore", func(f *os.File) error {
		if _, err := io.Copy(f, reader{ctx, backup}); err != nil {
			return fmt.Errorf("restore store %s: %w", path, err)
		}
		return checkBackup(ctx, path, f.Name())
	})
}

// vacant is an error if anything of a store is under the name file. SQLite
// would take a write-ahead log that an earlier store left for the new one's,
// and read the old pages into it.
func vacant(path, file string) error {
	for _, name := range []string{file, file + "-wal", file + "-shm", file + "-journal"} {
		_, err := os.Lstat(name)
		if err == nil {
			return fmt.Errorf("restore store %s: %s is there; stop what uses it and move it away first, with its -wal, -shm and -journal, which belong together: %w", path, name, cellway.ErrExists)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fault(path, "restore", err)
		}
	}
	return nil
}

// Install gives the closed store from the name path, for one that had to be
// finished before anything could open it there. Both are in one folder. A store
// under that name, or what one left behind, is an [cellway.ErrExists]; one that
// another process has open is an [cellway.ErrStoreDown].
func Install(from, path string) (err error) {
	source, err := locate(from, false)
	if err != nil {
		return err
	}
	file, lock, err := claim(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	for _, rest := range []string{source + "-wal", source + "-journal"} {
		if _, err := os.Lstat(rest); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore store %s: %s is there, so what was written last is not in the file: %w", path, rest, cellway.ErrInvalid)
		}
	}
	if err := os.Rename(source, file); err != nil {
		return fault(path, "restore", err)
	}
	return fault(path, "restore", syncFolder(filepath.Dir(file)))
}

// Vacant reports whether a store can be made at path: nothing of another one is
// there and no process has one open.
func Vacant(path string) error {
	_, lock, err := claim(path)
	if err != nil {
		return err
	}
	return lock.release()
}

// claim locks path for a new store, and finds out whether nothing of another
// one is there. It returns the file's own name.
func claim(path string) (file string, lock *lock, err error) {
	if file, err = locate(path, true); err != nil {
		return "", lock, err
	}
	if lock, err = takeLock(context.Background(), path, file); err != nil {
		return "", lock, err
	}
	if err := vacant(path, file); err != nil {
		return "", lock, errors.Join(err, lock.release())
	}
	return file, lock, nil
}

// checkBackup reports what a restored file lacks to be a store, after bringing
// its schema up to date.
func checkBackup(ctx context.Context, path, file string) error {
	db, err := open(file)
	if err != nil {
		return fault(path, "restore", err)
	}
	defer db.Close()
	c, err := connect(ctx, db)
	if err == nil {
		defer c.close()
		_, err = memory().upgrade(ctx, path, c)
	}
	if err == nil {
		err = memory().damage(ctx, c)
	}
	if err == nil {
		err = checkBlobs(ctx, c)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("restore store %s: the backup is not usable; take another one: %w: %w", path, cellway.ErrInvalid, err)
	}
	return nil
}
