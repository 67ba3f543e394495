package feed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestRouterIsNotReadyBeforeItsFirstMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start() // the source has none, the disk neither
		defer b.end()
		b.wait(time.Hour)
		b.want()
		if st := b.feed.Status(); st.Ready || b.feed.Map() != nil {
			t.Error("ready without a map")
		}
		b.src.set(b.pub.base())
		b.wait(16 * time.Second)
		b.want(1)
		if !b.feed.Status().Ready {
			t.Error("not ready with a map")
		}
	})
}

func TestStartFromTheDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		source func(b *bench)
		after  time.Duration // the map on the disk is in use
	}{
		"sources that hang":        {func(b *bench) { b.src.hung = make(chan struct{}) }, 2 * time.Second},
		"sources that are down":    {func(b *bench) { b.src.fail(errors.New("connection refused")) }, 0},
		"sources without a map":    {func(b *bench) { b.src.setRaw(nil, 0) }, 0},
		"sources with nonsense":    {func(b *bench) { b.src.setRaw([]byte("hello"), 9) }, 0},
		"a source with a stranger": {func(b *bench) { b.src.set(newPublisher(b.t).base()) }, 0},
		"a source with the same":   {func(b *bench) {}, 0},
		"a source with an older one": {func(b *bench) {
			b.pub.last, b.pub.version = nil, b.pub.version-2
			b.src.set(b.pub.base())
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := running(t)
				b.src.set(b.pub.overlay())
				synctest.Wait()
				b.end()
				b.sink = &sink{}
				tt.source(b)
				b.start()
				defer b.end()
				if tt.after > 0 {
					b.wait(tt.after - time.Millisecond)
					b.want()
					b.wait(time.Millisecond)
				}
				b.want(2)
				if st := b.feed.Status(); !st.Ready || st.From != "disk" {
					t.Errorf("in use is a map from %q", st.From)
				}
				// An old map stays for as long as it takes.
				b.wait(5 * time.Hour)
				b.want(2)
			})
		})
	}
}

func TestStartPrefersWhatASourceHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.end()
		b.sink = &sink{}
		b.src.set(b.pub.overlay())
		b.start()
		b.want(3)

		// Also if it takes a while, but no longer than the wait.
		b.end()
		b.sink = &sink{}
		b.src.set(b.pub.overlay())
		hung := make(chan struct{})
		b.src.hung = hung
		b.start()
		b.wait(1900 * time.Millisecond)
		b.want()
		b.src.do(func() { b.src.hung = nil })
		close(hung)
		synctest.Wait()
		b.want(4)

		// If it takes longer, the disk's map is used until then.
		b.end()
		b.sink = &sink{}
		b.src.set(b.pub.overlay())
		hung = make(chan struct{})
		b.src.hung = hung
		b.start()
		b.wait(3 * time.Second)
		b.want(4)
		b.src.do(func() { b.src.hung = nil })
		close(hung)
		synctest.Wait()
		b.want(4, 5)
		b.end()
	})
}

// If the router does not take the newest map on the disk, the one before it is
// tried.
func TestStartGoesOnToAMapThatTheRouterTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.end()
		b.src.fail(errors.New("down"))
		b.sink = &sink{fail: func(m *routemap.Map) error {
			if m.Version().Sequence() == 2 {
				panic("no")
			}
			return nil
		}}
		b.start()
		defer b.end()
		b.want(1)
		b.wantRefused(ReasonPanic)
	})
}

// A whole fleet of a hundred routers that starts at once with its maps on disk
// fetches no base again.
func TestRestartFetchesNoBaseThatIsOnTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		_, before := b.src.asked()
		b.restart()
		b.want(1)
		if _, after := b.src.asked(); after != before {
			t.Errorf("%d parts were fetched", after-before)
		}
		b.end()
		b.sink = &sink{}
		b.src.set(b.pub.overlay())
		b.start()
		b.want(2)
		if _, after := b.src.asked(); after != before+1 {
			t.Errorf("%d parts were fetched, want the overlay", after-before)
		}
		b.end()
	})
}

func TestSourcesAreNotAskedAllAtOnceAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		for range 20 {
			b := newBench(t)
			b.src.set(b.pub.base())
			begun := time.Now()
			b.sink.setFail(func(*routemap.Map) error { at = append(at, time.Since(begun)); return nil })
			f, err := New(Config{Fleet: "shop", Sources: []Source{b.src}, Keys: b.keys, Sink: b.sink, Store: openOn(b.disk, nil)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- f.Run(ctx) }()
			b.wait(time.Second)
			cancel()
			<-done
		}
		spread := map[time.Duration]bool{}
		for _, d := range at {
			if d > 250*time.Millisecond {
				t.Errorf("the first map came after %v", d)
			}
			spread[d.Truncate(25*time.Millisecond)] = true
		}
		if len(at) != 20 || len(spread) < 5 {
			t.Errorf("%d starts got their maps after %v", len(at), at)
		}
	})
}

// That a fleet has no map yet is no fault; that a source can't be asked is one.
func TestFleetWithoutAMapIsNoFault(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no map yet":     {fmt.Errorf("the source has no map: %w", cellway.ErrNotReady), true},
		"nobody answers": {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.src.fail(tt.err)
				b.start()
				defer b.end()
				if got := b.feed.isNew(); got != tt.want {
					t.Errorf("taken for a new fleet: %v, want %v", got, tt.want)
				}
			})
		})
	}
}
