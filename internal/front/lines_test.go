package front

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// running runs l until stop, which returns when all is written.
func running(l *Lines[int]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestLinesAreWrittenInOrderToTheLast(t *testing.T) {
	var got, want []int
	l := NewLines(func(one int) { got = append(got, one) })
	stop := running(l)
	for i := range 1000 {
		l.Put(i)
		want = append(want, i)
	}
	stop()
	if !slices.Equal(got, want) || l.Dropped() != 0 {
		t.Errorf("%d lines, %d dropped, want 1000 in order", len(got), l.Dropped())
	}
}

// A disk that hangs costs lines, and nobody's time.
func TestLinesThatFindNoPlaceAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, written := make(chan struct{}), 0
		l := NewLines(func(int) { <-release; written++ })
		stop := running(l)
		l.Put(0) // it hangs with the one who writes
		synctest.Wait()
		for i := range maxLines + 100 {
			l.Put(i)
		}
		if n := l.Dropped(); n != 100 {
			t.Errorf("dropped %d lines, want 100", n)
		}
		close(release)
		stop()
		if written != maxLines+1 {
			t.Errorf("wrote %d lines, want %d", written, maxLines+1)
		}
	})
}

func TestNoLinesTakeNothing(t *testing.T) {
	var l *Lines[int]
	l.Put(1)
	l.Run(t.Context())
	if l.Dropped() != 0 || l.Wants(false, 0) || l.Wants(true, 0) {
		t.Error("it wants lines, or counts them")
	}
}

func TestLinesWantAShareOfWhatWentWell(t *testing.T) {
	l := NewLines(func(int) {})
	for share, want := range map[float64][2]int{-1: {0, 0}, 0: {1000, 1000}, 0.25: {150, 350}, 1: {1000, 1000}} {
		well := 0
		for range 1000 {
			if l.Wants(true, share) {
				well++
			}
			if !l.Wants(false, share) {
				t.Fatalf("share %v leaves out what went wrong", share)
			}
		}
		if well < want[0] || well > want[1] {
			t.Errorf("share %v: %d of 1000, want %v", share, well, want)
		}
	}
}

func TestClipCopiesTheStart(t *testing.T) {
	for _, s := range []string{"", "/orders", strings.Repeat("a", 60<<10)} {
		got := Clip(s)
		if got != s[:min(len(s), maxLogged)] {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		if s != "" && unsafe.StringData(got) == unsafe.StringData(s) {
			t.Error("it points into what it is a copy of")
		}
	}
}

func TestMillisecondsKeepMicroseconds(t *testing.T) {
	if got := Milliseconds(1234567 * time.Nanosecond); got != 1.234 {
		t.Errorf("got %v", got)
	}
}
