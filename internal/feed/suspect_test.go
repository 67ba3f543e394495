package feed

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/routemap"
)

// startCrashing starts the feed and has the process die a moment after its
// map came into use, n times.
func (b *bench) startCrashing(n int, version uint32) {
	b.t.Helper()
	for range n {
		b.start()
		b.wait(5 * time.Second)
		b.want(version)
		b.crash()
	}
}

// goodThenBad has version 1 in use long enough, and version 2 with a new base
// at the source.
func goodThenBad(t *testing.T) *bench {
	b := running(t)
	b.wait(time.Minute)
	b.end()
	b.sink = &sink{}
	b.src.set(b.pub.base())
	return b
}

func TestAMapThatKillsTheRouterThriceIsPassedOver(t *testing.T) {
	for name, down := range map[string]bool{"sources up": false, "sources down": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := goodThenBad(t)
				b.startCrashing(3, 2)
				if down {
					b.src.fail(errors.New("down"))
				}
				b.start()
				defer func() { b.end() }()
				b.wait(10 * time.Second)
				b.want(1)
				st := b.feed.Status()
				if !st.Ready || !st.Fallback || len(st.Suspects) != 2 {
					t.Errorf("status: ready %v, fallback %v, suspects %v", st.Ready, st.Fallback, st.Suspects)
				}
				if !down {
					b.wantRefused(ReasonSuspect)
				}
				if in := time.Until(st.RetryAt); in < 40*time.Second || in > time.Minute {
					t.Errorf("it is tried again in %v", in)
				}
			})
		})
	}
}

// Two unclean exits are not three.
func TestTwoCrashesAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := goodThenBad(t)
		b.startCrashing(2, 2)
		b.start()
		b.wait(31 * time.Second)
		b.want(2)
		b.crash()
		b.startCrashing(2, 2)
		b.start()
		b.want(2)
		b.end()
	})
}

// A suspect is tried again after 1, 5 and 30 minutes; if it kills again, the
// next pause is the longer one.
func TestASuspectIsTriedAgainLaterAndLater(t *testing.T) {
	for name, down := range map[string]bool{"from the source": false, "from the disk": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := goodThenBad(t)
				b.startCrashing(3, 2)
				if down {
					b.src.fail(errors.New("down"))
				}
				for _, pause := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
					b.start()
					b.wait(pause - time.Second)
					b.want(1)
					for range (pause/10 + 5*time.Second) / time.Second {
						if len(b.sink.versions()) == 2 {
							break
						}
						b.wait(time.Second)
					}
					b.want(1, 2)
					b.crash()
				}
				// At last it lives, and is forgiven.
				b.start()
				b.wait(33*time.Minute + 40*time.Second)
				b.want(1, 2)
				if st := b.feed.Status(); st.Fallback || len(st.Suspects) > 0 {
					t.Errorf("after it has lived: fallback %v, suspects %v", st.Fallback, st.Suspects)
				}
				b.crash()
				b.start()
				b.wait(3 * time.Second)
				b.want(2)
				b.end()
			})
		})
	}
}

// If the newest suspect is not on the disk, the newest that is there is tried.
func TestASuspectIsTriedFromTheDiskWithSourcesGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := goodThenBad(t)
		b.startCrashing(3, 2)
		b.start()
		b.src.set(b.pub.overlay()) // over the bad base: refused, and so not on the disk
		b.wait(5 * time.Second)
		b.want(1)
		b.src.fail(errors.New("down"))
		b.wait(2 * time.Minute)
		b.want(1, 2)
		if st := b.feed.Status(); st.Fallback || len(st.Suspects) > 0 {
			t.Errorf("after it has lived: fallback %v, suspects %v", st.Fallback, st.Suspects)
		}
		b.end()
	})
}

func TestCrashOnTheFallbackTooAcquitsTheSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := goodThenBad(t)
		b.startCrashing(3, 2)
		b.startCrashing(1, 1) // on the fallback: it was not the map
		b.start()
		b.want(2)
		if st := b.feed.Status(); st.Fallback || len(st.Suspects) > 0 {
			t.Errorf("fallback %v, suspects %v", st.Fallback, st.Suspects)
		}
		b.end()
	})
}

