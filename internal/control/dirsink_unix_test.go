//go:build unix

package control_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/control"
)

// A pipe in the place of the manifest is an error, not a wait without end.
func TestAPipeForAManifestIsRefused(t *testing.T) {
	dir := t.TempDir()
	sink, err := control.NewDirSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if err := syscall.Mkfifo(filepath.Join(dir, "manifest"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { _, err := sink.Newest(context.Background()); result <- err }()
	select {
	case err := <-result:
		if err == nil || !strings.Contains(err.Error(), "named pipe") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a writer")
	}
}
