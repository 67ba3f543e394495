package engine

import (
	"runtime"
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
