//go:build unix

package controld

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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

// Whatever becomes of those who read its log, a control plane answers, and stops
// in time.
func TestAControlPlaneNeedsNobodyToReadItsLog(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, gone := range map[string]bool{"stuck": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			command := filepath.Join(t.TempDir(), "cellway-control") // by this name the test binary is the command
			if err := os.Symlink(self, command); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			listen := l.Addr().String()
			l.Close()
			cmd := exec.Command(command, "--store", Memory, "--listen", listen, "--log-level", "debug")
			cmd.Stderr = unread(t, gone)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			t.Cleanup(func() { cmd.Process.Kill() })
			url := "http://" + listen + "/v1/cells"
			for end := time.Now().Add(15 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if resp, err := http.Get(url); err == nil {
					resp.Body.Close()
					break
				} else if time.Now().After(end) {
					t.Fatal(err)
				}
			}
			for range 300 { // each leaves a line
				if code, body := get(t, http.DefaultClient, url); code != http.StatusOK {
					t.Fatalf("%d %s", code, body)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
		})
	}
}
