package feed

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/routemap"
)

// A source that lost the base still brings what needs none of it: the base is
// in memory.
func TestAFailingPullOfEverythingStopsNoNewerMap(t *testing.T) {
	for name, spoil := range map[string]func(b *bench, base routemap.Digest){
		"the base is gone": func(b *bench, base routemap.Digest) { delete(b.src.parts, base) },
		"the base is rot":  func(b *bench, base routemap.Digest) { b.src.parts[base] = []byte("rot") },
		"the base hangs":   func(b *bench, base routemap.Digest) { b.src.hangPart = base },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := running(t)
				defer b.end()
				base := b.pub.last.Base().Digest()
				b.src.do(func() { spoil(b, base) })
				b.wait(12 * time.Minute)
				want := []uint32{1}
				for range 3 {
					v := b.pub.overlay()
					b.src.do(func() { b.src.parts[v.Manifest.Overlay.Digest] = v.Overlay })
					b.src.setRaw(v.Manifest.Encode(), v.Manifest.Version)
					synctest.Wait()
					want = append(want, v.Manifest.Version.Sequence())
					b.want(want...)
					b.wait(11 * time.Minute)
				}
				if name != "the base hangs" {
					if st := b.feed.Status(); st.Sources[0].Error == "" && st.Refusals[ReasonDigest] == 0 {
						t.Errorf("nobody is told of the source: %+v", st.Sources)
					}
				}
			})
		})
	}
}

// A source that can't give everything is not asked in a hot loop.
func TestAFailingPullOfEverythingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.src.do(func() { delete(b.src.parts, b.pub.last.Base().Digest()) })
		b.wait(12 * time.Minute)
		before, _ := b.src.asked()
		b.wait(time.Hour)
		after, _ := b.src.asked()
		if n := after - before; n < 5 || n > 40 {
			t.Errorf("asked %d times in an hour", n)
		}
		// Whole again, it is no longer in the status.
		v := b.pub.base()
		b.src.set(v)
		b.wait(12 * time.Minute)
		if err := b.feed.Status().Sources[0].Error; err != "" {
			t.Errorf("the source is whole again, but %q is told", err)
		}
	})
}

// A version is seen when it is used or refused, and not while a part of it
// can't be got: whoever knows of it must have it asked for again.
func TestAVersionThatCouldNotBePulledIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		before := b.pub.version
		v := b.pub.overlay()
		b.src.setRaw(v.Manifest.Encode(), v.Manifest.Version) // without its overlay
		b.wait(time.Minute)
		if seen := b.feed.Status().Seen; seen != before {
			t.Errorf("seen %v, want %v", seen, before)
		}
		b.src.set(v)
		b.wait(time.Minute)
		b.want(1, 2)
		if seen := b.feed.Status().Seen; seen != v.Manifest.Version {
			t.Errorf("seen %v, want %v", seen, v.Manifest.Version)
		}
	})
}

// A source that sends next to nothing of a part holds no other up for long.
func TestASlowSourceHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		slow := newMemSource("slow")
		v := b.pub.base()
		b.src.set(v)
		slow.set(v)
		b.start(slow, b.src)
		defer b.end()
		v = b.pub.base()
		slow.do(func() { slow.hangPart = v.Manifest.Base.Digest })
		slow.set(v)
		synctest.Wait()
		b.src.set(v)
		b.wait(pullPatience)
		b.want(1, 2)
	})
}
