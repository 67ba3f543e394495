//go:build unix

package boot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const slow = "CELLWAY_TEST_ENDS_SLOWLY"

// TestPlaysAProcessThatEndsSlowly is the child of the tests below.
func TestPlaysAProcessThatEndsSlowly(t *testing.T) {
	if os.Getenv(slow) == "" {
		t.Skip("a part of another test")
	}
	ctx, stop := WithSignals(context.Background())
	defer stop()
	fmt.Println("runs")
	<-ctx.Done()
	fmt.Println("ends:", context.Cause(ctx))
	select {}
}

// Two signals at once must not leave a process that ends slowly: the second
// one is not lost, however soon it comes.
func TestTheSecondSignalEndsTheProcessHoweverSoon(t *testing.T) {
	for range 10 {
		child := exec.Command(os.Args[0], "-test.run=^TestPlaysAProcessThatEndsSlowly$")
		child.Env = append(os.Environ(), slow+"=1")
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if lines.Scan(); lines.Text() != "runs" {
			child.Process.Kill()
			t.Fatalf("it says %q", lines.Text())
		}
		// Two kinds: the system joins two of one kind that come at once.
		for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
			if err := child.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
		for lines.Scan() {
			if s := lines.Text(); strings.HasPrefix(s, "ends:") && !strings.Contains(s, "terminated") && !strings.Contains(s, "interrupt") {
				t.Errorf("it says %q", s)
			}
		}
		err = child.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 128+int(syscall.SIGINT) && exit.ExitCode() != 128+int(syscall.SIGTERM) {
			t.Errorf("it ended with %v", err)
		}
	}
}
