package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A reader is what lines go to: it may be stuck, or take only so much.
type reader struct {
	mu    sync.Mutex
	stuck chan struct{} // writes wait until it is closed; nil: they don't
	room  int           // bytes; negative: without end
	got   bytes.Buffer
}

func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	stuck := r.stuck
	r.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room >= 0 && len(b) > r.room {
		n, _ := r.got.Write(b[:r.room])
		r.room = 0
		return n, errors.New("no space left")
	}
	if r.room >= 0 {
		r.room -= len(b)
	}
	return r.got.Write(b)
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

func said(w io.Writer, lost uint64) { fmt.Fprintf(w, "lost %d\n", lost) }

func TestLinesKeepTheirOrder(t *testing.T) {
	r := &reader{room: -1}
	l := NewLines(r, said)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(l, "line %d\n", i)
		fmt.Fprintf(&want, "line %d\n", i)
	}
	l.Flush(time.Minute)
	if r.text() != want.String() || l.Dropped() != 0 {
		t.Errorf("%d bytes of %d, %d dropped", len(r.text()), want.Len(), l.Dropped())
	}
}

func TestNobodyWaitsForAStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{room: -1, stuck: make(chan struct{})}
		l := NewLines(r, said)
		begun := time.Now()
		line := strings.Repeat("x", 999) + "\n"
		for range 3000 {
			io.WriteString(l, line)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("writing took %v", took)
		}
		l.Flush(time.Second)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the flush took %v", took)
		}
		dropped := l.Dropped()
		if dropped == 0 || 3000-dropped < mostLines/1000-1 {
			t.Errorf("%d of 3000 dropped", dropped)
		}
		close(r.stuck)
		r.mu.Lock()
		r.stuck = nil
		r.mu.Unlock()
		l.Flush(time.Minute)
		io.WriteString(l, "again\n")
		l.Flush(time.Minute)
		got := r.text()
		if !strings.Contains(got, fmt.Sprintf("lost %d\n", dropped)) || !strings.HasSuffix(got, "again\n") {
			t.Errorf("the loss is not told: %q", got[max(0, len(got)-100):])
		}
		if n := uint64(strings.Count(got, line)); n+dropped != 3000 {
			t.Errorf("%d written and %d dropped of 3000", n, dropped)
		}
	})
}

func TestAFullDiskTearsNoOtherLine(t *testing.T) {
	r := &reader{room: 12}
	l := NewLines(r, nil)
	for range 3 {
		io.WriteString(l, "line 1\n")
		l.Flush(time.Minute)
	}
	if l.Dropped() != 2 {
		t.Errorf("%d dropped", l.Dropped())
	}
	r.mu.Lock()
	r.room = -1
	r.mu.Unlock()
	io.WriteString(l, "line 2\n")
	l.Flush(time.Minute)
	if got := r.text(); got != "line 1\nline \nline 2\n" {
		t.Errorf("written is %q", got)
	}
}

// Whoever looks for lines that are not there finds out why while they are lost,
// and once.
func TestLosingIsToldWhenItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{room: 10}
		l := NewLines(r, nil)
		var told []string
		var mu sync.Mutex
		l.OnLosing(func(why error) { mu.Lock(); defer mu.Unlock(); told = append(told, why.Error()) })
		write := func(lines int, s string) {
			for range lines {
				io.WriteString(l, s)
				l.Flush(time.Hour)
			}
		}
		want := func(failing bool, all ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if strings.Join(told, ", ") != strings.Join(all, ", ") || l.Failing() != failing {
				t.Errorf("told %q, failing %t; want %q, %t", told, l.Failing(), all, failing)
			}
		}
		full := func(room int) { r.mu.Lock(); defer r.mu.Unlock(); r.room = room }
		write(1, "line 1\n")
		want(false)
		write(5, "line 2\n")
		want(true, "no space left")
		full(-1)
		write(1, "line 3\n")
		want(false, "no space left")
		// A disk that is full now and then fills no log.
		for range 20 {
			full(0)
			write(1, "line 4\n")
			full(-1)
			write(1, "line 5\n")
		}
		want(false, "no space left")
		time.Sleep(2 * time.Minute)
		r.mu.Lock()
		r.stuck = make(chan struct{})
		r.mu.Unlock()
		for range 1100 {
			io.WriteString(l, strings.Repeat("x", 999)+"\n")
		}
		time.Sleep(time.Second)
		for range 1100 {
			io.WriteString(l, strings.Repeat("x", 999)+"\n")
		}
		want(true, "no space left", errTooSlow.Error())
		close(r.stuck)
		l.Flush(time.Hour)
		want(false, "no space left", errTooSlow.Error())
	})
}

// A loss that begins soon after another one was told is told, too, if it lasts.
func TestALongLossIsToldHoweverSoonItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		l := NewLines(r, nil)
		var mu sync.Mutex
		told := 0
		l.OnLosing(func(error) { mu.Lock(); defer mu.Unlock(); told++ })
		full := func(room int) { r.mu.Lock(); defer r.mu.Unlock(); r.room = room }
		write := func(want int) {
			t.Helper()
			io.WriteString(l, "line\n")
			l.Flush(time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if told != want {
				t.Errorf("told %d times, want %d", told, want)
			}
		}
		write(1)
		time.Sleep(10 * time.Second)
		full(-1)
		write(1)
		time.Sleep(20 * time.Second)
		full(0)
		write(1)
		time.Sleep(29 * time.Second)
		write(1)
		time.Sleep(time.Second)
		write(2)
		for range 24 {
			time.Sleep(time.Hour)
			write(2)
		}
	})
}
