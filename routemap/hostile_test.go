package routemap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
)

// withSection returns a part whose section has another body.
func withSection(part []byte, id uint16, body []byte) []byte {
	w := &writer{b: bytes.Clone(part[:frameHeader])}
	for rest := part[frameHeader:]; len(rest) > 0; {
		n := sectionSize(int(binary.LittleEndian.Uint64(rest[8:])))
		if binary.LittleEndian.Uint16(rest) == id {
			w.section(id, func() { w.b = append(w.b, body...) })
		} else {
			w.b = append(w.b, rest[:n]...)
		}
		rest = rest[n:]
	}
	return w.b
}

func bytesOf(fill func(w *writer)) []byte {
	var w writer
	fill(&w)
	return w.b
}

// Counts and records that no writer makes. None may cost more memory than the
// input has bytes, times a small factor.
func TestHostileRecordsAreRefused(t *testing.T) {
	m, v := signedSample(t)
	entry := func(w *writer, key string, kind uint8, cell uint16) {
		w.text(key)
		w.u8(kind)
		w.u16(cell)
		w.u64(7)
	}
	cell := func(w *writer, id string) {
		w.cell(&cellway.Cell{ID: cellway.CellID(id), Endpoints: []string{"http://a:1"}, State: cellway.CellActive})
	}
	records := map[string]func(*writer){
		"a huge count":             func(w *writer) { w.uvarint(1 << 60) },
		"a count that overflows":   func(w *writer) { w.b = bytes.Repeat([]byte{0xff}, 11) },
		"a long count":             func(w *writer) { w.b = append(w.b, 0x80, 0x00) },
		"one too many":             func(w *writer) { w.uvarint(2); entry(w, "a", 0, 0) },
		"one too few":              func(w *writer) { w.uvarint(1); entry(w, "a", 0, 0); entry(w, "b", 0, 0) },
		"out of order":             func(w *writer) { w.uvarint(2); entry(w, "b", 0, 0); entry(w, "a", 0, 0) },
		"twice":                    func(w *writer) { w.uvarint(2); entry(w, "a", 0, 0); entry(w, "a", 0, 0) },
		"owner beyond the cells":   func(w *writer) { w.uvarint(1); entry(w, "a", 0, 5) },
		"owner 32768":              func(w *writer) { w.uvarint(1); entry(w, "a", 0, 0x8000) },
		"placed nowhere":           func(w *writer) { w.uvarint(1); entry(w, "a", 0, noCell) },
		"kind 5":                   func(w *writer) { w.uvarint(1); entry(w, "a", 5, 0) },
		"kind 255":                 func(w *writer) { w.uvarint(1); entry(w, "a", 255, 0) },
		"an empty key":             func(w *writer) { w.uvarint(1); entry(w, "", 0, 0) },
		"a key with a space":       func(w *writer) { w.uvarint(1); entry(w, "a b", 0, 0) },
		"a key not UTF-8":          func(w *writer) { w.uvarint(1); entry(w, "a\xff", 0, 0) },
		"a key with two slashes":   func(w *writer) { w.uvarint(1); entry(w, "a/b/c", 0, 0) },
		"a key too long":           func(w *writer) { w.uvarint(1); entry(w, strings.Repeat("a", 129), 0, 0) },
		"a key length not minimal": func(w *writer) { w.uvarint(1); w.b = append(w.b, 0x81, 0, 'a', 0, 0, 0); w.u64(7) },
		"a key of 4 GiB":           func(w *writer) { w.uvarint(1); w.uvarint(1 << 32); w.u64(0); w.u64(0) },
		"an alias of nothing":      func(w *writer) { w.uvarint(1); w.text("a"); w.u8(16); w.text(""); w.u64(0) },
		"an alias with a part":     func(w *writer) { w.uvarint(1); w.text("a/b"); w.u8(16); w.text("c") },
		"a pin without a note":     func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0) },
		"a note not UTF-8":         func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("\xff"); w.u64(5) },
		"a note with a line break": func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("a\nb"); w.u64(5) },
		"a note too long": func(w *writer) {
			w.uvarint(1)
			entry(w, "a", 1, 0)
			w.text("by")
			w.text(strings.Repeat("x", 513))
			w.u64(5)
		},
		"a note by nobody":        func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text(""); w.text("x"); w.u64(5) },
		"a note without a date":   func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("x"); w.u64(0) },
		"a note with a paragraph": func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("a\u2029b"); w.u64(5) },
		"a note of year 10000":    func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("x"); w.u64(maxTime + 1) },
	}
	for name, fill := range records {
		// The table alone: in a whole base, the counts would be wrong as well.
		if err := new(table).read(bytesOf(fill), len(m.base.cells), m.base.seed); !errors.Is(err, ErrFormat) {
			t.Errorf("base, %s: %v", name, err)
		}
		if name == "owner beyond the cells" {
			continue // the overlay has more
		}
		if _, err := decodeOverlay(withSection(v.Overlay, secOverRecords, bytesOf(fill)), m.base); !errors.Is(err, ErrFormat) {
			t.Errorf("overlay, %s: %v", name, err)
		}
	}
	for name, bad := range map[string][]byte{
		"no cells":           withSection(v.Base, secCells, []byte{0}),
		"32,769 cells":       withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(cellway.MaxCells + 1); w.b = append(w.b, make([]byte, 400_000)...) })),
		"cells out of order": withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "b"); cell(w, "a") })),
		"a cell twice":       withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "a"); cell(w, "a") })),
		"a cell's id":        withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "A"); cell(w, "a") })),
		"a bucket short":     withSection(v.Base, secBuckets, make([]byte, 10)),
		"a bucket of nobody": withSection(v.Base, secBuckets, append(make([]byte, 16), 2, 0, 0, 0)),
		"counts too low":     withSection(v.Base, secCounts, make([]byte, 24)),
		"counts too high":    withSection(v.Base, secCounts, bytes.Repeat([]byte{9, 0, 0, 0}, 6)),
		"counts cut short":   withSection(v.Base, secCounts, []byte{2, 0, 0, 0}),
		"no settings":        withSection(v.Base, secSettings, nil),
		"mapping 2":          withSection(v.Base, secSettings, bytesOf(func(w *writer) { w.settings(Settings{Fleet: "shop", Mapping: 2}) })),
		"no buckets":         withSection(v.Base, secSettings, bytesOf(func(w *writer) { w.settings(Settings{Fleet: "shop"}) })),
		"a catch-all cell":   withSection(v.Base, secSettings, bytesOf(func(w *writer) { w.settings(Settings{Fleet: "shop", Mapping: Full, CatchAll: "a"}) })),
		"many extractors": withSection(v.Base, secSettings, bytesOf(func(w *writer) {
			w.settings(Settings{Fleet: "shop", Buckets: 2, Extractors: make([]cellway.Extractor, 65)})
		})),
		"endpoints beyond number": withSection(v.Base, secCells, bytesOf(func(w *writer) {
			w.uvarint(1)
			w.text("a")
			w.text("")
			w.u8(0)
			w.u8(0)
			w.u8(0)
			w.text("")
			w.text("")
			w.uvarint(1 << 20)
			w.b = append(w.b, make([]byte, 1<<20)...)
		})),
	} {
		if _, err := DecodeBase(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("base, %s: %v", name, err)
		}
	}
	for name, bad := range map[string][]byte{
		"an absence of nothing": withSection(v.Overlay, secOverRecords, bytesOf(func(w *writer) { w.uvarint(1); w.text("nobody"); w.u8(32) })),
		"cells out of order":    withSection(v.Overlay, secOverCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "b"); cell(w, "a") })),
		"a known cell last":     withSection(v.Overlay, secOverCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "x"); cell(w, "a") })),
		"a new cell twice":      withSection(v.Overlay, secOverCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "x"); cell(w, "x") })),
		"a bucket that is none": withSection(v.Overlay, secOverBuckets, bytesOf(func(w *writer) { w.uvarint(1); w.u32(2); w.u16(0); w.u64(9) })),
		"a bucket of nobody":    withSection(v.Overlay, secOverBuckets, bytesOf(func(w *writer) { w.uvarint(1); w.u32(1); w.u16(noCell); w.u64(9) })),
		"buckets out of order": withSection(v.Overlay, secOverBuckets, bytesOf(func(w *writer) {
			w.uvarint(2)
			w.u32(1)
			w.u16(0)
			w.u64(9)
			w.u32(1)
			w.u16(0)
			w.u64(9)
		})),
		"a hold of no move":     withSection(v.Overlay, secOverHolds, bytesOf(func(w *writer) { w.uvarint(1); w.text("acme"); w.text(""); w.u64(5); w.u32(1) })),
		"a hold without an end": withSection(v.Overlay, secOverHolds, bytesOf(func(w *writer) { w.uvarint(1); w.text("acme"); w.text("m"); w.u64(0); w.u32(1) })),
		"a hold twice": withSection(v.Overlay, secOverHolds, bytesOf(func(w *writer) {
			w.uvarint(2)
			for range 2 {
				w.text("acme")
				w.text("m")
				w.u64(5)
				w.u32(1)
			}
		})),
		"more than it may have": withSection(v.Overlay, secOverRecords, make([]byte, MaxOverlay)),
		"an overlay of nothing": {},
	} {
		if _, err := decodeOverlay(bad, m.base); !errors.Is(err, ErrFormat) {
			t.Errorf("overlay, %s: %v", name, err)
		}
	}
}

