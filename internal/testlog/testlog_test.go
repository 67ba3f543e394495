package testlog

import (
	"fmt"
	"sync"
	"testing"
)

func TestTextHasWhatManyWroteToIt(t *testing.T) {
	var text Text
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for range 10 {
				fmt.Fprintf(&text, "writer %d is here\n", i)
			}
		})
	}
	wg.Wait()
	if n := len(text.Lines()); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
	if n := len(text.Lines("writer 3", "here")); n != 10 {
		t.Errorf("%d lines of one writer, want 10", n)
	}
	if n := len(text.Lines("writer 3", "gone")); n != 0 {
		t.Errorf("%d lines that have only one of two parts", n)
	}
}
