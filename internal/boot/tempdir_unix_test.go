//go:build unix

package boot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const holder = "CELLWAY_TEST_HOLDS_A_FOLDER"

// TestPlaysAProcessThatHoldsAFolder is the child of the test below.
func TestPlaysAProcessThatHoldsAFolder(t *testing.T) {
	if os.Getenv(holder) == "" {
		t.Skip("a part of another test")
	}
	dir, remove, err := TempDir("cellway-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer remove() // as far as it comes
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o400); err != nil {
		t.Fatal(err)
	}
	fmt.Println(dir)
	io.Copy(io.Discard, os.Stdin) // which its parent holds open
}

// hold starts a process that holds a folder, and returns both.
func hold(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestPlaysAProcessThatHoldsAFolder$")
	child.Env = append(os.Environ(), holder+"=1")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child says nothing")
	}
	return child, lines.Text()
}

func there(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// A folder that can't be removed whole keeps its mark, to be tried again.
func TestTheMarkGoesLast(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing keeps root from removing a file")
	}
	dir := t.TempDir()
	fixed := filepath.Join(dir, "fixed")
	if err := errors.Join(os.Mkdir(fixed, 0o700), os.WriteFile(filepath.Join(fixed, "file"), nil, 0o600), os.WriteFile(filepath.Join(dir, ownerName), nil, 0o600), os.Chmod(fixed, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(fixed, 0o700)
	if err := removeMarked(dir); err == nil || !there(t, filepath.Join(dir, ownerName)) {
		t.Errorf("%v, and the mark is there: %t", err, there(t, filepath.Join(dir, ownerName)))
	}
}

func TestTheFoldersOfKilledProcessesGoAtTheNextStart(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	killed, left := hold(t)
	_, used := hold(t)
	if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed.Wait()

	// None of these may go: somebody else's name, one without the mark, one whose
	// mark is still being made, a mark that is no file, and a link elsewhere.
	other, bare, making := filepath.Join(tmp, "other-1"), filepath.Join(tmp, "cellway-test-bare"), filepath.Join(tmp, "cellway-test-making")
	odd, link := filepath.Join(tmp, "cellway-test-odd"), filepath.Join(tmp, "cellway-test-link")
	for _, dir := range []string{other, bare, making, filepath.Join(odd, ownerName)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(other, ownerName), filepath.Join(making, ownerName+".new")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}

	if !there(t, left) {
		t.Fatal("the killed process left nothing: there is nothing to test")
	}
	dir, remove, err := TempDir("cellway-test-")
	if err != nil {
		t.Fatal(err)
	}
	if there(t, left) {
		t.Errorf("%s is still there, and its process has gone", left)
	}
	for _, path := range []string{used, dir, filepath.Join(used, "data"), filepath.Join(other, ownerName), bare, filepath.Join(making, ownerName+".new"), odd, link} {
		if !there(t, path) {
			t.Errorf("%s has gone", path)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if there(t, dir) {
		t.Errorf("%s is still there after it was removed", dir)
	}
}
