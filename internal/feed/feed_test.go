package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A bench is a feed in a bubble with what it is joined to.
type bench struct {
	t    *testing.T
	pub  *publisher
	src  *memSource
	keys *fixedKeys
	sink *sink
	disk *memDisk
	feed *Feed
	end  func()
}

// newBench returns a bench whose feed does not run yet. Change its parts at
// will before start.
func newBench(t *testing.T) *bench {
	p := newPublisher(t)
	return &bench{t: t, pub: p, src: newMemSource("source"), keys: &fixedKeys{ring: p.ring()}, sink: &sink{}, disk: newMemDisk()}
}

// running returns a bench whose feed has its first map.
func running(t *testing.T) *bench {
	b := newBench(t)
	b.src.set(b.pub.base())
	b.start()
	return b
}

// start runs a feed on the bench's parts; sources replaces the bench's own.
func (b *bench) start(sources ...Source) {
	b.t.Helper()
	if len(sources) == 0 {
		sources = []Source{b.src}
	}
	b.startOn(b.disk, sources)
}

func (b *bench) startOn(d disk, sources []Source) {
	b.t.Helper()
	f, err := New(Config{Fleet: "shop", Sources: sources, Keys: b.keys, Sink: b.sink, Store: openOn(d, testLog(b.t)), StartJitter: -1, Log: testLog(b.t)})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	b.feed = f
	b.end = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.t.Errorf("Run returned %v", err)
		}
	}
	synctest.Wait()
}

// crash ends the feed and has the next start find the disk as it was before
// that end, as when the process had died.
func (b *bench) crash() {
	b.t.Helper()
	synctest.Wait()
	d := b.disk.clone()
	b.end()
	b.disk, b.sink = d, &sink{}
}

// restart ends the feed as it should, and starts another on its disk.
func (b *bench) restart(sources ...Source) {
	b.t.Helper()
	b.end()
	b.sink = &sink{}
	b.start(sources...)
}

func (b *bench) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want fails unless the sink got exactly these versions, by sequence.
func (b *bench) want(versions ...uint32) {
	b.t.Helper()
	if got := b.sink.versions(); !slices.Equal(got, versions) {
		b.t.Fatalf("the router got versions %v, want %v", got, versions)
	}
}

// wantRefused fails unless the last refusal is for that reason.
func (b *bench) wantRefused(reason string) Refusal {
	b.t.Helper()
	st := b.feed.Status()
	if len(st.Refused) == 0 || st.Refused[0].Reason != reason {
		b.t.Fatalf("refused is %+v, want %s", st.Refused, reason)
	}
	if st.Refusals[reason] == 0 {
		b.t.Fatalf("no refusal for %s is counted: %v", reason, st.Refusals)
	}
	return st.Refused[0]
}

func TestNewVersionsComeIntoUseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.want(1)
		begun := time.Now()
		for range 3 {
			b.src.set(b.pub.overlay())
			synctest.Wait()
		}
		b.src.set(b.pub.base())
		synctest.Wait()
		b.want(1, 2, 3, 4, 5)
		if d := time.Since(begun); d != 0 {
			t.Errorf("it took %v", d)
		}
		// A base is fetched when it changes, an overlay each time.
		if _, parts := b.src.asked(); parts != 2+3+2 {
			t.Errorf("%d parts were fetched, want 7", parts)
		}
		st := b.feed.Status()
		if !st.Ready || st.Version != b.pub.version || st.Swaps != 5 || st.From != "source" {
			t.Errorf("status %+v", st)
		}
		if b.feed.Map().Version() != b.pub.version {
			t.Error("Map is not the map in use")
		}
	})
}

