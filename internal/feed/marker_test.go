package feed

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cellway/cellway/routemap"
)

func testPart(isBase bool, n byte) part {
	return part{isBase, routemap.Digest{n, 1}}
}

// A life is one run of a process: what it uses, and how it ends.
type life struct {
	base, overlay part
	fallback      bool
	soaked        bool // long enough for both
	clean         bool
}

// live plays one run of a process after the one before was judged.
func (m *marker) live(l life) judgement {
	j := m.judge()
	m.begin(l.base, l.overlay, l.fallback)
	if l.soaked {
		m.survive(&m.base)
		m.survive(&m.overlay)
	}
	if l.clean {
		m.end()
	}
	return j
}

func TestThreeUncleanExitsMakeAPartSuspect(t *testing.T) {
	b1, o1, o2 := testPart(true, 1), testPart(false, 1), testPart(false, 2)
	for name, tt := range map[string]struct {
		lives       []life
		base        bool // is suspect after them
		overlay     bool // o1 is
		baseCrashes uint8
	}{
		"two":                   {lives: []life{{base: b1, overlay: o1}, {base: b1, overlay: o1}}, baseCrashes: 2},
		"three":                 {lives: []life{{base: b1, overlay: o1}, {base: b1, overlay: o1}, {base: b1, overlay: o1}}, base: true, overlay: true, baseCrashes: 3},
		"clean exits count not": {lives: []life{{base: b1, overlay: o1}, {base: b1, overlay: o1}, {base: b1, overlay: o1, clean: true}}, baseCrashes: 2},
		"late exits count not":  {lives: []life{{base: b1, overlay: o1, soaked: true}, {base: b1, overlay: o1, soaked: true}, {base: b1, overlay: o1, soaked: true}}},
		"a soak forgives":       {lives: []life{{base: b1, overlay: o1}, {base: b1, overlay: o1}, {base: b1, overlay: o1, soaked: true}, {base: b1, overlay: o1}}, baseCrashes: 1},
		"a base that has lived is not blamed for a new overlay": {
			lives: []life{{base: b1, overlay: o2, soaked: true}, {base: b1, overlay: o1}, {base: b1, overlay: o1}, {base: b1, overlay: o1}}, overlay: true},
		"a base is blamed across overlays": {
			lives: []life{{base: b1, overlay: o1}, {base: b1, overlay: o2}, {base: b1, overlay: testPart(false, 3)}}, base: true, baseCrashes: 3},
		"both are, if both have lived": {
			lives: []life{{base: b1, overlay: o1, soaked: true}, {base: b1, overlay: o1}, {base: b1, overlay: o1}, {base: b1, overlay: o1}}, base: true, overlay: true, baseCrashes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			var m marker
			for _, l := range tt.lives {
				m.live(l)
			}
			m.judge()
			base, _ := m.suspect(b1)
			overlay, _ := m.suspect(o1)
			if base != tt.base || overlay != tt.overlay {
				t.Errorf("suspect: base %v, overlay %v; want %v, %v", base, overlay, tt.base, tt.overlay)
			}
			if r := m.find(b1); r != nil && r.crashes != tt.baseCrashes || r == nil && tt.baseCrashes != 0 {
				t.Errorf("the base has %+v, want %d crashes", r, tt.baseCrashes)
			}
		})
	}
}

func TestUncleanExitOnTheFallbackAcquits(t *testing.T) {
	b1, o1, b2, o2 := testPart(true, 1), testPart(false, 1), testPart(true, 2), testPart(false, 2)
	var m marker
	m.live(life{base: b1, overlay: o1, soaked: true})
	for range 3 {
		m.live(life{base: b2, overlay: o2})
	}
	if j := m.live(life{base: b1, overlay: o1, fallback: true, soaked: true}); len(j.blamed) != 2 {
		t.Fatalf("the third exit blamed %v", j.blamed)
	}
	// Late on the fallback: no acquittal.
	if j := m.live(life{base: b1, overlay: o1, fallback: true}); len(j.acquitted) != 0 {
		t.Fatalf("an exit after the soak acquitted %v", j.acquitted)
	}
	if bad, _ := m.suspect(b2); !bad {
		t.Fatal("the new base is not suspect")
	}
	// Early on the fallback.
	if j := m.judge(); len(j.acquitted) != 2 {
		t.Errorf("an exit on the fallback acquitted %v, want both parts", j.acquitted)
	}
	if bad, _ := m.suspect(b2); bad {
		t.Error("the new base is still suspect")
	}
	if r := m.find(b1); r.crashes != 1 {
		t.Errorf("the fallback's base has %d crashes, want 1", r.crashes)
	}
}