// The next version, with other parts, is used at once.
func TestAFixedMapIsUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := goodThenBad(t)
		b.startCrashing(3, 2)
		b.start()
		defer func() { b.end() }()
		b.wait(5 * time.Second)
		b.src.set(b.pub.overlay()) // the base is still the bad one
		b.wait(time.Second)
		b.want(1)
		b.wantRefused(ReasonSuspect)
		b.src.set(b.pub.base())
		b.wait(time.Second)
		b.want(1, 4)
		if st := b.feed.Status(); st.Fallback {
			t.Error("still on a fallback")
		}
	})
}

// A bad overlay over a base that has lived: only the overlay is passed over.
func TestABadOverlayCostsNoBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.wait(time.Minute)
		b.src.set(b.pub.overlay())
		b.wait(5 * time.Second)
		b.want(1, 2)
		b.crash()
		b.startCrashing(2, 2)
		b.start()
		b.wait(5 * time.Second)
		b.want(1)
		if s := b.feed.Status().Suspects; len(s) != 1 || !strings.HasPrefix(s[0], "overlay ") {
			t.Errorf("suspect is %v", s)
		}
		b.src.set(b.pub.overlay())
		b.wait(time.Second)
		b.want(1, 3)
		b.end()
	})
}

// With nothing older to fall back on, there is no map rather than a bad one,
// for a while.
func TestTheOnlyMapIsSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		b.startCrashing(3, 1)
		b.start()
		b.wait(50 * time.Second)
		b.want()
		if st := b.feed.Status(); st.Ready || !st.Fallback {
			t.Errorf("ready %v, fallback %v", st.Ready, st.Fallback)
		}
		b.wait(20 * time.Second)
		b.want(1)
		b.end()

		// Dying without a map acquits it.
		b = newBench(t)
		b.src.set(b.pub.base())
		b.startCrashing(3, 1)
		b.start()
		b.wait(10 * time.Second)
		b.want()
		b.crash()
		b.start()
		b.want(1)
		b.end()
	})
}

// A process that is told to end is never a crash, however soon, and however it
// ends after it was told.
func TestCleanExitsAreNoCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := goodThenBad(t)
		for range 5 {
			b.start()
			b.wait(time.Second)
			b.want(2)
			b.end()
			b.sink = &sink{}
		}
		for range 5 {
			b.start()
			b.wait(time.Second)
			b.want(2)
			b.feed.Leave()
			b.wait(time.Millisecond)
			b.crash()
		}
		b.start()
		b.want(2)
		b.end()
	})
}

// The note of what is tried is on the disk before it is tried.
func TestMarkerIsWrittenBeforeTheSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		v := b.pub.base()
		b.src.set(v)
		var noted bool
		b.start()
		b.end()
		b.src.set(b.pub.base())
		base, _ := partsOf(b.pub.last.Manifest())
		raw := func() []byte { r, _ := b.disk.ReadFile(markerName, markerFile); return r }
		b.sink = &sink{}
		b.startWithHook(func() {
			m, _, ok := decodeMarker(raw())
			noted = noted || ok && m.running && m.base.part == base
		})
		defer b.end()
		b.want(2)
		if !noted {
			t.Error("the marker on the disk did not name the base when it came into use")
		}
	})
}

func (b *bench) startWithHook(hook func()) {
	b.sink.setFail(func(*routemap.Map) error { hook(); return nil })
	b.start()
}

// A disk that hangs holds no map up for longer than a moment.
func TestASwapDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		gate := make(chan struct{})
		var hang atomic.Bool
		d := stepDisk{b.disk, func(_ string, do func() error) error {
			if hang.Load() {
				<-gate
			}
			return do()
		}}
		b.startOn(d, []Source{b.src})
		b.want(1)
		hang.Store(true)
		begun := time.Now()
		for range 5 {
			b.src.set(b.pub.overlay())
			b.wait(markerWait)
		}
		b.want(1, 2, 3, 4, 5, 6)
		if d := time.Since(begun); d > 5*markerWait {
			t.Errorf("five swaps took %v", d)
		}
		if !b.feed.Status().Ready {
			t.Error("not ready")
		}
		hang.Store(false)
		close(gate)
		b.wait(time.Second)
		b.end()
		if a, _ := openOn(b.disk, nil).best(b.pub.ring(), "shop", nil); a == nil || a.m.Version() != b.pub.version {
			t.Errorf("on the disk is %v in the end", a)
		}
	})
}

