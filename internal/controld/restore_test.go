package controld

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// writeForever writes to a store, and waits to be killed.
func writeForever(path string) error {
	ctx := context.Background()
	st, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	if err != nil {
		return err
	}
	for i := range 200 {
		if err := st.Update(ctx, func(tx store.Tx) error {
			_, err := tx.Append("journal", fmt.Appendf(nil, `{"n":%d}`, 20+i))
			return err
		}); err != nil {
			return err
		}
	}
	fmt.Println("written")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// killed returns a store that a process died of, and a backup from before.
func killed(t *testing.T) (path, backup string) {
	t.Helper()
	dir := t.TempDir()
	path, backup = filepath.Join(dir, "fleet.db"), filepath.Join(dir, "backup.db")
	svcCfg := config(t)
	svcCfg.Store = path
	svcCfg.Keys = []string{filepath.Join(dir, "signing.pem")}
	s, err := New(t.Context(), svcCfg)
	if err != nil {
		t.Fatal(err)
	}
	fleet(t, s.service)
	f, err := os.Create(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.store.Backup(t.Context(), f), f.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("writer", path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("written\n"))
	_, err = io.ReadFull(out, said)
	child.Process.Kill()
	child.Wait()
	if err != nil || string(said) != "written\n" {
		t.Fatalf("the child said %q, %v", said, err)
	}
	return path, backup
}

// A log that a killed store left behind holds its pages. Beside a restored file
// of the same name SQLite would read them into it.
func TestWhatAKilledStoreLeftIsNotReadIntoARestoredOne(t *testing.T) {
	path, backup := killed(t)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("the killed store left no log: %v", err)
	}
	cfg := Config{Store: path}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := Restore(t.Context(), backup, cfg); !errors.Is(err, cellway.ErrExists) {
			t.Errorf("with %s there: %v", filepath.Base(name), err)
		}
		if err := os.Rename(name, name+".broken"); err != nil && name != path+"-shm" {
			t.Fatal(err)
		}
	}
	if err := Restore(t.Context(), backup, cfg); err != nil {
		t.Fatal(err)
	}
	st, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.View(t.Context(), func(tx store.Tx) error {
		end, err := tx.LogEnd("journal")
		if end > 20 {
			t.Errorf("the journal has %d lines; the killed store's are in it", end)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	svc, err := control.Open(t.Context(), control.Config{Store: st, Signers: mustSign(t)})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := svc.RestoreState(t.Context()); err != nil || state.Restored == nil {
		t.Errorf("the store is not marked as restored: %v", err)
	}
}

func TestAStoreInUseIsNotRestoredOver(t *testing.T) {
	path, backup := killed(t)
	st, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	// Somebody moved the file from under the process that has it open.
	if err := os.Rename(path, path+".broken"); err != nil {
		t.Fatal(err)
	}
	if err := Restore(context.Background(), backup, Config{Store: path}); !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("got %v", err)
	}
}

// mustSign signs with a key of its own.
func mustSign(t *testing.T) []routemap.Signer {
	t.Helper()
	signers, err := Config{}.signers()
	if err != nil {
		t.Fatal(err)
	}
	return signers
}

// A backup that is restored twice within a minute, as when the first try has gone
// wrong, is not the same memory twice: what the first has published, the second
// does not publish anew with other content.
func TestABackupRestoredTwiceGoesOnInTwoIncarnations(t *testing.T) {
	path, backup := killed(t)
	used := map[string]bool{}
	incarnation := func() {
		t.Helper()
		st, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if err := st.View(t.Context(), func(tx store.Tx) error {
			r, err := tx.Get("head", "fleet")
			if err != nil {
				return err
			}
			var head struct{ Incarnation json.Number }
			if err := json.Unmarshal(r.Body, &head); err != nil {
				return err
			}
			if used[head.Incarnation.String()] {
				t.Errorf("incarnation %s is used again", head.Incarnation)
			}
			used[head.Incarnation.String()] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	incarnation()
	for range 3 {
		moved := t.TempDir()
		all, err := filepath.Glob(path + "*") // as the page of backups says
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		for _, name := range all {
			if err := os.Rename(name, filepath.Join(moved, filepath.Base(name))); err != nil {
				t.Fatal(err)
			}
		}
		if err := Restore(t.Context(), backup, Config{Store: path}); err != nil {
			t.Fatal(err)
		}
		incarnation()
	}
}
