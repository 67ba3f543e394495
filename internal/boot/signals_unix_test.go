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
	"time"
)

const slow = "CELLWAY_TEST_ENDS_SLOWLY"

// TestPlaysAProcessThatEndsSlowly is the child of the tests below.
func TestPlaysAProcessThatEndsSlowly(t *testing.T) {
	echo, err := time.ParseDuration(os.Getenv(slow))
	if err != nil {
		t.Skip("a part of another test")
	}
	ctx, stop := withSignals(context.Background(), echo)
	defer stop()
	fmt.Println("runs")
	<-ctx.Done()
	fmt.Println("ends:", context.Cause(ctx))
	for {
		time.Sleep(20 * time.Millisecond)
		fmt.Println("still there")
	}
}

// endsSlowly starts a process that takes signals so long apart for one order, and
// returns what it prints.
func endsSlowly(t *testing.T, echo time.Duration) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestPlaysAProcessThatEndsSlowly$")
	child.Env = append(os.Environ(), slow+"="+echo.String())
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
	return child, lines
}

// One order that comes twice, as timeout(1) passes it on, ends nothing at once.
func TestAnOrderThatComesTwiceIsOne(t *testing.T) {
	child, lines := endsSlowly(t, time.Hour)
	for n := 0; n < 10; {
		if !lines.Scan() {
			t.Fatalf("it ended: %v", child.Wait())
		}
		if lines.Text() == "still there" {
			n++
		}
	}
	child.Process.Kill()
	if err := child.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
}

// Two signals at once must not leave a process that ends slowly: the second
// one is not lost, however soon it comes.
func TestTheSecondSignalEndsTheProcessHoweverSoon(t *testing.T) {
	for range 10 {
		child, lines := endsSlowly(t, 0)
		for lines.Scan() {
			if s := lines.Text(); strings.HasPrefix(s, "ends:") && !strings.Contains(s, "terminated") && !strings.Contains(s, "interrupt") {
				t.Errorf("it says %q", s)
			}
		}
		err := child.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 128+int(syscall.SIGINT) && exit.ExitCode() != 128+int(syscall.SIGTERM) {
			t.Errorf("it ended with %v", err)
		}
	}
}
