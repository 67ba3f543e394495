package routemap

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/cellway/cellway"
)

// ours reports whether a part is of the format that this package writes, so
// that writing it again must give the same bytes.
func ours(part []byte) bool { return binary.LittleEndian.Uint16(part[4:]) == FormatVersion }

// exercise asks m everything that a router may ask.
func exercise(t *testing.T, m *Map, keys ...string) {
	for key := range m.all {
		keys = append(keys, key, key+"/part")
	}
	for _, h := range m.over.holds {
		keys = append(keys, string(h.Key))
	}
	for _, key := range keys {
		if !cellway.Key(key).Valid() {
			continue
		}
		if e := m.Explain(cellway.Key(key)); e.Admission.Code == "" && e.Cell == "" {
			t.Fatalf("%s goes nowhere and is admitted: %+v", key, e)
		}
	}
	if m.Check() != nil {
		return // it decodes, but no control plane would make it
	}
	folded, err := m.Fold()
	if err != nil {
		t.Fatalf("a map that passes its checks does not fold: %v", err)
	}
	for _, key := range keys {
		if !cellway.Key(key).Valid() {
			continue
		}
		a, b := m.Explain(cellway.Key(key)), folded.Explain(cellway.Key(key))
		a.Version = 0 // the folded map has none yet
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s folded is\n%+v, was\n%+v", key, b, a)
		}
	}
}

func FuzzDecodeBase(f *testing.F) {
	_, v := signedSample(f)
	f.Add(v.Base)
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := DecodeBase(raw)
		if err != nil {
			return
		}
		if ours(raw) && !bytes.Equal(b.rewritten(t), raw) {
			t.Fatal("written again it has other bytes")
		}
		n := 0
		for key, rec := range b.tab.all {
			if got := b.find(b.hash(key), key); got.kind != rec.kind || got.cell != rec.cell || got.epoch != rec.epoch || got.target != rec.target {
				t.Fatalf("%s is found as %+v, stands there as %+v", key, got, rec)
			}
			if w := b.tab.from(key); !w.step() || w.key != key {
				t.Fatalf("a walk from %s begins elsewhere", key)
			}
			n++
		}
		if n != b.tab.n {
			t.Fatalf("%d records, %d counted", n, b.tab.n)
		}
		exercise(t, assemble(b, noChanges()), "nobody", "nobody/x")
	})
}

func FuzzDecodeOverlay(f *testing.F) {
	m, v := signedSample(f)
	f.Add(v.Overlay)
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := decodeOverlay(raw, m.base)
		if err != nil {
			return
		}
		if ours(raw) && !bytes.Equal(o.encode(), raw) {
			t.Fatal("written again it has other bytes")
		}
		if ours(raw) && o.size() != len(raw) {
			t.Fatalf("its size counts as %d, it is %d", o.size(), len(raw))
		}
		out := assemble(m.base, o)
		exercise(t, out, "nobody", "acme", "acme/eu", "gone-soon")
		if counts := Compare(m, out); counts != Compare(assemble(m.base, m.over), out) {
			t.Fatal("two comparisons differ")
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	_, v := signedSample(f)
	f.Add(v.Manifest.Encode())
	ring := Keyring{{Key: testSigner(1).Public()}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeManifest(raw)
		if err != nil {
			return
		}
		if ours(raw) && !bytes.Equal(m.rewritten(), raw) {
			t.Fatal("written again it has other bytes")
		}
		if ours(raw) && !bytes.Equal(m.Encode(), raw) {
			t.Fatal("encoded again it has other bytes")
		}
		if ring.Verify(m, false) == nil && m.digest != v.Manifest.digest {
			t.Fatal("it verifies and is not what was signed")
		}
		if _, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzReadArchive(f *testing.F) {
	_, v := signedSample(f)
	f.Add(v.Archive())
	ring := Keyring{{Key: testSigner(1).Public()}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ReadArchive(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if ours(raw) && !bytes.Equal(got.Archive(), raw) {
			t.Fatal("written again it has other bytes")
		}
		if m, err := got.Open(ring, false); err == nil && m.manifest.digest != v.Manifest.digest {
			t.Fatal("it opens and is not what was signed")
		}
		// As if somebody had signed it.
		base, err := DecodeBase(got.Base)
		if err != nil {
			return
		}
		if m, err := Open(got.Manifest, base, got.Overlay); err == nil {
			exercise(t, m, "nobody")
		}
	})
}

func FuzzParseKeyring(f *testing.F) {
	f.Add([]byte("# fleet\n" + string(Keyring{{Key: testSigner(1).Public()}, {testSigner(2).Public(), Retired}}.Format())))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := ParseKeyring(text)
		if err != nil {
			return
		}
		again, err := ParseKeyring(ring.Format())
		if err != nil || !reflect.DeepEqual(again, ring) {
			t.Fatalf("%v is written as %s and read as %v, %v", ring, ring.Format(), again, err)
		}
	})
}

func FuzzParseContent(f *testing.F) {
	text, err := sample(f).Content().Format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseContent(text)
		if err != nil {
			return
		}
		m, err := Build(c, 1)
		if err != nil {
			return
		}
		out, err := m.Content().Format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseContent(out)
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if m2, err := Build(again, 1); err != nil || !m2.Equal(m) {
			t.Fatalf("built again it is another map: %v\n%s", err, out)
		}
		exercise(t, m, "nobody")
	})
}

func FuzzApply(f *testing.F) {
	m := sample(f)
	for _, cs := range []ChangeSet{
		{Entries: []cellway.Entry{{Key: "x", Cell: "z"}}, RemoveEntries: []cellway.Key{"new"}},
		{Aliases: []cellway.Alias{{Name: "x", Target: "acme"}}, RemoveAliases: []cellway.TenantID{"old"}, Tombstones: []cellway.Tombstone{{Key: "old"}}},
		{Cells: m.Content().Cells, RemoveHolds: []cellway.Key{"acme"}, Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "a"}}},
		{Settings: new(m.Settings()), RemoveTombstones: []cellway.Key{"left"}},
	} {
		text, err := json.Marshal(cs)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, number bool) {
		var cs ChangeSet
		if json.Unmarshal(text, &cs) != nil {
			return
		}
		cs.Digest()
		if number {
			cs, _ = m.Number(cs, 1000)
		}
		out, err := m.Apply(cs)
		if err != nil {
			return
		}
		if err := out.Check(); err != nil {
			t.Fatalf("it was applied, and the map fails its checks: %v", err)
		}
		exercise(t, out, "nobody")
		over, err := decodeOverlay(out.over.encode(), out.base)
		if err != nil || !bytes.Equal(over.encode(), out.over.encode()) {
			t.Fatalf("its overlay does not decode: %v", err)
		}
		for key := range m.all {
			was, had := m.standing(key)
			if is, has := out.standing(key); had && has && !was.mayBecome(is.cell, is.epoch) {
				t.Fatalf("%s went from %v to %v", key, was, is)
			}
		}
	})
}
