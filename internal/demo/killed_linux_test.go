package demo

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// processesOf returns the processes of the executable at path that still run.
func processesOf(t *testing.T, path string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.HasPrefix(line, []byte(path+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func TestADemoThatIsKilledLeavesNoProcessAndTheNextOneItsFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real processes")
	}
	path := program(t)
	ownTemp(t)
	start := func() *exec.Cmd {
		cmd := exec.Command(path, "demo", "--script", "none", "--keep", "--tenants", "60")
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "curl -H") {
				return cmd
			}
		}
		t.Fatal("the demo ended before its fleet was there")
		return nil
	}
	folders := func() []string {
		all, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "cellway-demo-*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}

	first := start()
	if n := len(processesOf(t, path)); n < 8 {
		t.Fatalf("a fleet of %d processes", n)
	}
	left := folders()
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	for end := time.Now().Add(10 * time.Second); len(processesOf(t, path)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v outlive the demo", processesOf(t, path))
		}
	}
	if len(left) != 1 || len(folders()) != 1 {
		t.Fatalf("folders %v, then %v", left, folders())
	}

	second := start()
	if now := folders(); len(now) != 1 || now[0] == left[0] {
		t.Errorf("the next demo has %v beside its own", now)
	}
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
