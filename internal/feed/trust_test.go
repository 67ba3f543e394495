package feed

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// sign publishes an overlay signed by these publishers' keys.
func (p *publisher) sign(keys ...*publisher) routemap.Version {
	p.t.Helper()
	var signers []routemap.Signer
	for _, k := range keys {
		signers = append(signers, routemap.LocalSigner(k.key))
	}
	p.version++
	m, v, err := routemap.Publish(p.entry(), routemap.Publication{Version: p.version, Parent: p.last, CreatedAt: time.Unix(1_800_000_000, 0), Signers: signers})
	if err != nil {
		p.t.Fatal(err)
	}
	p.before, p.last = p.last, m
	return v
}

// trust returns a keyring of one publisher's key.
func trust(p *publisher, t routemap.Trust) routemap.PublicKey {
	k := p.ring()[0]
	k.Trust = t
	return k
}

// Trust new, sign with both, sign with new, drop old: at no step is a map
// refused, and a start in the middle of it starts.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		old, next := b.pub, newPublisher(t)
		b.src.set(old.base())
		b.start()
		step := func(ring routemap.Keyring, signers ...*publisher) {
			t.Helper()
			b.keys.set(ring)
			b.wait(2 * time.Second)
			if len(signers) > 0 {
				b.src.set(old.sign(signers...))
				synctest.Wait()
			}
			if st := b.feed.Status(); st.Version != old.version || len(st.Refused) > 0 || st.Distrusted {
				t.Fatalf("in use is %v, published was %v, refused %v", st.Version, old.version, st.Refused)
			}
			b.end()
			down := newMemSource("down")
			down.fail(errors.New("down"))
			b.start(down)
			if st := b.feed.Status(); st.Version != old.version {
				t.Fatalf("a start from the disk has %v, want %v", st.Version, old.version)
			}
			b.end()
			b.start()
		}
		both := routemap.Keyring{trust(old, routemap.Trusted), trust(next, routemap.Trusted)}
		step(both)
		step(both, old, next)
		step(both, next)
		step(routemap.Keyring{trust(next, routemap.Trusted)}, next)
		b.end()
	})
}

// A router whose last map was signed by the old key alone starts when that key
// is retired, but takes no new map from it.
func TestRetiredKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		next := newPublisher(t)
		b.src.set(b.pub.base())
		b.start()
		b.end()
		b.sink = &sink{}
		b.keys.set(routemap.Keyring{trust(b.pub, routemap.Retired), trust(next, routemap.Trusted)})
		b.src.set(b.pub.overlay())
		b.start()
		defer b.end()
		b.want(1)
		b.wantRefused(ReasonUntrusted)
		b.src.set(b.pub.sign(next))
		synctest.Wait()
		b.want(1, 3)
	})
}

// A map from a stolen key is not started from, and however high its version,
// a trusted map takes its place.
func TestRevokedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		thief, next := newPublisher(t), newPublisher(t)
		b.keys.set(routemap.Keyring{trust(b.pub, routemap.Trusted), trust(thief, routemap.Trusted)})
		good := b.pub.base()
		b.src.set(good)
		b.start()
		thief.version = cellway.NewVersion(1<<31, 7)
		b.src.set(thief.base())
		synctest.Wait()
		b.want(1, 8)
		b.keys.set(routemap.Keyring{trust(b.pub, routemap.Trusted), trust(thief, routemap.Revoked), trust(next, routemap.Trusted)})
		b.wait(2 * time.Second)
		if st := b.feed.Status(); !st.Distrusted || !st.Ready {
			t.Errorf("distrusted %v, ready %v; want an alarm and a router that serves", st.Distrusted, st.Ready)
		}
		b.src.set(b.pub.overlay())
		b.feed.Refresh()
		b.wait(2 * time.Second)
		b.want(1, 8, 2)
		if !slices.Equal(b.sink.replaced, []cellway.Version{b.pub.version}) {
			t.Errorf("as replacements came %v", b.sink.replaced)
		}
		if b.feed.Status().Distrusted {
			t.Error("still distrusted")
		}
		// Nor is it the newest on the disk.
		b.end()
		b.sink = &sink{}
		b.src.fail(errors.New("down"))
		b.start()
		b.want(2)
		b.end()
	})
}

