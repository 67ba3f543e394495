//go:build unix

package boot

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAPipeForASettingsFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "conf")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parsed(t, "--config", path); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("got %v", err)
	}
}
