//go:build unix

package serving

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// within fails the test unless f returns in some seconds.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s waits for whoever is at the pipe's other end", what)
	}
}

// A pipe whose reader does not read holds up no one who closes the log.
func TestALogThatNobodyReadsCanBeClosed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := &LogFile{path: "none", f: w}
	done := make(chan struct{})
	go func() { defer close(done); l.Write(make([]byte, 4<<20)) }() // more than any pipe holds
	if _, err := r.Read(make([]byte, 1)); err != nil {              // it is writing now
		t.Fatal(err)
	}
	within(t, "closing", func() { l.Close() })
	within(t, "the write", func() { <-done })
}

// What is no file is told at once, in whatever setting.
func TestPipesInThePlaceOfFilesAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func() error{
		"access-log": func() error { _, err := OpenLogFile(path); return err },
		"tls-cert":   func() error { return (&Certificates{setting: "tls-cert", files: [][2]string{{path, path}}}).load() },
		"cell-ca":    func() error { _, err := (&Authorities{setting: "cell-ca", path: path}).load(true); return err },
	} {
		within(t, what, func() {
			err := read()
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", what, err)
			}
			if what == "access-log" && !strings.Contains(err.Error(), "nobody reads the pipe") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
