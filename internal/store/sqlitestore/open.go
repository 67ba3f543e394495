package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway"
)

// Open opens the store at path and locks it until Close. A file that does not
// exist is an [cellway.ErrNotFound] unless o.Create; what is not a store, or one of
// a newer schema, is an [cellway.ErrInvalid] and is left alone; a damaged, locked
// or unreadable one wraps [cellway.ErrStoreDown]. The message says what helps.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	return memory().open(ctx, path, o)
}

// open opens a file of the format. Where several processes may have it, each
// has the lock for as long as it opens the file, and they take turns.
func (f format) open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	file, err := locate(path, o.Create)
	if err != nil {
		return nil, err
	}
	take := awaitLock
	if f.alone {
		take = takeLock
	}
	lock, err := take(ctx, path, file)
	if err != nil {
		return nil, err
	}
	s := &Store{format: f, path: path, file: file, lock: lock, log: o.log(), turn: make(chan struct{}, 1), blobs: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.discard())
		}
	}()
	if f.alone {
		s.sweep()
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := f.create(ctx, path, file); err != nil {
			return nil, err
		}
		s.log.Info("store created", "path", path)
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	if s.writes, err = open(file, forWriting()...); err != nil {
		return nil, s.fault("open", err)
	}
	s.writes.SetMaxOpenConns(1)
	if s.reads, err = open(file, forReading); err != nil {
		return nil, s.fault("open", err)
	}
	s.reads.SetMaxIdleConns(0) // this package keeps its own
	if s.writer, err = connect(ctx, s.writes); err != nil {
		return nil, s.fault("open", err)
	}
	var mode string
	if _, err := s.writer.row(ctx, "PRAGMA journal_mode", nil, &mode); err != nil {
		return nil, s.fault("open", err)
	}
	if mode != "wal" {
		return nil, fmt.Errorf("open store %s: its file system has no shared memory for the write-ahead log; put the file on a local disk: %w", path, cellway.ErrStoreDown)
	}
	if err := s.lookForDamage(ctx, o); err != nil {
		return nil, err
	}
	if f.tidy != "" {
		if _, err := s.writer.affect(ctx, f.tidy); err != nil {
			return nil, s.fault("open", err)
		}
	}
	if !f.alone {
		s.lock = nil
		if err := lock.release(); err != nil {
			return nil, s.fault("open", err)
		}
	}
	return s, nil
}

// locate checks what can be seen of path from outside, and returns the file
// that it leads to.
func locate(path string, create bool) (file string, err error) {
	if file, err = filepath.Abs(path); err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		abs, err := filepath.Abs(path)
		folder := filepath.Dir(abs)
		if err == nil {
			folder, err = filepath.EvalSymlinks(folder)
		}
		if err != nil {
			return "", fmt.Errorf("create store %s: its folder is not there; make it, or name another file with --store FILE: %w: %w", path, cellway.ErrNotFound, err)
		}
		return filepath.Join(folder, filepath.Base(abs)), nil
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("open store %s: there is no such file; check the path and whether its disk is mounted, restore a backup, or create a new store on purpose: %w", path, cellway.ErrNotFound)
	case err != nil:
		return "", fmt.Errorf("open store %s: %w: %w", path, cellway.ErrStoreDown, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("open store %s: %w: %w", path, cellway.ErrStoreDown, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("open store %s: it is not a regular file: %w", path, cellway.ErrInvalid)
	}
	return file, nil
}

// sqliteHead is how every SQLite file begins.
const sqliteHead = "SQLite format 3\x00"

// readHead returns as much of the beginning of a file, or all of it if it is shorter.
func readHead(r io.Reader) (string, error) {
	head := make([]byte, len(sqliteHead))
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return string(head[:n]), err
}

func notSQLite(what, mend string) error {
	return fmt.Errorf("%s: this is not a SQLite file, or its start is damaged; check the path, or %s: %w", what, mend, cellway.ErrInvalid)
}

// CheckFile reports why the file at path is not a store, as far as its beginning tells.
// It changes nothing, and leaves a store alone that is in use. The error wraps
// [cellway.ErrInvalid] if it is another file.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: %w", path, cellway.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	head, err := readHead(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if head != sqliteHead {
		return notSQLite(path, mend)
	}
	return nil
}

