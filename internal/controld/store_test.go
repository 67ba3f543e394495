package controld

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cellway/cellway"
)

func TestStoresThatCantBeOpenedAreRefused(t *testing.T) {
	used := config(t)
	first, err := New(t.Context(), used)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for _, tt := range []struct {
		name, store string
	}{
		{"another's", used.Store},
		{"no store", filepath.Join(t.TempDir(), "junk.db")},
		{"a folder", t.TempDir()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config(t)
			cfg.Init, cfg.Keys, cfg.Store = false, used.Keys, tt.store
			if tt.name == "no store" {
				if err := os.WriteFile(tt.store, []byte("not a database, but long enough to look at"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := New(t.Context(), cfg); !errors.Is(err, cellway.ErrInvalid) && !errors.Is(err, cellway.ErrInUse) && !errors.Is(err, cellway.ErrStoreDown) {
				t.Errorf("New: %v", err)
			}
		})
	}
}