// Constant work: everything is pulled again on a timer, whether it changed or
// not.
func TestEverythingIsPulledAgainOnATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		_, before := b.src.asked()
		b.wait(time.Hour + 6*time.Minute)
		_, parts := b.src.asked()
		if n := (parts - before) / 2; n < 5 || n > 7 {
			t.Errorf("everything was pulled %d times in 66 minutes, want about 6", n)
		}
		b.want(1)
		// A source whose parts rot is known before anybody needs them.
		b.src.do(func() { b.src.parts[b.pub.last.Base().Digest()] = []byte("rot") })
		b.wait(12 * time.Minute)
		b.wantRefused(ReasonDigest)
		b.want(1)
	})
}

func TestSickAnswersChangeNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil  func(b *bench)
		reason string
	}{
		"nothing at all":    {func(b *bench) { b.src.setRaw([]byte{}, b.pub.version+1) }, ReasonFormat},
		"a page of a proxy": {func(b *bench) { b.src.setRaw([]byte("<html><h1>It works!</h1>"), b.pub.version+1) }, ReasonFormat},
		"half a manifest": {func(b *bench) {
			raw := b.pub.overlay().Manifest.Encode()
			b.src.setRaw(raw[:len(raw)/2], b.pub.version)
		}, ReasonFormat},
		"a newer format": {func(b *bench) {
			raw := b.pub.overlay().Manifest.Encode()
			raw[4], raw[6] = 9, 9
			b.src.setRaw(raw, b.pub.version)
		}, ReasonTooNew},
		"a manifest with a flipped bit": {func(b *bench) {
			v := b.pub.overlay()
			raw := v.Manifest.Encode()
			raw[60] ^= 1
			b.src.setRaw(raw, v.Manifest.Version)
		}, ReasonUntrusted},
		"a manifest whose version became far too high": {func(b *bench) {
			v := b.pub.overlay()
			raw := v.Manifest.Encode()
			at := bytes.Index(raw, binary.LittleEndian.AppendUint64(nil, uint64(v.Manifest.Version)))
			raw[at+6] ^= 0x20 // of the incarnation
			man, err := routemap.DecodeManifest(raw)
			if err != nil {
				b.t.Fatal(err)
			}
			b.src.setRaw(raw, man.Version)
		}, ReasonUntrusted},
		"a short part": {func(b *bench) {
			v := b.pub.overlay()
			b.src.setSpoiled(v, v.Manifest.Overlay, v.Overlay[:len(v.Overlay)-1])
		}, ReasonDigest},
		"an empty part": {func(b *bench) {
			v := b.pub.base()
			b.src.setSpoiled(v, v.Manifest.Base, []byte{})
		}, ReasonDigest},
		"a part with a flipped bit": {func(b *bench) {
			v := b.pub.base()
			base := slices.Clone(v.Base)
			base[len(base)/2] ^= 1
			b.src.setSpoiled(v, v.Manifest.Base, base)
		}, ReasonDigest},
		"a stranger's signature": {func(b *bench) {
			other := newPublisher(b.t)
			other.version = b.pub.version
			b.src.set(other.base())
		}, ReasonUntrusted},
		"another fleet": {func(b *bench) {
			ours := b.pub.last
			b.pub.last = nil
			b.src.set(b.pub.publish(b.pub.must(routemap.Build(content("other"), 1))))
			b.pub.last = ours
		}, ReasonFleet},
		"a ring's map": {func(b *bench) {
			b.pub.version++
			_, v, err := routemap.Publish(b.pub.entry(), routemap.Publication{Version: b.pub.version, Parent: b.pub.last, Scope: "ring-0",
				CreatedAt: time.Unix(1_800_000_000, 0), Signers: []routemap.Signer{routemap.LocalSigner(b.pub.key)}})
			if err != nil {
				b.t.Fatal(err)
			}
			b.src.set(v)
		}, ReasonScope},
		"a fork": {func(b *bench) {
			m, ours := b.pub.must(b.pub.entry().Fold()), b.pub.last
			b.pub.version--
			b.pub.last = b.pub.before
			b.src.set(b.pub.publish(m))
			b.pub.last = ours
			b.feed.Refresh()
		}, ReasonFork},
		"an older version": {func(b *bench) {
			b.pub.version -= 2
			b.pub.last = nil
			b.src.set(b.pub.base())
			b.feed.Refresh()
		}, ReasonOld},
		"a change that nobody confirmed": {func(b *bench) { b.src.set(b.pub.shrunk(false)) }, ReasonGate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := running(t)
				defer b.end()
				b.src.set(b.pub.overlay())
				synctest.Wait()
				b.want(1, 2)
				tt.spoil(b)
				b.wait(time.Second)
				r := b.wantRefused(tt.reason)
				if r.Message == "" || r.Count == 0 || r.LastAt.IsZero() {
					t.Errorf("the refusal says too little: %+v", r)
				}
				if st := b.feed.Status(); !st.Ready || st.Version != cellway.NewVersion(1, 2) {
					t.Errorf("in use is %v", st.Version)
				}
				b.want(1, 2)
				if seen := b.feed.Status().Seen; seen.Incarnation() != 1 {
					t.Errorf("seen is %v", seen)
				}

				// It is not fetched again in a hot loop.
				manifests, parts := b.src.asked()
				b.wait(time.Hour)
				manifests2, parts2 := b.src.asked()
				if m, p := manifests2-manifests, parts2-parts; m > 450 || p > 60 {
					t.Errorf("in an hour %d manifests and %d parts were asked for", m, p)
				}
				b.want(1, 2)

				// What is good again comes into use without a restart.
				b.pub.version = max(b.pub.version, cellway.NewVersion(1, 10))
				b.src.set(b.pub.overlay())
				b.wait(31 * time.Second)
				b.want(1, 2, 11)
			})
		})
	}
}

