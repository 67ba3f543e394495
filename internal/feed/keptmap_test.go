package feed

import (
	"errors"
	"testing"
	"time"

	"github.com/cellway/cellway/routemap"
)

func testKept(t testing.TB) keptMap {
	v := newPublisher(t).base()
	return keptMap{time.Unix(1_800_000_000, 0).UTC(), v.Manifest, v.Overlay}
}

func TestAKeptMapReadsWhatItWrote(t *testing.T) {
	want := testKept(t)
	got, err := decodeKept(want.encode())
	if err != nil {
		t.Fatal(err)
	}
	if got.manifest.Digest() != want.manifest.Digest() || string(got.overlay) != string(want.overlay) || !got.acceptedAt.Equal(want.acceptedAt) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHalfAKeptMapIsKnownForIt(t *testing.T) {
	whole := testKept(t).encode()
	for n := range len(whole) {
		if _, err := decodeKept(whole[:n]); !isDamage(err) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 1
		if _, err := decodeKept(b); err == nil {
			t.Fatalf("byte %d flipped: no error", i)
		}
	}
	b := append([]byte(nil), whole...)
	b[4] = 9
	if _, err := decodeKept(b); !errors.Is(err, routemap.ErrTooNew) || isDamage(err) {
		t.Errorf("a later format: %v, want an error that leaves the file alone", err)
	}
}

func TestKeptNames(t *testing.T) {
	g := testKept(t)
	n := nameOf(g.manifest)
	if got, ok := parseKeptName(n.file()); !ok || got != n {
		t.Errorf("%s is read as %v, %v", n.file(), got, ok)
	}
	for _, bad := range []string{"", "map-", "map-1-2", "tmp-" + n.file(), n.file() + "x", "map-00000001000000g1-0123456789abcdef", "map-+000000100000001-0123456789abcdef", "marker"} {
		if got, ok := parseKeptName(bad); ok {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzKeptMap(f *testing.F) {
	f.Add(testKept(f).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeKept(b)
		if err != nil {
			return
		}
		if string(g.encode()) != string(b) {
			t.Error("two encodings of one kept map")
		}
	})
}
