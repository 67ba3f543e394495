package engine

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A loop that waits keeps a processor of the runtime's, and holds up neither the
// collector, which has to stop all of them, nor timers and goroutines, whoever
// started them.
func TestWaitingLoopHoldsUpNothing(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	f := newLoopRig(t, 1, Config{}, func(sc *ServerConfig, _ *CheckerConfig) {
		sc.Looping = func(on bool) {
			if on {
				runtime.GOMAXPROCS(2)
			} else {
				runtime.GOMAXPROCS(1)
			}
		}
	})
	f.use(f.pathCell(nil))
	c := f.joined()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			runtime.GC()
			fired := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() { close(fired) })
			<-fired
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(runtime.Gosched)
			}
			wg.Wait()
			c.send(get("/after"))
			c.want(200, "/after")
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
	f.wantNothing()
}

// A poller counts in milliseconds, and a wait is never cut to none.
func TestMillisecondsOfAWait(t *testing.T) {
	for wait, want := range map[time.Duration]uintptr{1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, shortWait: 8, time.Second: 1000} {
		if got := milliseconds(wait); got != want {
			t.Errorf("%v is %d ms, want %d", wait, got, want)
		}
	}
}

// Who has uploaded something holds no buffer for it while the next request, of
// whatever kind, waits.
func TestAfterAnUploadNoLargeBufferIsHeld(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.pathCell(nil))
	for _, next := range []string{"G", "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n"} {
		c := f.joined()
		body := strings.Repeat("x", 20_000)
		for range 2 { // the second one is read into a buffer of its size
			c.send(fmt.Sprintf("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
			c.want(200, body)
		}
		c.send(next)
		most := func() (n int) {
			f.s.mu.Lock()
			l := f.s.loops[0]
			f.s.mu.Unlock()
			done := make(chan struct{})
			l.post(func() {
				defer close(done)
				for i := range l.slots {
					if c := l.slots[i].c; c != nil && c.call != nil {
						n = max(n, len(c.call.in.buf))
					}
				}
			})
			<-done
			return n
		}
		eventually(t, "a part of a head is there", func() bool { return most() > 0 })
		if n := most(); n > smallBuffer {
			t.Errorf("%.10q is in %d bytes", next, n)
		}
		c.Close()
		f.wantClients(0)
	}
}
