//go:build unix

package routerd

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/serving/servingtest"
	"github.com/cellway/cellway/internal/testlog"
)

// unread returns a pipe for a process to write to whose reader is gone, or is
// there and never reads; then the pipe is full.
func unread(t *testing.T, gone bool) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); r.Close() })
	if gone {
		r.Close()
		return w
	}
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 8<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("filling the pipe: %v", err)
	}
	return w
}

// Whatever becomes of those who read its logs, a router serves, takes maps and
// stops in time.
func TestARouterNeedsNobodyToReadItsLogs(t *testing.T) {
	for name, gone := range map[string]bool{"stuck": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := f.path("cellway-router") // by this name the test binary is the command
			if err := os.Symlink(self, command); err != nil {
				t.Fatal(err)
			}
			listen, admin := freeAddress(t), freeAddress(t)
			cmd := exec.Command(command, f.args("--listen", "", "--listen", listen, "--admin", admin, "--log-level", "debug", "--access-log", "-")...)
			cmd.Stderr, cmd.Stdout = unread(t, gone), unread(t, gone)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			t.Cleanup(func() { cmd.Process.Kill() })
			p := process{&servingtest.Process{T: t, Log: new(testlog.Text), Listen: []string{"http://" + listen}, Admin: "http://" + admin}}
			p.Ready()
			for range 300 {
				p.wantCell("acme", "cell-001")
			}
			f.place("initech", "cell-002")
			p.Eventually("the next map", func() error {
				if status, body := p.get(p.Listen[0]+"/", "initech"); status != http.StatusOK {
					return fmt.Errorf("%d %s", status, body)
				}
				return nil
			})
			terminate(t, cmd.Process)
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(15 * time.Second):
				t.Fatal("it does not end")
			}
		})
	}
}
