package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAMeterLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file, shown strings.Builder
		m := &meter{w: &file, line: &line{to: &shown}}
		for _, n := range []int{2048, 1, 1 << 20, 1} {
			m.Write(make([]byte, n))
			time.Sleep(150 * time.Millisecond)
		}
		first, second := size(2048), size(2048+1+1<<20)
		if want := "\r" + first + "\r" + second; shown.String() != want {
			t.Errorf("shows %q, want %q", shown.String(), want)
		}
		shown.Reset()
		m.line.erase()
		if want := "\r" + strings.Repeat(" ", len(second)) + "\r"; shown.String() != want {
			t.Errorf("the end leaves %q, want %q", shown.String(), want)
		}
		shown.Reset()
		if m.line.erase(); shown.Len() > 0 {
			t.Errorf("nothing is taken away with %q", shown.String())
		}
	})
}

func TestALineCoversTheOneBefore(t *testing.T) {
	var shown strings.Builder
	l := line{to: &shown}
	l.draw("a long one…")
	l.draw("short")
	if want := "\ra long one…\rshort      "; shown.String() != want {
		t.Errorf("%q, want %q", shown.String(), want)
	}
}
