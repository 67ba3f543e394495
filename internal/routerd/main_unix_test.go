//go:build unix

package routerd

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the command, for tests that need a process of its
// own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cellway-router": func() {
		ctx, stop := WithSignals(context.Background())
		status := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
