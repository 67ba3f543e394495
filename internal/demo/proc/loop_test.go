package proc

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackOffDoublesUpToItsMost(t *testing.T) {
	b := BackOff{First: 100 * time.Millisecond, Most: time.Second}.orDefault()
	var got []time.Duration
	for n := range 7 {
		got = append(got, b.after(n+1)/time.Millisecond)
	}
	if want := []time.Duration{100, 200, 400, 800, 1000, 1000, 1000}; !slices.Equal(got, want) {
		t.Errorf("waits %v ms, want %v", got, want)
	}
}

// A fakeChild is an instance that lives as long as its script says.
type fakeChild struct {
	ended chan string
	deaf  bool // ignores a request to stop
	told  []ending
	mu    sync.Mutex
}

func (f *fakeChild) pid() int     { return 7 }
func (f *fakeChild) wait() string { return <-f.ended }
func (f *fakeChild) signal(sig ending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, sig)
	if sig == endKill || sig == endStop && !f.deaf {
		f.die(map[ending]string{endKill: "signal: killed", endStop: "exit status 0"}[sig])
	}
	return nil
}

func (f *fakeChild) die(how string) {
	select {
	case f.ended <- how:
	default: // it is dead already
	}
}

// A fakeGroup runs children that are not OS processes and notes when each
// started and what changed.
type fakeGroup struct {
	*Group
	mu      sync.Mutex
	began   time.Time
	starts  []time.Duration
	states  []State
	current *fakeChild
}

func newFakeGroup(t *testing.T) *fakeGroup {
	f := &fakeGroup{began: time.Now()}
	f.Group = New(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Changed: func(s Status) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.states = append(f.states, s.State)
	}})
	f.start = func(context.Context, Spec) (instance, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.current = &fakeChild{ended: make(chan string, 1)}
		f.starts = append(f.starts, time.Since(f.began))
		return f.current, nil
	}
	return f
}

func (f *fakeGroup) child() *fakeChild {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// inBubble runs test with a running group in fake time.
func inBubble(t *testing.T, test func(t *testing.T, f *fakeGroup)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeGroup(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		test(t, f)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAChildThatDiesIsStartedAgainWithBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c", BackOff: BackOff{First: time.Second, Most: 4 * time.Second, Forgive: time.Minute}})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			synctest.Wait()
			f.child().die("exit status 3")
			synctest.Wait()
			if s := p.Status(); s.State != Waiting || s.Exit != "exit status 3" {
				t.Fatalf("after its death: %+v", s)
			}
			if err := p.WaitUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute) // it behaves for a while
		f.child().die("exit status 3")
		synctest.Wait()
		if err := p.WaitUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second, 132 * time.Second}
		if !slices.Equal(f.starts, want) {
			t.Errorf("started at %v, want %v", f.starts, want)
		}
		if got := p.Status().Died; got != 5 {
			t.Errorf("died %d times, want 5", got)
		}
	})
}

func TestAKilledChildStaysDownUntilItIsStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c"})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s := p.Status(); s.State != Down || s.Died != 0 || s.Exit != "signal: killed" || len(f.starts) != 1 {
			t.Errorf("an hour later: %+v, %d starts", s, len(f.starts))
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := p.Status(); s.State != Up || s.Pid != 7 {
			t.Errorf("started again: %+v", s)
		}
		want := []State{Starting, Up, Down, Starting, Up}
		if !slices.Equal(f.states, want) {
			t.Errorf("states %v, want %v", f.states, want)
		}
	})
}

func TestAKillEndsTheWaitForTheNextStart(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c", BackOff: BackOff{First: time.Hour}})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.child().die("exit status 3")
		synctest.Wait()
		before := time.Now()
		if err := p.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("the kill took %v", d)
		}
		if err := p.WaitUp(t.Context()); err == nil {
			t.Error("a killed child came up")
		}
	})
}

func TestASuspendedChildIsWokenBeforeItIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c"})
		if err := p.Suspend(); err == nil {
			t.Error("a child that is down was suspended")
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Suspend(); err != nil || p.Status().State != Suspended {
			t.Fatalf("suspend: %v, %v", err, p.Status())
		}
		if err := p.Resume(); err != nil || p.Status().State != Up {
			t.Fatalf("resume: %v, %v", err, p.Status())
		}
		if err := p.Suspend(); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []ending{suspendNow, resumeNow, suspendNow, resumeNow, endStop}; !slices.Equal(f.current.told, want) {
			t.Errorf("told %v, want %v", f.current.told, want)
		}
	})
}

func TestAChildThatDoesNotStopIsKilled(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c", StopIn: time.Minute})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.child().deaf = true
		before := time.Now()
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(before); d != time.Minute || p.Status().Exit != "signal: killed" {
			t.Errorf("after %v: %+v", d, p.Status())
		}
	})
}

func TestAChildThatIsNeverReadyIsKilledAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c", ReadyIn: time.Minute, Ready: func(context.Context) error { return errors.New("no answer yet") }})
		before := time.Now()
		err := p.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no answer yet") {
			t.Errorf("got %v", err)
		}
		if d := time.Since(before); d != time.Minute {
			t.Errorf("gave up after %v", d)
		}
		if s := p.Status(); s.State != Down || len(f.starts) != 1 {
			t.Errorf("then %+v, %d starts", s, len(f.starts))
		}
	})
}

func TestStartWaitsUntilTheChildIsReady(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		began := time.Now()
		p := f.Add(Spec{Name: "c", Ready: func(context.Context) error {
			if time.Since(began) < 3*time.Second {
				return errors.New("not yet")
			}
			return nil
		}})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.Start(t.Context()); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d != 3*time.Second {
					t.Errorf("ready after %v", d)
				}
			})
		}
		wg.Wait()
		if len(f.starts) != 1 {
			t.Errorf("%d starts for three callers, want 1", len(f.starts))
		}
	})
}

func TestTheEndOfTheGroupEndsItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeGroup(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		up, waiting, down := f.Add(Spec{Name: "up"}), f.Add(Spec{Name: "waiting"}), f.Add(Spec{Name: "down"})
		for _, p := range []*Process{waiting, up} {
			if err := p.Start(ctx); err != nil {
				t.Fatal(err)
			}
			if p == waiting {
				f.child().die("exit status 3")
				synctest.Wait()
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, p := range []*Process{up, waiting, down} {
			if s := p.Status(); s.State != Down {
				t.Errorf("%s is %v", s.Name, s.State)
			}
		}
		if err := f.Run(t.Context()); err == nil {
			t.Error("the group ran twice")
		}
	})
}

func TestManyWhoStartAChildThatIsStillEndingStartOne(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeGroup) {
		p := f.Add(Spec{Name: "c"})
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		old := f.child()
		old.mu.Lock()
		old.deaf = true
		old.mu.Unlock()
		p.signalEnd(endStop)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := p.Start(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		old.die("exit status 0")
		all.Wait()
		if len(f.starts) != 2 || p.Status().State != Up {
			t.Errorf("%d starts, %+v; want 2", len(f.starts), p.Status())
		}
		if err := p.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