// Two bad maps over a good one: the good one is found.
func TestMarkerGetsPastTwoBadMaps(t *testing.T) {
	type version struct {
		base, overlay part
		bad           bool
	}
	versions := []version{ // newest first
		{testPart(true, 3), testPart(false, 3), true},
		{testPart(true, 2), testPart(false, 2), true},
		{testPart(true, 1), testPart(false, 1), false},
	}
	var m marker
	for n := 1; ; n++ {
		m.judge()
		i := slices.IndexFunc(versions, func(v version) bool {
			b, _ := m.suspect(v.base)
			o, _ := m.suspect(v.overlay)
			return !b && !o
		})
		if i < 0 {
			t.Fatalf("start %d: nothing is left to use", n)
		}
		m.begin(versions[i].base, versions[i].overlay, i > 0)
		if !versions[i].bad {
			t.Logf("found after %d starts", n)
			break
		}
		if n == 20 {
			t.Fatal("20 starts and the good map was not used")
		}
	}
}

func TestNoMapAtAllAcquitsToo(t *testing.T) {
	b1, o1 := testPart(true, 1), testPart(false, 1)
	var m marker
	for range 3 {
		m.live(life{base: b1, overlay: o1})
	}
	m.live(life{fallback: true})
	if bad, _ := m.suspect(b1); !bad {
		t.Fatal("the base is not suspect")
	}
	m.judge()
	if bad, _ := m.suspect(b1); bad {
		t.Error("the process died without a map, and the base is still suspect")
	}
	if len(m.records) != 2 {
		t.Errorf("%d records, want those of the two parts", len(m.records))
	}
}

func TestMarkerForgetsWhatMattersLeast(t *testing.T) {
	var m marker
	bad := testPart(true, 200)
	for range 3 {
		m.live(life{base: bad, overlay: testPart(false, 200)})
	}
	m.judge()
	good := testPart(true, 100)
	for n := range byte(100) {
		m.live(life{base: good, overlay: testPart(false, n), soaked: true, clean: true})
	}
	if len(m.records) != maxRecords {
		t.Errorf("%d records, want %d", len(m.records), maxRecords)
	}
	if is, _ := m.suspect(bad); !is {
		t.Error("the suspect was forgotten")
	}
	if !m.hasLived(good) || !m.hasLived(testPart(false, 99)) {
		t.Error("what is in use was forgotten")
	}
}

func randomMarker(r *rand.Rand) marker {
	m := marker{running: r.IntN(2) == 0, fallback: r.IntN(2) == 0}
	m.base, m.overlay = trial{testPart(true, byte(1+r.IntN(9))), r.IntN(2) == 0}, trial{testPart(false, byte(1+r.IntN(9))), r.IntN(2) == 0}
	for i := range r.IntN(maxRecords + 1) {
		m.records = append(m.records, record{testPart(i%2 == 0, byte(i)), byte(r.IntN(256)), byte(r.IntN(256)), r.IntN(2) == 0})
	}
	return m
}

func TestMarkerReadsWhatItWrote(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		want := randomMarker(r)
		got, seq, ok := decodeMarker(append(make([]byte, markerCopy), want.encode(7)...))
		if !ok || seq != 7 || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %d, %v\nwant %+v", got, seq, ok, want)
		}
	}
}

func TestTornMarkerIsTheOneBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	old, next := randomMarker(r), randomMarker(r)
	file := append(old.encode(7), make([]byte, markerCopy)...)
	whole := next.encode(8)
	for _, torn := range []int{0, 1, 4, 100, 512, 1024, markerCopy - 1, markerCopy} {
		copy(file[markerCopy:], bytes.Repeat([]byte{0xff}, markerCopy))
		copy(file[markerCopy:], whole[:torn])
		got, seq, ok := decodeMarker(file)
		want := uint64(7)
		if torn == markerCopy {
			want = 8
		}
		if !ok || seq != want {
			t.Errorf("after %d bytes: marker %d, %v; want %d", torn, seq, ok, want)
		}
		if seq == 7 && !reflect.DeepEqual(got, old) {
			t.Errorf("after %d bytes: another marker than before", torn)
		}
	}
}

func FuzzMarker(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		m := randomMarker(r)
		f.Add(m.encode(1)[:300])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum is made right, or the fuzzer would find nothing else.
		half := make([]byte, markerCopy-sha256.Size)
		copy(half, body)
		sum := sha256.Sum256(half)
		m, seq, ok := decodeMarker(append(half, sum[:]...))
		if !ok {
			return
		}
		if len(m.records) > maxRecords {
			t.Fatalf("%d records", len(m.records))
		}
		again, seq2, ok := decodeMarker(m.encode(seq))
		if !ok || seq != seq2 || !slices.Equal(m.records, again.records) {
			t.Fatal("the marker does not read what it wrote")
		}
		m.judge()
		m.begin(testPart(true, 1), testPart(false, 1), false)
	})
}

func ExampleReasons() {
	for _, r := range Reasons()[:3] {
		fmt.Println(r)
	}
	// Output:
	// map_format
	// map_too_new
	// map_digest
}
