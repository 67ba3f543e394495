package serving

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is written while the file is opened again is in the old file or in the new one.
func TestOpeningALogFileAgainLosesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log")
	l, err := OpenLogFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const writes = 20_000
	var writing sync.WaitGroup
	writing.Go(func() {
		for range writes {
			if n, err := l.Write([]byte("line\n")); n != 5 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
				return
			}
		}
	})
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for again := true; again; {
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			again = false
		default:
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Count(string(b), "line\n") != writes || len(b) != 5*writes {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A file that can't be opened again is tried again, and tells.
func TestLogFileThatCantBeOpenedAgainIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		path := filepath.Join(dir, "access.log")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.Mkdir(dir, 0o700))
		l, err := OpenLogFile(path)
		must(err)
		defer l.Close()
		write := func() {
			t.Helper()
			_, err := l.Write([]byte("line\n"))
			must(err)
		}
		size := func(name string) int {
			b, _ := os.ReadFile(name)
			return len(b)
		}
		write()
		must(os.Rename(dir, dir+".gone"))
		if err := l.Reopen(); err == nil || !l.Stale() {
			t.Fatalf("Reopen = %v, stale %v", err, l.Stale())
		}
		write()
		must(os.Mkdir(dir, 0o700))
		write() // too soon to try
		if n := size(filepath.Join(dir+".gone", "access.log")); n != 15 {
			t.Errorf("the old file has %d bytes", n)
		}
		time.Sleep(reopenEvery)
		write()
		if n := size(path); n != 5 || l.Stale() {
			t.Errorf("the new file has %d bytes, stale %v", n, l.Stale())
		}
	})
}

// The end of a line that was torn in the old file is no line of the new one.
func TestNewLogFileBeginsWithALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := OpenLogFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(all ...string) {
		t.Helper()
		for _, s := range all {
			if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
	}
	read := func(path, want string) {
		t.Helper()
		if b, err := os.ReadFile(path); string(b) != want {
			t.Errorf("%s has %q, %v", filepath.Base(path), b, err)
		}
	}
	write("one\n", "tor")
	if err := errors.Join(os.Rename(path, path+".1"), l.Reopen()); err != nil {
		t.Fatal(err)
	}
	write("\n", "two\n", "\n")
	if err := l.Reopen(); err != nil { // it is the same one, which has something
		t.Fatal(err)
	}
	write("\n", "three\n")
	read(path+".1", "one\ntor")
	read(path, "two\n\n\nthree\n")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
