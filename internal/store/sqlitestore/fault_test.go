package sqlitestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

func openNew(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "fleet.db"), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func putOne(ctx context.Context, s *Store, id string, size int) error {
	return s.Update(ctx, func(tx store.Tx) error {
		_, err := tx.Put(store.Record{Kind: "cell", ID: id, Body: fmt.Appendf(nil, "%q", strings.Repeat("x", size))})
		return err
	})
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) (err error) {
		n, err = tx.Count("cell", "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantWords(t *testing.T, err error, path string, words ...string) {
	t.Helper()
	if !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("error is %v, want a store that is not usable", err)
		return
	}
	for _, word := range append(words, path) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not say %q: %v", word, err)
		}
	}
}

func TestFullDiskRefusesWritesAndLosesNone(t *testing.T) {
	s := openNew(t)
	if err := putOne(t.Context(), s, "before", 10); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		t.Helper()
		if s.writer == nil { // closed because SQLite had ended the transaction
			if err := s.Update(t.Context(), func(store.Tx) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.writer.row(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil, new(int)); err != nil {
			t.Fatal(err)
		}
	}
	limit(40)
	var err error
	n := 1
	for ; err == nil && n < 1000; n++ {
		err = putOne(t.Context(), s, fmt.Sprint("r", n), 5000)
	}
	wantWords(t, err, s.path, "full", "free some space")
	if got := count(t, s); got != n-1 {
		t.Errorf("%d records, acknowledged were %d", got, n-1)
	}
	limit(40)
	// A fault that the caller ignores ends the update all the same.
	err = s.Update(t.Context(), func(tx store.Tx) error {
		_, _ = tx.Put(store.Record{Kind: "cell", ID: "small", Body: []byte(`1`)})
		_, err := tx.Put(store.Record{Kind: "cell", ID: "big", Body: fmt.Appendf(nil, "%q", strings.Repeat("x", 1<<20))})
		if err == nil {
			t.Error("a record that has no room was written")
		}
		if _, err := tx.Get("cell", "before"); err == nil {
			t.Error("the transaction goes on after a fault")
		}
		return nil
	})
	wantWords(t, err, s.path, "full")
	if got := count(t, s); got != n-1 {
		t.Errorf("%d records, acknowledged were %d", got, n-1)
	}
	limit(1 << 20)
	if err := putOne(t.Context(), s, "after", 5000); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestFileLockedByAnotherProgram(t *testing.T) {
	s := openNew(t)
	if err := s.writer.exec(t.Context(), "PRAGMA busy_timeout = 20"); err != nil {
		t.Fatal(err)
	}
	db, err := open(s.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shell, err := connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.close()
	if err := shell.exec(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	wantWords(t, putOne(t.Context(), s, "a", 1), s.path, "another program", "sqlite3 shell")
	if n := count(t, s); n != 0 {
		t.Errorf("%d records", n)
	}
	if err := shell.exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := putOne(t.Context(), s, "a", 1); err != nil {
		t.Errorf("with the file free again: %v", err)
	}
}

func TestDeadConnectionsAreReplaced(t *testing.T) {
	s := openNew(t)
	for i := range 3 {
		if err := putOne(t.Context(), s, fmt.Sprint("r", i), 1); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s); n != i+1 {
			t.Errorf("%d records, want %d", n, i+1)
		}
		_ = s.Update(t.Context(), func(tx store.Tx) error { // dies within
			return s.writer.close()
		})
		_ = putOne(t.Context(), s, "lost", 1)
		_ = s.View(t.Context(), func(v store.Tx) error { return v.(*tx).c.close() })
		_ = s.Update(t.Context(), func(store.Tx) error { return errors.New("nothing") })
	}
}

func TestEditByHandIsNoticed(t *testing.T) {
	s := openNew(t)
	for _, id := range []string{"a", "b"} {
		if err := putOne(t.Context(), s, id, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.writer.exec(t.Context(), `UPDATE records SET body = '"y"' WHERE id = 'b'`); err != nil {
		t.Fatal(err)
	}
	err := s.View(t.Context(), func(tx store.Tx) error {
		if _, err := tx.Get("cell", "a"); err != nil {
			t.Errorf("an untouched record: %v", err)
		}
		_, err := tx.Get("cell", "b")
		return err
	})
	wantWords(t, err, s.path, "cell b does not match its checksum", "backup")
}

func TestContradictionsAreFound(t *testing.T) {
	for sql, word := range map[string]string{
		"DELETE FROM logs WHERE number = 1":                                        "log l has gaps",
		"DELETE FROM record_index WHERE id = 'a'":                                  "index of k a lacks x",
		"INSERT INTO record_index VALUES ('k', 'y', 'a')":                          "the index has too much",
		"UPDATE index_terms SET records = 3":                                       "count of k under x is wrong",
		"DELETE FROM index_terms":                                                  "count of k under x is missing",
		"UPDATE kinds SET records = 7":                                             "count of k is wrong",
		"INSERT INTO kinds VALUES ('ghost', 0, 1)":                                 "count of ghost is wrong",
		"UPDATE logs SET body = '7' WHERE number = 2":                              "log l at entry 2",
		"UPDATE records SET terms = '[]'":                                          "k a does not match its checksum",
		"UPDATE records SET revision = 9":                                          "k a does not match its checksum",
		"INSERT INTO blobs VALUES ('00', 5, 0)":                                    "blob 00 lacks chunks",
		"INSERT INTO blob_chunks VALUES ('00', 0, x'00'); -- a rest does not hurt": "",
	} {
		t.Run(sql, func(t *testing.T) {
			s := openNew(t)
			err := s.Update(t.Context(), func(tx store.Tx) error {
				for range 3 {
					if _, err := tx.Append("l", []byte(`1`)); err != nil {
						return err
					}
				}
				_, err := tx.Put(store.Record{Kind: "k", ID: "a", Body: []byte(`1`), Index: []string{"x"}})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.writer.c.ExecContext(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			err = s.lookForDamage(t.Context(), Options{})
			if word == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantWords(t, err, s.path, word, "damaged")
		})
	}
}

func TestSchemaIsUpgradedStepByStep(t *testing.T) {
	s := openNew(t)
	if err := putOne(t.Context(), s, "a", 1); err != nil {
		t.Fatal(err)
	}
	c := s.writer
	two := append(steps(), "CREATE TABLE second (a TEXT) STRICT; INSERT INTO second VALUES ('kept')")
	three := append(two, "CREATE TABLE third (a TEXT) STRICT; INSERT INTO nowhere VALUES (1)")
	for range 2 { // the second time there is nothing to do
		if _, err := (format{app: memory().app, steps: two}).upgrade(t.Context(), s.path, c); err != nil {
			t.Fatal(err)
		}
	}
	_, err := format{app: memory().app, steps: three}.upgrade(t.Context(), s.path, c)
	wantWords(t, err, s.path, "version 3", "nowhere")
	var tables, kept int
	if _, err := c.row(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name = 'third'", nil, &tables); err != nil || tables != 0 {
		t.Errorf("a step that failed left a table: %v", err)
	}
	if _, err := c.row(t.Context(), "SELECT count(*) FROM second", nil, &kept); err != nil || kept != 1 {
		t.Errorf("a step that succeeded is gone: %v", err)
	}
	if _, v, err := version(t.Context(), c); v != 2 || err != nil {
		t.Errorf("schema version is %d, %v; want 2", v, err)
	}
	// The older program meets the newer file.
	_, err = memory().upgrade(t.Context(), s.path, c)
	if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "version 2") || !strings.Contains(err.Error(), "up to 1") {
		t.Errorf("error is %v", err)
	}
	if n := count(t, s); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// A blob whose writing was cut short is no blob, is in nobody's way, and is
// gone after the next opening.
func TestRestsOfABlob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	s, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := []byte(strings.Repeat("blob", chunkSize))
	d := sha256.Sum256(b)
	rest := func(digest [32]byte) {
		t.Helper()
		for part := range 2 {
			if err := s.writer.exec(t.Context(), "INSERT INTO blob_chunks VALUES (?, ?, ?)", hex.EncodeToString(digest[:]), part, []byte("half")); err != nil {
				t.Fatal(err)
			}
		}
	}
	rest(d)
	rest([32]byte{1})
	if _, err := s.Blob(t.Context(), d); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("half a blob: %v", err)
	}
	if err := s.PutBlob(t.Context(), d, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var names int
	if _, err := s.writer.row(t.Context(), "SELECT count(DISTINCT digest) FROM blob_chunks", nil, &names); err != nil || names != 1 {
		t.Errorf("chunks of %d blobs, %v; want 1", names, err)
	}
	if got, err := s.Blob(t.Context(), d); err != nil || string(got) != string(b) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A damaged blob is an error, and putting it again mends it.
func TestDamagedBlobIsMendedByPuttingIt(t *testing.T) {
	s := openNew(t)
	b := []byte("blob")
	d := sha256.Sum256(b)
	for _, damage := range []string{"UPDATE blob_chunks SET content = x'626c6f62ff'", "UPDATE blob_chunks SET content = x'626c6f63'", "DELETE FROM blob_chunks"} {
		if err := s.PutBlob(t.Context(), d, b); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Blob(t.Context(), d); err != nil || string(got) != "blob" {
			t.Fatalf("blob = %q, %v", got, err)
		}
		if err := s.writer.exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		got, err := s.Blob(t.Context(), d)
		wantWords(t, err, s.path, "damaged", hex.EncodeToString(d[:]))
		if got != nil {
			t.Errorf("got %q", got)
		}
	}
}