// A key that is revoked while a map of it is being pulled brings no map into use.
func TestAKeyRevokedDuringAPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		thief := newPublisher(t)
		b.keys.set(routemap.Keyring{trust(b.pub, routemap.Trusted), trust(thief, routemap.Trusted)})
		b.src.set(b.pub.base())
		b.start()
		defer b.end()
		b.want(1)
		thief.version = cellway.NewVersion(1, 7)
		stolen := thief.base()
		slow := make(chan struct{})
		b.src.do(func() {
			b.src.parts[stolen.Manifest.Base.Digest], b.src.parts[stolen.Manifest.Overlay.Digest] = stolen.Base, stolen.Overlay
			b.src.manifest, b.src.version = stolen.Manifest.Encode(), stolen.Manifest.Version
			b.src.slowPart = slow
		})
		b.wait(time.Second)
		if _, parts := b.src.asked(); parts < 3 {
			t.Fatalf("%d parts were asked for", parts)
		}
		b.keys.set(routemap.Keyring{trust(b.pub, routemap.Trusted), trust(thief, routemap.Revoked)})
		b.wait(3 * time.Second) // the feed has seen it
		close(slow)
		b.wait(time.Second)
		b.want(1)
		b.wantRefused(ReasonUntrusted)
		if b.feed.Status().Distrusted {
			t.Error("the map in use is distrusted")
		}
	})
}

// A map that came before its key was trusted comes into use when it is.
func TestAKeyTrustedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		next := newPublisher(t)
		b.src.set(b.pub.base())
		b.start()
		defer b.end()
		b.src.set(b.pub.sign(next))
		b.wait(time.Minute)
		b.want(1)
		b.wantRefused(ReasonUntrusted)
		b.keys.set(append(b.pub.ring(), next.ring()...))
		b.wait(3 * time.Second)
		b.want(1, 2)
	})
}

func TestKeyringFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyring")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenKeyring(path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for name, text := range map[string]string{"empty": "", "nonsense": "hello\n", "only retired": string(routemap.Keyring{trust(newPublisher(t), routemap.Retired)}.Format())} {
		write([]byte(text))
		if _, err := OpenKeyring(path, nil); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, b := newPublisher(t).ring(), newPublisher(t).ring()
	write(a.Format())
	k, err := OpenKeyring(path, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	same := func(want routemap.Keyring) {
		t.Helper()
		if got := k.Keyring(); string(got.Format()) != string(want.Format()) {
			t.Errorf("the keys are %s, want %s", got.Format(), want.Format())
		}
	}
	same(a)
	write([]byte("ed25519 half a li"))
	same(a)
	if k.Err() == nil {
		t.Error("a damaged file is no error")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	same(a)
	write(b.Format())
	same(b)
	if k.Err() != nil {
		t.Error(k.Err())
	}
}

// Nobody vouches for the version of a manifest without a trusted signature: it
// must not keep the router from hearing of true maps below it.
func TestAVersionThatNobodySignedHidesNoTrueMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		b.want(1)
		far := newPublisher(t) // a stranger
		far.version = cellway.NewVersion(3_000_000, 1)
		b.src.set(far.base())
		b.wait(2 * time.Minute)
		b.wantRefused(ReasonUntrusted)
		if seen := b.feed.Status().Seen; seen != b.pub.version {
			t.Errorf("seen is %v, want %v", seen, b.pub.version)
		}
		b.src.set(b.pub.overlay())
		b.wait(31 * time.Second)
		b.want(1, 2)
	})
}