// probe looks at an existing file and brings its schema up to date. Until it
// is known for a store of ours, nothing is changed in it.
func (s *Store) probe(ctx context.Context) error {
	info, err := os.Stat(s.file)
	if err != nil {
		return s.fault("open", err)
	}
	if info.Size() == 0 {
		return fmt.Errorf("open store %s: the file is empty, which a store never is; restore a backup, or remove it and create a new store on purpose: %w", s.path, cellway.ErrInvalid)
	}
	if info.Mode().Perm()&0o077 != 0 {
		s.log.Warn("store can be read by others than its owner; make it 0600", "path", s.path, "mode", info.Mode().Perm().String())
	}
	// SQLite would open a read-only file as one, and fail at the first write.
	f, err := os.OpenFile(s.file, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open store %s: it can't be opened for writing; check owner, mode and mount: %w: %w", s.path, cellway.ErrStoreDown, err)
	}
	head, err := readHead(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return s.fault("read", err)
	}
	if head != sqliteHead {
		return notSQLite("open store "+s.path, mend)
	}
	db, err := open(s.file, "synchronous(FULL)", "fullfsync(1)")
	if err != nil {
		return s.fault("open", err)
	}
	defer db.Close()
	c, err := connect(ctx, db)
	if err != nil {
		return s.fault("open", err)
	}
	defer c.close()
	from, err := s.format.upgrade(ctx, s.path, c)
	if to := len(s.format.steps); err == nil && from != to {
		s.log.Info("store upgraded", "path", s.path, "from_schema", from, "to_schema", to)
	}
	return err
}

// create makes an empty store beside its final name and renames it, so that a
// file of that name is whole whenever the machine stops.
func (f format) create(ctx context.Context, path, file string) error {
	for _, rest := range []string{file + "-wal", file + "-shm", file + "-journal"} {
		if _, err := os.Lstat(rest); err == nil {
			return fmt.Errorf("create store %s: %s is there without the file that it belongs to and may hold the newest changes of a store that was moved or deleted; bring them together, or move it away: %w",
				path, rest, cellway.ErrExists)
		}
	}
	return makeFile(path, file, "create", func(w *os.File) error { return f.fill(ctx, path, w.Name()) })
}

// makeFile has write write a new file beside file, and then gives it that name.
func makeFile(path, file, doing string, write func(*os.File) error) error {
	fresh := file + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault(path, doing, err)
	}
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fault(path, doing, err)
	}
	defer f.Close()
	if err := write(f); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return settle(path, f, file)
}

// fill writes an empty store into an empty file.
func (f format) fill(ctx context.Context, path, file string) error {
	db, err := open(file)
	if err != nil {
		return fault(path, "create", err)
	}
	defer db.Close()
	c, err := connect(ctx, db)
	if err != nil {
		return fault(path, "create", err)
	}
	defer c.close()
	if err := c.exec(ctx, fmt.Sprintf("PRAGMA application_id = %d", f.app)); err != nil {
		return fault(path, "create", err)
	}
	_, err = f.upgrade(ctx, path, c)
	return err
}

// settle closes f, durable under its final name.
func settle(path string, f *os.File, file string) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fault(path, "create", err)
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return fault(path, "create", err)
	}
	return fault(path, "create", syncFolder(filepath.Dir(file)))
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		err = nil // not every system can, or needs to
	}
	return errors.Join(err, d.Close())
}

// sweep removes what interrupted backups left.
func (s *Store) sweep() {
	rests, err := filepath.Glob(globEscape(s.file) + backupSuffix + "*")
	if err != nil {
		return
	}
	for _, rest := range rests {
		if err := os.Remove(rest); err != nil {
			s.log.Warn("rest of an interrupted backup stays", "file", rest, "error", err)
		}
	}
}

// discard closes what a failed Open had opened.
func (s *Store) discard() error {
	if s.writer != nil {
		s.writer.close()
	}
	var err error
	if s.reads != nil {
		err = s.reads.Close()
	}
	if s.writes != nil {
		err = errors.Join(err, s.writes.Close())
	}
	return errors.Join(err, s.lock.release())
}
