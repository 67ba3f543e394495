//go:build linux || darwin

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// A commit that fails in the midst leaves nobody knowing what the disk holds.
// So nothing more is written before the file was opened again.
func TestFailedCommitStopsWritesUntilReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), roleEnv+"=outgrow", pathEnv+"="+path)
	out, err := child.Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(string(e.Stderr))
		}
		t.Fatal(err)
	}
	var acked uint64
	if _, err := fmt.Sscan(string(out), &acked); err != nil || acked == 0 {
		t.Fatalf("the child says %q", out)
	}
	s := open(t, path)
	defer s.Close()
	if n := end(t, s); n < acked || n > acked+1 {
		t.Errorf("log ends at %d, %d were acknowledged", n, acked)
	}
	add(t, s)
}

// outgrow writes until the system refuses, and prints how often that worked.
func outgrow(ctx context.Context) error {
	path := os.Getenv(pathEnv)
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Create: true})
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 300_000, Max: was.Max}); err != nil {
		return err
	}
	acked := 0
	for {
		if _, err = writeOne(ctx, s, fmt.Sprint("r", acked)); err != nil {
			break
		}
		acked++
	}
	if !errors.Is(err, cellway.ErrStoreDown) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "disk") {
		return fmt.Errorf("the error is not clear: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if _, err := writeOne(ctx, s, "late"); !errors.Is(err, cellway.ErrStoreDown) || !strings.Contains(err.Error(), "restarted") {
		return fmt.Errorf("a write after a commit that failed: %w", err)
	}
	fmt.Println(acked)
	return nil
}
