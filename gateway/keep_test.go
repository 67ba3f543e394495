package gateway

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A gateway that is killed while it keeps its list leaves a file with the salt in it.
// The next start finds it.
func TestAStartRemovesWhatAKilledOneLeftBesideItsList(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, "workers.json")
	old := time.Now().Add(-24 * time.Hour)
	for _, name := range []string{".workers-1234", ".workers.json.cellway-5678", ".workers.json", ".other.json.cellway-5678"} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600), os.Chtimes(filepath.Join(dir, name), old, old)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewControl(ControlConfig{URLs: []string{"http://control:7700"}, Cell: "cell-001", Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != ".other.json.cellway-5678" || left[1].Name() != ".workers.json" {
		t.Errorf("left are %v, %v", left, err)
	}
}
