package sqlitestore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// refused opens path, which must fail with want and name the path and each of
// the words.
func refused(t *testing.T, path string, o sqlitestore.Options, want error, words ...string) {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, o)
	if err == nil {
		s.Close()
		t.Errorf("open %s succeeded", path)
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
	for _, word := range append(words, path) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not name %q: %v", word, err)
		}
	}
}

// add appends one entry to a log.
func add(t *testing.T, s store.Store) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.Append("log", []byte(`1`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// end returns the number of the last entry of that log.
func end(t *testing.T, s store.Store) (n uint64) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) (err error) {
		n, err = tx.LogEnd("log")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMissingFileIsNotCreatedUnasked(t *testing.T) {
	dir := t.TempDir()
	refused(t, filepath.Join(dir, "fleet.db"), sqlitestore.Options{}, cellway.ErrNotFound, "mounted", "backup", "on purpose")
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	refused(t, filepath.Join(dir, "none", "fleet.db"), sqlitestore.Options{Create: true}, cellway.ErrNotFound, "folder")
}

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "fleet.db"))
	defer s.Close()
	add(t, s)
	var seen []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
		seen = append(seen, e.Name())
	}
	if got, want := fmt.Sprint(seen), "[fleet.db fleet.db-shm fleet.db-wal fleet.db.lock]"; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
}

func TestOpenFileIsWarnedOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), "0600") {
		t.Errorf("log says %q", log.String())
	}
}

func TestWrongFileIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, content []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	other := filepath.Join(dir, "other.db")
	script(t, other, "CREATE TABLE orders (id TEXT); PRAGMA user_version = 3; PRAGMA application_id = 77")
	newer := filepath.Join(dir, "newer.db")
	if err := open(t, newer).Close(); err != nil {
		t.Fatal(err)
	}
	script(t, newer, "PRAGMA user_version = 99")
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path  string
		words []string
	}{
		{path("empty", nil), []string{"empty"}},
		{path("text", []byte(strings.Repeat("hello ", 100))), []string{"not a SQLite file"}},
		{path("short", []byte("hi")), []string{"not a SQLite file"}},
		{folder, []string{"not a regular file"}},
		{other, []string{"application id 0x4d", "0x43656c77"}},
		{newer, []string{"schema version 99", "up to 1"}},
	} {
		was, _ := os.ReadFile(tt.path)
		refused(t, tt.path, sqlitestore.Options{Create: true}, cellway.ErrInvalid, tt.words...)
		if is, _ := os.ReadFile(tt.path); !bytes.Equal(is, was) {
			t.Errorf("%s was changed", tt.path)
		}
	}
}

// A check of settings finds a file that is no store before anything starts with it.
func TestCheckFileTellsAStoreFromAnotherFile(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "fleet.db")
	s := open(t, store)
	if err := sqlitestore.CheckFile(store); err != nil {
		t.Errorf("a store in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "hi", strings.Repeat("hello ", 100)} {
		path := filepath.Join(dir, "other")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sqlitestore.CheckFile(path); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), path+": this is not a SQLite file") {
			t.Errorf("%.10q: %v", text, err)
		}
	}
	if err := sqlitestore.CheckFile(dir); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a folder: %v", err)
	}
	if err := sqlitestore.CheckFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// script runs SQL on a file as another program would.
func script(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyFileIsRefused(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everything")
	}
	path := filepath.Join(t.TempDir(), "fleet.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlitestore.Options{}, cellway.ErrStoreDown, "for writing", "owner, mode and mount")
	folder := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o600), os.Remove(path+".lock"), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o700)
	refused(t, path, sqlitestore.Options{}, cellway.ErrStoreDown, "lock")
}

func TestTwoProcessesCantShareAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fleet.db")
	link := filepath.Join(dir, "link.db")
	s := open(t, path)
	add(t, s)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	pid := fmt.Sprint("process ", os.Getpid(), " ")
	refused(t, path, sqlitestore.Options{Create: true}, cellway.ErrStoreDown, pid, "stop that one first")
	refused(t, link, sqlitestore.Options{}, cellway.ErrStoreDown, pid)
	if err := sqlitestore.Restore(t.Context(), bytes.NewReader(nil), path); !errors.Is(err, cellway.ErrStoreDown) || !strings.Contains(err.Error(), pid) {
		t.Errorf("restore over a store in use: %v", err)
	}

	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), roleEnv+"=open", pathEnv+"="+path)
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), pid) || !strings.Contains(string(out), path) {
		t.Errorf("another process: %v, %s", err, out)
	}
	add(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, link)
	defer s.Close()
	if n := end(t, s); n != 2 {
		t.Errorf("log ends at %d, want 2", n)
	}
}

func TestLogOfAMissingFileStopsCreation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	if err := os.WriteFile(path+"-wal", []byte("newest changes"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, path, sqlitestore.Options{Create: true}, cellway.ErrExists, path+"-wal")
	if err := sqlitestore.Restore(t.Context(), bytes.NewReader(nil), path); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("restore beside a log: %v", err)
	}
}

func TestInterruptedWorkIsSweptAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]* 100%?")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "fleet #1.db")
	for _, name := range []string{path + ".new", path + ".backup-123", filepath.Join(dir, "my.backup-1")} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, path)
	add(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := fmt.Sprintf("%q", left), `["fleet #1.db" "fleet #1.db.lock" "my.backup-1"]`; got != want {
		t.Errorf("files are %s, want %s", got, want)
	}
}

func TestRestoreNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	s := open(t, path)
	add(t, s)
	var backup bytes.Buffer
	if err := errors.Join(s.Backup(t.Context(), &backup), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sqlitestore.Restore(t.Context(), &backup, path); !errors.Is(err, cellway.ErrExists) || !strings.Contains(err.Error(), path) {
		t.Errorf("restore over a store: %v", err)
	}
	s = open(t, path)
	defer s.Close()
	if n := end(t, s); n != 1 {
		t.Errorf("log ends at %d, want 1", n)
	}
}

func TestBackupOpensAsAStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "fleet.db"))
	defer s.Close()
	add(t, s)
	f, err := os.Create(filepath.Join(dir, "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Backup(t.Context(), f), f.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := sqlitestore.Open(t.Context(), f.Name(), sqlitestore.Options{Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	add(t, c)
	if a, b := end(t, s), end(t, c); a != 1 || b != 2 {
		t.Errorf("logs end at %d and %d, want 1 and 2", a, b)
	}
}

func TestLargeStoreOpensWithinItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	s := open(t, path)
	for range 50 {
		add(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []sqlitestore.Options{{CheckFor: time.Nanosecond}, {CheckFor: -1}} {
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := sqlitestore.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "too large"); told != (o.CheckFor > 0) {
			t.Errorf("bound %v: log says %q", o.CheckFor, log.String())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An operator can read the file while it is in use.
func TestShellReadsRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	s := open(t, path)
	defer s.Close()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.Put(store.Record{Kind: "cell", ID: "cell-001", Body: []byte(`{"admit":100}`), Index: []string{"state=active"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var admit int
	err = db.QueryRowContext(t.Context(), `SELECT body ->> '$.admit' FROM records JOIN record_index USING (kind, id) WHERE term = 'state=active'`).Scan(&admit)
	if err != nil || admit != 100 {
		t.Errorf("admit is %d, %v", admit, err)
	}
}
