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

// What a map holds beyond the bytes of its keys, at every filling of the index.
func TestMapTakesAtMost64BytesAKeyBeyondTheKey(t *testing.T) {
	c := sample(t).Content()
	c.Entries, c.Aliases, c.Tombstones, c.Holds = nil, nil, nil, nil
	keys := 0
	for i := range 30_000 {
		key := cellway.Key(fmt.Sprintf("t%d", i))
		keys += len(key)
		c.Entries = append(c.Entries, cellway.Entry{Key: key, Cell: "a", Epoch: 1 << 40})
		if i < 10_000 || i%2500 != 0 {
			continue
		}
		m, err := Build(c, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := &m.base.tab
		if n := (len(m.base.raw) + 4*len(x.index.places) + 4*cap(x.marks) - keys) / len(c.Entries); n > 64 {
			t.Errorf("%d bytes a key with %d keys", n, len(c.Entries))
		}
	}
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
