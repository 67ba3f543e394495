package routemap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// sample is a small map with a record of each kind in base and overlay.
func sample(t testing.TB) *Map {
	t.Helper()
	review := time.Unix(2e9, 0)
	cell := func(id cellway.CellID) cellway.Cell {
		return cellway.Cell{ID: id, Endpoints: []string{"http://a:1", "https://b:2"}, State: cellway.CellActive, Admit: 100, Guard: cellway.GuardFence,
			Title: "Zelle", Region: "eu", Zone: "a", Tags: map[string]string{"k": "v", "j": "w"}}
	}
	m, err := Build(Content{
		Settings: Settings{Fleet: "shop", Mapping: Buckets, Buckets: 2, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-T", MustAgree: true}}},
		Cells:    []cellway.Cell{cell("a"), cell("b")},
		Owners:   []cellway.BucketOwner{{Bucket: 0, Cell: "a"}, {Bucket: 1, Cell: "b"}},
		Entries: []cellway.Entry{
			{Key: "acme", Cell: "a"}, {Key: "acme/eu", Cell: "b"}, {Key: "gone-soon", Cell: "a"},
			{Key: "sick", Kind: cellway.Quarantine, By: "ops", Reason: "Grund", ReviewBy: review},
			{Key: cellway.Key(strings.Repeat("k", 128) + "/" + strings.Repeat("p", 128)), Cell: "a"},
		},
		Aliases:    []cellway.Alias{{Name: "old", Target: "acme/eu"}, {Name: "older", Target: "acme"}},
		Tombstones: []cellway.Tombstone{{Key: "left"}},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cs, _ := m.Number(ChangeSet{
		Cells:         []cellway.Cell{cell("z"), {ID: "c"}, {ID: "a", Endpoints: []string{"http://a:1"}, State: cellway.CellCordoned}},
		Owners:        []cellway.BucketOwner{{Bucket: 1, Cell: "z"}},
		Entries:       []cellway.Entry{{Key: "new", Cell: "z"}, {Key: "acme", Kind: cellway.Pin, Cell: "b", By: "ops", Reason: "because", ReviewBy: review}},
		RemoveEntries: []cellway.Key{"gone-soon"},
		Aliases:       []cellway.Alias{{Name: "alias", Target: "new"}},
		Tombstones:    []cellway.Tombstone{{Key: "left/eu"}},
		Holds:         []cellway.Hold{{Key: "new", Move: "m", Until: review, HoldMS: 9}, {Key: "acme", Move: "n", Until: review}},
	}, 100)
	if m, err = m.Apply(cs); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOverlaySizeIsWhatItEncodesTo(t *testing.T) {
	m := sample(t)
	for _, o := range []*overlay{m.over, noChanges(), m.base.emptied(t)} {
		if got, want := o.size(), len(o.encode()); got != want {
			t.Errorf("size is %d, encoded %d", got, want)
		}
	}
}

// emptied returns an overlay that hides all of b.
func (b *Base) emptied(t testing.TB) *overlay {
	o := noChanges()
	var recs []overRecord
	for key := range b.tab.all {
		recs = append(recs, overRecord{key, b.hash(key), absent})
	}
	o.setRecords(recs)
	if _, err := decodeOverlay(o.encode(), b); err != nil {
		t.Fatal(err)
	}
	return o
}

// A reader says which version it would need, and which it is.
func TestNewerFormatIsRefusedWithBothNumbers(t *testing.T) {
	m, v := signedSample(t)
	decode := map[string]func([]byte) error{
		"base":        func(b []byte) error { _, err := DecodeBase(b); return err },
		"overlay":     func(b []byte) error { _, err := decodeOverlay(b, m.base); return err },
		"manifest":    func(b []byte) error { _, err := DecodeManifest(b); return err },
		"map archive": func(b []byte) error { _, err := ReadArchive(bytes.NewReader(b)); return err },
	}
	for what, part := range parts(v) {
		newer := bytes.Clone(part)
		binary.LittleEndian.PutUint16(newer[4:], 9)
		binary.LittleEndian.PutUint16(newer[6:], 7)
		err := decode[what](newer)
		want := fmt.Sprintf("%s: format 9 needs a reader of format 7 or later, this one reads up to %d; upgrade it first: %v", what, FormatVersion, ErrTooNew)
		if !errors.Is(err, ErrTooNew) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
		for _, nonsense := range [][2]uint16{{0, 0}, {1, 0}, {1, 2}, {0, 1}} {
			binary.LittleEndian.PutUint16(newer[4:], nonsense[0])
			binary.LittleEndian.PutUint16(newer[6:], nonsense[1])
			if err := decode[what](newer); err == nil {
				t.Errorf("%s: format %d for readers from %d was read", what, nonsense[0], nonsense[1])
			}
		}
	}
}

func signedSample(t testing.TB) (*Map, Version) {
	t.Helper()
	m, v, err := Publish(sample(t), Publication{Version: 1, Signers: []Signer{testSigner(1), testSigner(2)}, CreatedAt: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return m, v
}

// parts returns the encoded parts of v by what they are.
func parts(v Version) map[string][]byte {
	return map[string][]byte{"base": v.Base, "overlay": v.Overlay, "manifest": v.Manifest.Encode(), "map archive": v.Archive()}
}

// spliced returns a part in which a section stands before the one with id
// next, under a format version.
func spliced(part []byte, version, id, flags, next uint16, body []byte) []byte {
	w := &writer{b: bytes.Clone(part[:frameHeader])}
	binary.LittleEndian.PutUint16(w.b[4:], version)
	put := func() {
		w.section(id, func() { w.b = append(w.b, body...) })
		at := len(w.b) - sectionSize(len(body))
		binary.LittleEndian.PutUint16(w.b[at+2:], flags)
	}
	for rest := part[frameHeader:]; len(rest) > 0; {
		if binary.LittleEndian.Uint16(rest) == next {
			put()
		}
		n := sectionSize(int(binary.LittleEndian.Uint64(rest[8:])))
		w.b = append(w.b, rest[:n]...)
		rest = rest[n:]
	}
	if next == 0 {
		put()
	}
	return w.b
}

// A later format may add sections. A reader skips those that it may, and
// refuses the others.
func TestSectionsOfALaterFormat(t *testing.T) {
	m, v := signedSample(t)
	decode := map[string]func([]byte) error{
		"base":     func(b []byte) error { _, err := DecodeBase(b); return err },
		"overlay":  func(b []byte) error { _, err := decodeOverlay(b, m.base); return err },
		"manifest": func(b []byte) error { _, err := DecodeManifest(b); return err },
	}
	ids := map[string][2]uint16{"base": {9, 0}, "overlay": {9, 0}, "manifest": {9, secSignatures}}
	for what, part := range parts(v) {
		if what == "map archive" {
			continue
		}
		id, before := ids[what][0], ids[what][1]
		if err := decode[what](spliced(part, 2, id, 0, before, []byte("later"))); err != nil {
			t.Errorf("%s with a section that may be skipped: %v", what, err)
		}
		err := decode[what](spliced(part, 2, id, flagCritical, before, []byte("later")))
		if !errors.Is(err, ErrTooNew) || !strings.Contains(err.Error(), "section 9 of format 2") || !strings.Contains(err.Error(), "reader of format 1") {
			t.Errorf("%s with a section that may not be skipped: %v", what, err)
		}
		if err := decode[what](spliced(part, 1, id, 0, before, []byte("later"))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s of format 1 with a section of a later one: %v", what, err)
		}
		if err := decode[what](spliced(part, 2, id, 2, before, nil)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s with an unknown flag: %v", what, err)
		}
	}
	// Geodes and ranges have their places.
	for what, id := range map[string]uint16{"base": 3, "overlay": 2} {
		if err := decode[what](spliced(parts(v)[what], 2, id, flagCritical, id+1, []byte("geodes"))); !errors.Is(err, ErrTooNew) {
			t.Errorf("%s with geodes: %v", what, err)
		}
	}
	if err := decode["base"](spliced(v.Base, 2, 6, flagCritical, 7, []byte("ranges"))); !errors.Is(err, ErrTooNew) {
		t.Errorf("base with ranges: %v", err)
	}
	// What a later format adds to a manifest is signed as well.
	man, err := DecodeManifest(spliced(v.Manifest.Encode(), 2, 9, 0, secSignatures, []byte("later")))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(man.body, []byte("later")) {
		t.Error("a later section is not among what was signed")
	}
	if err := (Keyring{{Key: testSigner(1).Public()}}).Verify(man, false); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a section that nobody signed: %v", err)
	}
}

// Parts that are cut, stretched, reordered or lie about their sizes.
func TestBrokenFramesAreRefused(t *testing.T) {
	_, v := signedSample(t)
	base := v.Base
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(base)) }
	second := frameHeader + sectionSize(int(binary.LittleEndian.Uint64(base[frameHeader+8:])))
	for name, bad := range map[string][]byte{
		"nothing":               nil,
		"magic alone":           []byte("CWYB"),
		"another magic":         change(func(b []byte) []byte { b[3] = 'X'; return b }),
		"no section":            base[:frameHeader],
		"cut in a section":      base[:len(base)-9],
		"half a header":         base[:second+7],
		"a section missing":     append(bytes.Clone(base[:frameHeader]), base[second:]...),
		"a section twice":       append(bytes.Clone(base[:second]), base[frameHeader:]...),
		"sections swapped":      slices.Concat(base[:frameHeader], base[second:], base[frameHeader:second]),
		"4 GiB":                 change(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[frameHeader+8:], 1<<32); return b }),
		"2^63":                  change(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[frameHeader+8:], 1<<63); return b }),
		"2^64 - 8":              change(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[frameHeader+8:], 1<<64-8); return b }),
		"one byte longer":       change(func(b []byte) []byte { b[frameHeader+8]++; return b }),
		"overlapping the next":  change(func(b []byte) []byte { b[frameHeader+8] += 32; return b }),
		"padding is not zero":   change(func(b []byte) []byte { b[padding(b)] = 1; return b }),
		"reserved is not zero":  change(func(b []byte) []byte { b[frameHeader+4] = 1; return b }),
		"known but skippable":   change(func(b []byte) []byte { b[frameHeader+2] = 0; return b }),
		"section 0":             spliced(base, 2, 0, 0, 1, nil),
		"bytes behind the end":  append(bytes.Clone(base), 0),
		"a section behind that": append(bytes.Clone(base), base[frameHeader:second]...),
	} {
		if _, err := DecodeBase(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want %v", name, err, ErrFormat)
		}
	}
}

