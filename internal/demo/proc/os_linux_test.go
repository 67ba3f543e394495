package proc

import (
	"os"
	"os/exec"
	"testing"
)

func TestASuspendedProcessHasStoppedWhenTheSignalReturns(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if stopped(os.Getpid()) {
		t.Error("this process counts as stopped")
	}
	for range 20 {
		if err := signalProcess(cmd.Process, suspendNow); err != nil || !stopped(cmd.Process.Pid) {
			t.Fatalf("it runs on after the signal: %v", err)
		}
		if err := signalProcess(cmd.Process, resumeNow); err != nil {
			t.Fatal(err)
		}
	}
}
