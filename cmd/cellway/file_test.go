package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// holds checks what a file holds, and that nothing stands beside those of its
// folder.
func holds(t *testing.T, file, want string, beside int) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", filepath.Base(file), got, err, want)
	}
	all, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(all) != 1+beside {
		t.Errorf("the folder has %v, %v", all, err)
	}
}

func TestANewFileOverwritesNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := newFile(file, 0o600, writes("one")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := newFile(file, 0o600, writes("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	holds(t, file, "one", 0)

	// Made by somebody else while it was written.
	late := filepath.Join(t.TempDir(), "copy.db")
	err := newFile(late, 0o600, func(w io.Writer) error { return os.WriteFile(late, []byte("theirs"), 0o600) })
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	holds(t, late, "theirs", 0)
}

// As on a file system that knows no links.
func TestAFileThatCantHaveTwoNamesClaimsItsOwn(t *testing.T) {
	dir := t.TempDir()
	temp, file := filepath.Join(dir, "temp"), filepath.Join(dir, "copy.db")
	if err := os.WriteFile(temp, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claim(temp, file); err != nil {
		t.Fatal(err)
	}
	holds(t, file, "one", 0)
	if err := claim(temp, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if err := claim(filepath.Join(dir, "absent"), filepath.Join(dir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	holds(t, file, "one", 0)
}

func TestAReplacedFileIsTheOneThatItsNameLeadsTo(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := replaceFile(link, 0o644, writes("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, file, "new", 1)
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if err := replaceFile(file, 0o644, func(io.Writer) error { return io.ErrShortWrite }); err != io.ErrShortWrite {
		t.Errorf("got %v", err)
	}
	holds(t, file, "new", 1)
}

func TestAFolderIsNotReplaced(t *testing.T) {
	folder := t.TempDir()
	err := replaceFile(folder, 0o644, func(io.Writer) error { t.Error("something is written"); return nil })
	if err == nil || !strings.Contains(err.Error(), folder+": is a folder") {
		t.Errorf("got %v, want that it is a folder", err)
	}
}

func TestADeviceIsWrittenToAndStays(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Skip(err)
	}
	if err := replaceFile(os.DevNull, 0o600, writes("x")); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() {
		t.Errorf("it is %v now, %v", after.Mode(), err)
	}
}