// padding returns where a byte of padding stands in a part.
func padding(part []byte) int {
	for at := frameHeader; ; {
		size := int(binary.LittleEndian.Uint64(part[at+8:]))
		if size%8 != 0 {
			return at + sectionHeader + size
		}
		at += sectionSize(size)
	}
}

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
		"a note by nobody":      func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text(""); w.text("x"); w.u64(5) },
		"a note without a date": func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("x"); w.u64(0) },
		"a note of year 10000":  func(w *writer) { w.uvarint(1); entry(w, "a", 1, 0); w.text("by"); w.text("x"); w.u64(maxTime + 1) },
	}
	for name, fill := range records {
		if _, err := DecodeBase(withSection(v.Base, secRecords, bytesOf(fill))); !errors.Is(err, ErrFormat) {
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
		"absence in a base":  withSection(v.Base, secRecords, bytesOf(func(w *writer) { w.uvarint(1); w.text("a"); w.u8(32); w.u64(0) })),
		"no cells":           withSection(v.Base, secCells, []byte{0}),
		"32,769 cells":       withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(cellway.MaxCells + 1); w.b = append(w.b, make([]byte, 400_000)...) })),
		"cells out of order": withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "b"); cell(w, "a") })),
		"a cell twice":       withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "a"); cell(w, "a") })),
		"a cell's id":        withSection(v.Base, secCells, bytesOf(func(w *writer) { w.uvarint(2); cell(w, "A"); cell(w, "a") })),
		"a bucket short":     withSection(v.Base, secBuckets, make([]byte, 10)),
		"a bucket of nobody": withSection(v.Base, secBuckets, append(make([]byte, 16), 2, 0, 0, 0)),
		"counts":             withSection(v.Base, secCounts, make([]byte, 24)),
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

