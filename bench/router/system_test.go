//go:build linux

package main

import (
	"os"
	"testing"
	"time"
)

// The time of interrupts is the kernel's; what a host stole is others'.
func TestInterruptsCountForNobody(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 60 70 8 0 0\ncpu0 10 2 3 400 50 600 700 1 9 9\ncpu10 1 1 1 1 1 1 1 1 0 0\nintr 7\n"
	for core, want := range map[int]time.Duration{-1: 1580, 0: 160, 10: 40} {
		if got, err := workOf(stat, core); err != nil || got != want*time.Millisecond {
			t.Errorf("core %d was at work for %v, %v, want %v", core, got, err, want*time.Millisecond)
		}
	}
	for _, text := range []string{"", stat, "cpu1 1 2 3\n", "cpu1 1 2 3 4 5 6 x 8\n", "cpu1 x 2 3 4 5 6 7 8\n"} {
		if got, err := workOf(text, 1); err == nil {
			t.Errorf("%q: core 1 was at work for %v", text, got)
		}
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := workOf(string(text), -1); err != nil || got <= 0 {
		t.Errorf("this machine was at work for %v, %v", got, err)
	}
}