func TestBaseHasNoAbsences(t *testing.T) {
	b := sample(t).base
	rec := bytesOf(func(w *writer) { w.uvarint(1); w.text("somebody"); w.u8(uint8(recAbsence)) })
	if err := new(table).read(rec, len(b.cells), b.seed); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "absence") {
		t.Errorf("got %v", err)
	}
}

func TestRefusalsOfFormNameTheRule(t *testing.T) {
	m, v := signedSample(t)
	full, err := Build(Content{Settings: Settings{Fleet: "f", Mapping: Full}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	first := frameHeader + sectionSize(int(binary.LittleEndian.Uint64(v.Base[frameHeader+8:])))
	for want, decode := range map[string]func() error{
		"base: section 1 is missing": func() error {
			_, err := DecodeBase(append(bytes.Clone(v.Base[:frameHeader]), v.Base[first:]...))
			return err
		},
		"catch-all cell nowhere is not in the map": func() error {
			s := bytesOf(func(w *writer) { w.settings(Settings{Fleet: "f", Mapping: Full, CatchAll: "nowhere"}) })
			_, err := DecodeBase(withSection(full.base.raw, secSettings, s))
			return err
		},
		"overlay has 262145 bytes, the most is 262144": func() error { _, err := decodeOverlay(make([]byte, MaxOverlay+1), m.base); return err },
		"manifest has 65537 bytes, the most is 65536":  func() error { _, err := DecodeManifest(make([]byte, MaxManifest+1)); return err },
		"32769 cells, the most is 32768": func() error {
			var c Content
			c.Fleet, c.Mapping = "f", Full
			for i := range cellway.MaxCells {
				c.Cells = append(c.Cells, cellway.Cell{ID: cellway.CellID(fmt.Sprintf("c-%d", i))})
			}
			large, err := Build(c, 1)
			if err != nil {
				return err
			}
			over := noChanges()
			over.setCells([]*cellway.Cell{{ID: "one-more"}})
			_, err = decodeOverlay(over.encode(), large.base)
			return err
		},
	} {
		if err := decode(); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A count must not make a reader take more memory than the input is worth.
func TestHostileCountsCostNoMemory(t *testing.T) {
	m, v := signedSample(t)
	count := func(n int) []byte {
		return append(bytesOf(func(w *writer) { w.uvarint(n) }), make([]byte, 64)...)
	}
	endpoints := bytesOf(func(w *writer) {
		w.uvarint(1)
		w.text("a")
		w.b = append(w.b, make([]byte, 6)...) // no title, new, drained, no guard, no region, no zone
		w.uvarint(1 << 20)
		w.b = append(w.b, make([]byte, 1<<20)...)
	})
	for name, decode := range map[string]func() error{
		"records":   func() error { return new(table).read(count(1<<28), 1, m.base.seed) },
		"cells":     func() error { _, err := DecodeBase(withSection(v.Base, secCells, count(30_000))); return err },
		"endpoints": func() error { _, err := decodeCells(endpoints); return err },
		"overlay records": func() error {
			_, err := decodeOverlay(withSection(v.Overlay, secOverRecords, count(1<<28)), m.base)
			return err
		},
		"holds": func() error {
			_, err := decodeOverlay(withSection(v.Overlay, secOverHolds, count(1<<28)), m.base)
			return err
		},
		"signatures": func() error {
			_, err := DecodeManifest(withSection(v.Manifest.Encode(), secSignatures, count(1<<28)))
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decode()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrFormat) || n > 1<<20 {
			t.Errorf("%s: %v, with %d bytes", name, err, n)
		}
	}
}

// A manifest that is signed and wrong all the same: sizes and fleet are held
// against the parts.
func TestOpenHoldsTheManifestAgainstTheParts(t *testing.T) {
	m, v := signedSample(t)
	for name, tt := range map[string]struct {
		forge func(*Manifest)
		want  error
	}{
		"size of the base":    {func(man *Manifest) { man.Base.Size++ }, ErrDigest},
		"size of the overlay": {func(man *Manifest) { man.Overlay.Size-- }, ErrDigest},
		"digest":              {func(man *Manifest) { man.Overlay.Digest[31] ^= 1 }, ErrDigest},
		"fleet":               {func(man *Manifest) { man.Fleet = "other" }, ErrFleet},
	} {
		man := *v.Manifest
		tt.forge(&man)
		if _, err := Open(&man, m.base, v.Overlay); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	// What nobody named is not even decoded.
	rubbish := v
	rubbish.Base = []byte("rubbish")
	if _, err := rubbish.Open(Keyring{{Key: testSigner(1).Public()}}, false); !errors.Is(err, ErrDigest) {
		t.Errorf("rubbish for a base: %v", err)
	}
}

func TestIndexIsAtMostTwoThirdsFull(t *testing.T) {
	for n := range 5000 {
		if x := newKeyIndex(n, n); n > 0 && 3*n > 2*len(x.places) || len(x.places) > max(2, 3*n) {
			t.Fatalf("%d places for %d keys", len(x.places), n)
		}
	}
}

func TestHostileManifestsAreRefused(t *testing.T) {
	_, v := signedSample(t)
	good := v.Manifest.Encode()
	body := bytesOf(func(w *writer) { w.b = append(w.b, good[frameHeader+sectionHeader:]...) })[:binary.LittleEndian.Uint64(good[frameHeader+8:])]
	at := func(off int, b ...byte) []byte {
		c := bytes.Clone(body)
		copy(c[off:], b)
		return withSection(good, secManifest, c)
	}
	sig := func(key string) []byte { return append([]byte(key), make([]byte, 64)...) }
	const fleet = 5 // bytes of "shop" with its length
	for name, bad := range map[string][]byte{
		"fleet":                 at(1, 'S'),
		"version 0":             at(fleet, make([]byte, 8)...),
		"its own parent":        at(fleet+8, 1),
		"a parent to come":      at(fleet+8, 9),
		"a digest of no parent": at(fleet+16, 1),
		"scope":                 at(fleet+16+32+1, 'b'),
		"confirmed twice":       withSection(good, secVerdict, append([]byte{2}, make([]byte, 42)...)),
		"verdict cut short":     withSection(good, secVerdict, []byte{1}),
		"a signature too short": withSection(good, secSignatures, append([]byte{1}, sig("0123456789abcdef")[:79]...)),
		"a signature too long":  withSection(good, secSignatures, append([]byte{1}, append(sig("0123456789abcdef"), 0)...)),
		"a key's name":          withSection(good, secSignatures, append([]byte{1}, sig("0123456789ABCDEF")...)),
		"a signature twice":     withSection(good, secSignatures, slices.Concat([]byte{2}, sig("0123456789abcdef"), sig("0123456789abcdef"))),
		"signatures unsorted":   withSection(good, secSignatures, slices.Concat([]byte{2}, sig("1123456789abcdef"), sig("0123456789abcdef"))),
		"17 signatures":         withSection(good, secSignatures, append([]byte{17}, make([]byte, 17*80)...)),
		"more than 64 KiB":      append(bytes.Clone(good), make([]byte, MaxManifest)...),
		"a base of 4 GiB":       at(len(body)-48, 0, 0, 0, 0, 1),
	} {
		if _, err := DecodeManifest(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever is left of a place for the hash, and be it nothing, a look-up finds
// each key that was added and ends for those that were not.
func TestIndexFindsKeysWithAnyRoomForTheHash(t *testing.T) {
	const n = 300
	for _, most := range []int{n, 1 << 16, 1<<20 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 2} {
		x := newKeyIndex(n, most)
		hashes := make([]uint64, 2*n) // the first half is added
		for i := range hashes {
			hashes[i] = rand.Uint64()
		}
		number := func(i int) int { return most - 1 - i }
		for i, hash := range hashes[:n] {
			x.add(hash, number(i))
		}
		others := 0
		for i, hash := range hashes {
			found := false
			for p := x.probe(hash); ; {
				at := p.next()
				if at < 0 {
					break
				}
				if found = at == number(i); found {
					break
				}
				others++
			}
			if found != (i < n) {
				t.Errorf("numbers below %d: key %d of %d: found is %v", most, i, n, found)
			}
		}
		if free := 32 - bits.Len(uint(most)); free >= 8 && others > n/8 {
			t.Errorf("numbers below %d: %d other keys looked at with %d bits to tell them apart", most, others, free)
		}
	}
}
