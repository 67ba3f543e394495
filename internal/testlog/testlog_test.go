package testlog

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

func TestAwaitSeesALineThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log Text
		go func() {
			for i := range 3 {
				time.Sleep(time.Second)
				fmt.Fprintf(&log, "{\"msg\":\"line\",\"n\":%d}\nnot JSON\n", i)
			}
			fmt.Fprintf(&log, "{\"msg\":\"another\",\"n\":7}\n")
		}()
		var line struct{ N int }
		log.Await(t, "another", &line)
		log.Await(t, "line", nil) // which is there already
		if line.N != 7 {
			t.Errorf("read %d", line.N)
		}
	})
}