// A part that was read is, written again, the same bytes: then nobody can
// write one map in two ways.
func TestPartsAreWrittenAsTheyWereRead(t *testing.T) {
	m, v := signedSample(t)
	base, err := DecodeBase(v.Base)
	if err != nil {
		t.Fatal(err)
	}
	if again := base.rewritten(t); !bytes.Equal(again, v.Base) {
		t.Error("the base is written in another way")
	}
	over, err := decodeOverlay(v.Overlay, base)
	if err != nil || !bytes.Equal(over.encode(), v.Overlay) {
		t.Errorf("the overlay is written in another way: %v", err)
	}
	man, err := DecodeManifest(v.Manifest.Encode())
	if err != nil || !bytes.Equal(man.rewritten(), v.Manifest.Encode()) {
		t.Errorf("the manifest is written in another way: %v", err)
	}
	if m.Manifest().Digest() != man.Digest() {
		t.Error("it has another digest")
	}
}

// rewritten encodes what was decoded, from nothing but its values.
func (b *Base) rewritten(t testing.TB) []byte {
	t.Helper()
	buckets := make([]bucket, b.settings.Buckets)
	m := assemble(b, noChanges())
	for i := range buckets {
		buckets[i] = m.bucket(uint32(i))
	}
	again, err := encodeBase(b.settings, b.cells, buckets, func(w *tableWriter) {
		for key, rec := range b.tab.all {
			w.add(key, rec)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return again.raw
}

func (m *Manifest) rewritten() []byte {
	again := *m
	again.seal()
	return again.Encode()
}

// A map of a Map's parts put together anew must be the Map that Apply made,
// field by field.
func TestAppliedMapIsTheAssembledOne(t *testing.T) {
	m := sample(t)
	again := assemble(m.base, m.over)
	if m.keys != again.keys || m.catchAll != again.catchAll || !bytes.Equal(m.owners, again.owners) || !bytes.Equal(m.epochs, again.epochs) || len(m.byID) != len(again.byID) {
		t.Errorf("got %d keys and %d cells, want %d and %d", m.keys, len(m.byID), again.keys, len(again.byID))
	}
	for id, i := range again.byID {
		if m.byID[id] != i || !sameCell(m.cells[i], again.cells[i]) {
			t.Errorf("cell %s is %d, want %d", id, m.byID[id], i)
		}
	}
}
