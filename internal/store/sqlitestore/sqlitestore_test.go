package sqlitestore_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/internal/store/storetest"
)

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// open opens the store at path and makes it if need be.
func open(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Create: true, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	var paths sync.Map // by store
	at := func(t *testing.T, path string) store.Store {
		s := open(t, path)
		paths.Store(s, path)
		return s
	}
	storetest.Run(t, storetest.Maker{
		Open: func(t *testing.T) store.Store { return at(t, filepath.Join(t.TempDir(), "fleet.db")) },
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path, _ := paths.Load(s)
			return at(t, path.(string))
		},
		Restore: func(t *testing.T, backup []byte) (store.Store, error) {
			path := filepath.Join(t.TempDir(), "restored.db")
			if err := sqlitestore.Restore(t.Context(), bytes.NewReader(backup), path); err != nil {
				return nil, err
			}
			return at(t, path), nil
		},
	})
}