// What is written outlives the process: a change of the overlay waits for no
// more. What may be worse than that is synced first.
func TestWhatASwapWaitsForOfTheDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		crash bool
		base  bool
		want  time.Duration
	}{
		"another overlay":                       {want: 0},
		"another base":                          {base: true, want: markerWait},
		"another overlay, after an unclean end": {crash: true, want: markerWait},
		"another base, after an unclean end":    {crash: true, base: true, want: markerWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.src.set(b.pub.base())
				if tt.crash {
					b.start()
					b.wait(time.Second)
					b.crash()
				}
				gate := make(chan struct{})
				var hang atomic.Bool
				b.startOn(stepDisk{b.disk, func(what string, do func() error) error {
					if hang.Load() && what == "fdatasync "+markerName {
						<-gate
					}
					return do()
				}}, []Source{b.src})
				b.want(1)
				hang.Store(true)
				begun, next := time.Now(), b.feed.Swapped()
				var noted marker
				b.sink.setFail(func(*routemap.Map) error {
					raw, _ := b.disk.ReadFile(markerName, markerFile)
					noted, _, _ = decodeMarker(raw)
					return nil
				})
				if tt.base {
					b.src.set(b.pub.base())
				} else {
					b.src.set(b.pub.overlay())
				}
				<-next
				if took := time.Since(begun); took != tt.want {
					t.Errorf("the swap waited for %v, want %v", took, tt.want)
				}
				base, overlay := partsOf(b.pub.last.Manifest())
				if noted.base.part != base || noted.overlay.part != overlay || !noted.running {
					t.Error("when it came into use, what was written did not name it")
				}
				hang.Store(false)
				close(gate)
				b.wait(time.Second)
				b.end()
			})
		})
	}
}

// An overlay that ends the process at once, before anything could be synced, is
// passed over after three times.
func TestAnOverlayThatKillsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.wait(time.Minute)
		b.src.set(b.pub.overlay())
		b.wait(time.Second)
		b.want(1, 2)
		b.src.set(b.pub.overlay()) // the bad one
		synctest.Wait()
		b.want(1, 2, 3)
		b.crash()
		b.startCrashing(2, 3)
		b.start()
		b.wait(10 * time.Second)
		defer b.end()
		b.want(1) // the newest that outlived a soak
		b.wantRefused(ReasonSuspect)
	})
}

// Of many changes in a moment the disk gets the last; the first map of all it
// gets at once, and at an end the last at once.
// A map that the router does not take has not proven itself by the time that passes,
// nor is it to blame for what happens meanwhile.
func TestAMapThatTheRouterRefusedHasNotLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		v := b.pub.base()
		b.src.set(v)
		b.sink.setFail(func(*routemap.Map) error { return errSink })
		b.start()
		b.wantRefused(ReasonSwap)
		b.wait(time.Hour)
		base, overlay := partsOf(v.Manifest)
		marked := func() (lived, blamed bool) {
			raw, err := b.disk.ReadFile(markerName, markerFile)
			m, _, ok := decodeMarker(raw)
			if err != nil || !ok {
				t.Fatalf("marker: %v", err)
			}
			for _, p := range []part{base, overlay} {
				if r := m.find(p); r != nil {
					lived, blamed = lived || r.lived, blamed || r.crashes > 0
				}
			}
			return lived, blamed
		}
		if lived, _ := marked(); lived {
			t.Error("what was never in use is noted as having lived")
		}
		b.crash()
		b.sink.setFail(func(*routemap.Map) error { return errSink })
		b.start()
		if _, blamed := marked(); blamed {
			t.Error("what was not in use is blamed")
		}
		b.end()
	})
}

func TestManyChangesAreWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		var creates atomic.Int64
		b.startOn(stepDisk{b.disk, func(what string, do func() error) error {
			if strings.HasPrefix(what, "create "+tempPrefix+keptPrefix) {
				creates.Add(1)
			}
			return do()
		}}, []Source{b.src})
		if n := creates.Load(); n != 1 || b.feed.Status().Unkept {
			t.Fatalf("the first map was written %d times", n)
		}
		for range 50 { // 5 s
			b.src.set(b.pub.overlay())
			b.wait(100 * time.Millisecond)
		}
		if n := creates.Load(); n < 1+5 || n > 1+30 {
			t.Errorf("of 50 changes in 5 s, %d were written", n-1)
		}
		b.wait(keepSpread)
		if b.feed.Status().Unkept {
			t.Error("a second after the last change it is not written")
		}
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.end()
		if a, _ := openOn(b.disk, nil).best(b.pub.ring(), "shop", nil); a == nil || a.m.Version() != b.pub.version {
			t.Errorf("on the disk is %v in the end", a)
		}
	})
}

// What comes into use while the feed ends is on the disk in the end.
func TestTheLastMapIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.wait(2 * time.Second)
		taking := make(chan struct{})
		b.sink.setFail(func(*routemap.Map) error { <-taking; return nil })
		b.src.set(b.pub.overlay())
		b.wait(time.Second)
		go func() {
			time.Sleep(time.Second)
			close(taking)
		}()
		b.end()
		b.want(1, 2)
		if a, _ := openOn(b.disk, nil).best(b.pub.ring(), "shop", nil); a == nil || a.m.Version() != b.pub.version {
			t.Errorf("on the disk is %v in the end", a)
		}
	})
}

// What can't be removed is no reason to write again what is there.
func TestAMapIsKeptThoughOldOnesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		creates := 0
		b.src.set(b.pub.base())
		b.startOn(stepDisk{b.disk, func(what string, do func() error) error {
			if strings.HasPrefix(what, "remove "+keptPrefix) {
				return errors.New("read-only")
			}
			if strings.HasPrefix(what, "create "+tempPrefix+keptPrefix) {
				creates++
			}
			return do()
		}}, []Source{b.src})
		for range 3 {
			b.wait(2 * time.Second)
			b.src.set(b.pub.overlay())
		}
		b.wait(10 * time.Minute)
		st := b.feed.Status()
		if st.Unkept || creates != 4 || !strings.Contains(st.Disk.Last, "read-only") {
			t.Errorf("unkept %v, %d written, trouble %+v", st.Unkept, creates, st.Disk)
		}
		b.end()
	})
}

// A full disk is loud, and written to again until it takes the map.
func TestAFullDiskIsWrittenToAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var full atomic.Bool
		full.Store(true)
		d := stepDisk{b.disk, func(what string, do func() error) error {
			if full.Load() && !strings.Contains(what, "marker") {
				return errors.New("no space left on device")
			}
			return do()
		}}
		b.src.set(b.pub.base())
		b.startOn(d, []Source{b.src})
		b.want(1)
		b.wait(time.Minute)
		st := b.feed.Status()
		if !st.Ready || !st.Unkept || st.Disk.Count < 3 || !strings.Contains(st.Disk.Last, "no space") {
			t.Errorf("status: ready %v, unkept %v, disk %+v", st.Ready, st.Unkept, st.Disk)
		}
		full.Store(false)
		b.wait(keepAgain)
		if st := b.feed.Status(); st.Unkept || len(st.Kept) != 1 {
			t.Errorf("after there was room: unkept %v, kept maps %v", st.Unkept, st.Kept)
		}
		b.end()
	})
}

func TestWhatIsOnTheDiskIsInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		b.src.set(b.pub.overlay())
		b.wait(time.Second)
		var got []uint32
		for _, g := range b.feed.Status().Kept {
			got = append(got, g.Version.Sequence())
		}
		if !slices.Equal(got, []uint32{2, 1}) {
			t.Errorf("kept maps %v", got)
		}
		b.end()
	})
}