// shrunk publishes a map without its entries, as a person confirmed it, or as
// nobody did though the verdict counts it right.
func (p *publisher) shrunk(confirmed bool) routemap.Version {
	p.t.Helper()
	c := p.last.Content()
	c.Extractors = []cellway.Extractor{{Kind: cellway.FromQuery, Name: "tenant"}}
	c.Entries = nil
	for i := range c.Owners {
		c.Owners[i].Epoch = 0
	}
	m := p.must(routemap.Build(c, p.epoch))
	p.epoch++
	p.version++
	m, v, err := routemap.Publish(m, routemap.Publication{Version: p.version, Parent: p.last, CreatedAt: time.Unix(1_800_000_000, 0),
		Verdict: routemap.Verdict{Confirmed: confirmed}, Signers: []routemap.Signer{routemap.LocalSigner(p.key)}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.last = m
	return v
}

// An empty map that was meant is possible: signed, and confirmed by a person.
func TestAnIntendedEmptyMapIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.src.set(b.pub.shrunk(true))
		synctest.Wait()
		b.want(1, 2, 3)
		if st := b.feed.Status(); st.Keys != 0 {
			t.Errorf("%d keys", st.Keys)
		}
	})
}

func TestASilentSourceTakesNoMapAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.want(1)
		b.src.fail(errors.New("connection refused"))
		b.wait(3 * 24 * time.Hour)
		st := b.feed.Status()
		if !st.Ready || b.feed.Map() == nil {
			t.Error("the map is gone")
		}
		if days := st.Age / 86400; days < 2.9 || days > 3 {
			t.Errorf("the map's age is %.1f days, want 3", days)
		}
		if s := st.Sources[0]; s.Error == "" || s.Failures < 3*24*60 {
			t.Errorf("the source's status is %+v", s)
		}
		// It comes back with the same map, and then a newer one.
		b.src.fail(nil)
		b.wait(20 * time.Second)
		if age := b.feed.Status().Age; age > 20 {
			t.Errorf("after it came back, the map's age is %v s", age)
		}
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.want(1, 2)
	})
}

func TestPanicOfTheRouterIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.sink.setFail(func(*routemap.Map) error { panic("index out of range") })
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.wantRefused(ReasonPanic)
		b.sink.setFail(func(*routemap.Map) error { return errSink })
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.wantRefused(ReasonSwap)
		b.want(1)
		b.sink.setFail(nil)
		b.wait(5 * time.Second) // it is tried again
		b.want(1, 3)
	})
}

func TestSourcesWithOneMapPullItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		v := b.pub.base()
		second := newMemSource("second")
		b.src.set(v)
		second.set(v)
		b.start(b.src, second)
		defer b.end()
		b.want(1)
		_, p1 := b.src.asked()
		_, p2 := second.asked()
		if p1+p2 != 2 {
			t.Errorf("%d and %d parts were fetched, want 2 in all", p1, p2)
		}
	})
}

func TestAHungSourceHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hung := newMemSource("hung")
		hung.hung = make(chan struct{})
		b.src.set(b.pub.base())
		b.start(hung, b.src)
		defer b.end()
		b.want(1)
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.want(1, 2)
	})
}

// One source has a part damaged; another has it whole.
func TestWhatOneSourceDamagedAnotherGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		sick := newMemSource("sick")
		v := b.pub.base()
		b.src.set(v)
		sick.set(v)
		b.start(sick, b.src)
		defer b.end()
		v = b.pub.overlay()
		sick.setSpoiled(v, v.Manifest.Overlay, []byte("no"))
		synctest.Wait()
		b.wantRefused(ReasonDigest)
		b.src.set(v)
		synctest.Wait()
		b.want(1, 2)
	})
}

func TestAStaleSourceTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stale := newMemSource("stale")
		v := b.pub.base()
		b.src.set(v)
		stale.set(v)
		b.start(b.src, stale)
		defer b.end()
		for range 3 {
			b.src.set(b.pub.overlay())
			synctest.Wait()
		}
		b.wait(time.Hour)
		b.want(1, 2, 3, 4)
		b.wantRefused(ReasonOld)
		if age := b.feed.Status().Age; age > 700 {
			t.Errorf("the good source confirms the map, yet its age is %v s", age)
		}
	})
}

func TestRefreshAsksAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.wait(3 * time.Second)
		before, _ := b.src.asked()
		for range 1000 { // over ten seconds
			b.feed.Refresh()
			b.wait(10 * time.Millisecond)
		}
		b.wait(2 * time.Second)
		after, _ := b.src.asked()
		if n := after - before; n < 10 || n > 12 {
			t.Errorf("asked %d times in ten seconds of refreshes, want about 11", n)
		}
		before = after
		b.feed.Refresh()
		synctest.Wait()
		if after, _ := b.src.asked(); after != before+1 {
			t.Error("a lone refresh had to wait")
		}
	})
}

// What asks for the newest map knows when there is none.
func TestAskWaitsForTheSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		hung := newMemSource("hung")
		b.start()
		b.wait(2 * time.Second)
		begun := time.Now()
		if err := b.feed.Ask(t.Context()); err != nil || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		b.end()

		b.start(b.src, hung)
		defer b.end()
		hung.do(func() { hung.hung = make(chan struct{}) })
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		if err := b.feed.Ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a hung source: %v", err)
		}
	})
}

func TestConfigMustBeWhole(t *testing.T) {
	src := []Source{newMemSource("s")}
	s := openOn(newMemDisk(), nil)
	for _, cfg := range []Config{
		{},
		{Sources: src, Keys: &fixedKeys{}, Sink: &sink{}, Store: s},
		{Fleet: "shop", Keys: &fixedKeys{}, Sink: &sink{}, Store: s},
		{Fleet: "shop", Sources: src, Sink: &sink{}, Store: s},
		{Fleet: "shop", Sources: src, Keys: &fixedKeys{}, Store: s},
		{Fleet: "shop", Sources: src, Keys: &fixedKeys{}, Sink: &sink{}},
	} {
		if _, err := New(cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("New(%+v): %v", cfg, err)
		}
	}
}
