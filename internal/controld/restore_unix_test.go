//go:build unix

package controld

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cellway/cellway/internal/regular"
)

// To open a pipe that nobody writes to would take for ever.
func TestABackupIsAFile(t *testing.T) {
	dir := t.TempDir()
	pipe, store := filepath.Join(dir, "pipe"), filepath.Join(dir, "fleet.db")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, from := range []string{pipe, dir} {
		if err := Restore(t.Context(), from, Config{Store: store}); !errors.Is(err, regular.ErrNotRegular) {
			t.Errorf("from %s: %v", filepath.Base(from), err)
		}
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("there is a store")
	}
}
