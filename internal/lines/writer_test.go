package lines

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
	l := NewWriter(r, said)
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
		l := NewWriter(r, said)
		begun := time.Now()
		line := strings.Repeat("x", 999) + "\n"
		for range 6000 {
			io.WriteString(l, line)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("writing took %v", took)
		}
		left := l.Flush(time.Second)
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the flush took %v", took)
		}
		dropped := l.Dropped()
		if left+dropped != 6000 {
			t.Errorf("%d are left and %d dropped of 6000", left, dropped)
		}
		if dropped == 0 || 6000-dropped < most/1000-1 {
			t.Errorf("%d of 6000 dropped", dropped)
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
		if n := uint64(strings.Count(got, line)); n+dropped != 6000 {
			t.Errorf("%d written and %d dropped of 6000", n, dropped)
		}
	})
}

func TestAFullDiskTearsNoOtherLine(t *testing.T) {
	r := &reader{room: 12}
	l := NewWriter(r, nil)
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
		l := NewWriter(r, nil)
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
		for range most / 900 {
			io.WriteString(l, strings.Repeat("x", 999)+"\n")
		}
		time.Sleep(time.Second)
		for range most / 900 {
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
		l := NewWriter(r, nil)
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

// Lines that come within a moment are written at once; one that comes alone is not
// held up for longer.
func TestGatheredLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &counting{}
		l := Of(w)
		for range 10 {
			for range 100 {
				io.WriteString(l, "line\n")
			}
			time.Sleep(Moment / 10)
		}
		time.Sleep(Moment)
		synctest.Wait()
		if w.writes > 2 || w.bytes != 5000 {
			t.Errorf("%d bytes in %d writes", w.bytes, w.writes)
		}
		l.Flush(time.Minute)
		begun := time.Now()
		io.WriteString(l, "line\n")
		l.Flush(time.Minute)
		if took := time.Since(begun); w.bytes != 5005 || took > 2*Moment {
			t.Errorf("%d bytes after %v", w.bytes, took)
		}
	})
}

type counting struct{ writes, bytes int }

func (c *counting) Write(b []byte) (int, error) {
	c.writes++
	c.bytes += len(b)
	return len(b), nil
}

func TestOfAWriterIsItself(t *testing.T) {
	l := NewWriter(io.Discard, nil)
	if Of(l) != l {
		t.Error("it is another one")
	}
}

func TestANilWriterTakesNothing(t *testing.T) {
	var l *Writer
	if n, err := io.WriteString(l, "line\n"); n != 5 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if l.Flush(time.Minute); l.Dropped() != 0 || l.Failing() {
		t.Error("it has lost lines")
	}
}

// Two logs that share a pipe tear none of each other's lines.
func TestLinesForAPipeAreWrittenInWholePieces(t *testing.T) {
	long := strings.Repeat("x", 2*pipeBuf) + "\n"
	for name, all := range map[string]string{
		"short ones":           strings.Repeat("a line of some length\n", 1000),
		"one of a whole piece": strings.Repeat(strings.Repeat("y", pipeBuf-1)+"\n", 3),
		"long ones":            "short\n" + long + "short\n" + long + long + "short\n",
		"one without an end":   "short\n" + strings.Repeat("z", 3*pipeBuf),
	} {
		var pieces []string
		l := NewWriter(writerFunc(func(b []byte) (int, error) {
			pieces = append(pieces, string(b))
			return len(b), nil
		}), nil)
		l.ForPipe()
		io.WriteString(l, all)
		l.Flush(time.Minute)
		if strings.Join(pieces, "") != all {
			t.Errorf("%s: not what was written", name)
		}
		for i, p := range pieces {
			if i < len(pieces)-1 && !strings.HasSuffix(p, "\n") || len(p) > pipeBuf && strings.Count(p, "\n") > 1 {
				t.Errorf("%s: a piece of %d bytes with %d ends of lines", name, len(p), strings.Count(p, "\n"))
			}
		}
	}
	r := &reader{room: pipeBuf + 10} // it is full within a piece
	l := NewWriter(r, nil)
	l.ForPipe()
	io.WriteString(l, strings.Repeat("a line of some length\n", 1000))
	l.Flush(time.Minute)
	if n := uint64(strings.Count(r.text(), "\n")); n == 0 || n+l.Dropped() < 1000 || n+l.Dropped() > 1001 {
		t.Errorf("%d lines written, %d dropped of 1000", n, l.Dropped())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
