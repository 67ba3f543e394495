package sqlitestore

import (
	"errors"
	"fmt"

	"github.com/cellway/cellway"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// errDamaged marks what the file holds but nobody wrote.
var errDamaged = errors.New("damaged")

// mend says what an operator can do about damage.
const mend = "stop the control plane, keep this file aside and restore the last backup"

// fault says which file failed while doing what, and what helps. It wraps
// [cellway.ErrStoreDown]. nil stays nil.
func (s *Store) fault(doing string, err error) error { return fault(s.path, doing, err) }

func fault(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s store %s: %s: %w: %w", doing, path, advice(err), cellway.ErrStoreDown, err)
}

// primary returns the primary result code of SQLite in err, or -1.
func primary(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return -1
}

// isIO reports whether the system could not do what SQLite asked of it.
func isIO(err error) bool { return primary(err) == sqlite3.SQLITE_IOERR }

// advice says what is wrong and what helps.
func advice(err error) string {
	if errors.Is(err, errDamaged) {
		return "the file is damaged; " + mend
	}
	switch primary(err) {
	case sqlite3.SQLITE_FULL:
		return "the disk is full; free some space, then try again"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the file locked; end the sqlite3 shell or backup tool that has it open"
	case sqlite3.SQLITE_READONLY:
		return "the file or its folder is read-only; check owner, mode and mount"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "the file can't be opened; check owner and mode of the file and its folder"
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged; " + mend
	case sqlite3.SQLITE_NOTADB:
		return "this is not a SQLite file, or its start is damaged; check the path, or " + mend
	case sqlite3.SQLITE_IOERR:
		return "the disk can't be read or written; look at the system's log, mend the disk, then restart the control plane"
	case sqlite3.SQLITE_NOMEM:
		return "there is not enough memory"
	case sqlite3.SQLITE_TOOBIG:
		return "a record is too large for SQLite, which takes up to 1 GB"
	default:
		return "the store does not work"
	}
}
