package main

import (
	"strings"
	"testing"
	"time"
)

func TestABarAppearsLateAndLeavesNothing(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	b := &bar{line: line{to: &out}, width: 28, now: func() time.Time { return now }}
	b.show(0.1)
	b.erase()
	if out.Len() > 0 {
		t.Errorf("something quick shows %q, want nothing", out.String())
	}
	now = now.Add(time.Second)
	b.show(0.5)
	b.show(0.6) // too soon to be drawn
	if got := out.String(); got != "\r"+strings.Repeat("█", 10)+strings.Repeat("░", 10)+"  50 %" {
		t.Errorf("half done shows %q", got)
	}
	out.Reset()
	b.erase()
	if got := out.String(); got != "\r"+strings.Repeat(" ", 26)+"\r" {
		t.Errorf("the end leaves %q", got)
	}
}

func TestAReportNamesItsCommandWithoutItsFile(t *testing.T) {
	got := strings.Join(withoutHTML([]string{"sim", "hand", "--html", "x.html", "--hand", "3", "--html=y.html"}), " ")
	if got != "sim hand --hand 3" {
		t.Errorf("got %q", got)
	}
}
