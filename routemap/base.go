package routemap

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/cellway/cellway"
)

// A Digest is a SHA-256 sum. It names a part of a map by its content.
type Digest [sha256.Size]byte

// String returns d in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes d as [Digest.String] does.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *Digest) UnmarshalText(b []byte) error {
	got, err := ParseDigest(string(b))
	if err == nil {
		*d = got
	}
	return err
}

// ParseDigest reads 64 hexadecimal digits.
func ParseDigest(s string) (d Digest, err error) {
	// hex.Decode panics on more digits than there is room for.
	ok := len(s) == 2*len(d)
	if ok {
		_, err := hex.Decode(d[:], []byte(s))
		ok = err == nil
	}
	if !ok {
		return Digest{}, fmt.Errorf("digest %.80q is not 64 hexadecimal digits: %w", s, cellway.ErrInvalid)
	}
	return d, nil
}

// The sections of a base.
const (
	secSettings = 1 + iota
	secCells
	_ // geodes, from a later format on
	secBuckets
	secRecords
	_ // ranges, from a later format on
	secCounts
)

func baseLayout() layout {
	return layout{"base", "CWYB", []uint16{secSettings, secCells, secBuckets, secRecords, secCounts}}
}

// MaxBase is the size in bytes that an encoded base may not exceed.
const MaxBase = 2 << 30

// A Base is the bulk of a map: all records as of some version, immutable and
// named by its digest. It keeps the bytes it was read from.
type Base struct {
	raw      []byte
	digest   Digest
	settings Settings
	cells    []*cellway.Cell // by id
	owners   []byte          // of the buckets: two bytes each
	epochs   []byte          // of the buckets: eight bytes each
	tab      table
	seed     maphash.Seed // of the hash indexes of the base and of its overlays
}

// Digest returns the name of b: the SHA-256 of its bytes.
func (b *Base) Digest() Digest { return b.digest }

// Bytes returns the encoded base. The caller must not change it.
func (b *Base) Bytes() []byte { return b.raw }

// Keys returns how many entries b has.
func (b *Base) Keys() int { return b.tab.n - b.tab.aliases - b.tab.tombstones }

// DecodeBase reads an encoded base and keeps raw, which must not change
// afterwards. It checks structure, not signatures: a digest that a verified
// manifest names says whether these are the right bytes. The error wraps
// [ErrFormat] or [ErrTooNew].
func DecodeBase(raw []byte) (*Base, error) { return decodeBase(raw, sha256.Sum256(raw)) }

// decodeBase is DecodeBase for bytes whose digest is known.
func decodeBase(raw []byte, digest Digest) (*Base, error) {
	if len(raw) > MaxBase {
		return nil, fmt.Errorf("base has %d bytes, the most is %d: %w", len(raw), MaxBase, ErrFormat)
	}
	f, err := baseLayout().read(raw)
	if err != nil {
		return nil, err
	}
	b := &Base{raw: raw, digest: digest, seed: maphash.MakeSeed()}
	r := &reader{b: f.body[secSettings]}
	b.settings = r.settings()
	if err := r.end("settings"); err != nil {
		return nil, err
	}
	if b.cells, err = decodeCells(f.body[secCells]); err != nil {
		return nil, err
	}
	if err := b.decodeBuckets(f.body[secBuckets]); err != nil {
		return nil, err
	}
	if c := b.settings.CatchAll; c != "" {
		if _, ok := b.cell(c); !ok {
			return nil, fmt.Errorf("settings: catch-all cell %s is not in the map: %w", c, ErrFormat)
		}
	}
	if err := b.tab.read(f.body[secRecords], len(b.cells), b.seed); err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if err := b.decodeCounts(f.body[secCounts]); err != nil {
		return nil, err
	}
	return b, nil
}

// decodeCounts compares what the base says of its size with what it has, as a
// last check that encoder and decoder mean the same.
func (b *Base) decodeCounts(sec []byte) error {
	r := &reader{b: sec}
	t := &b.tab
	for _, c := range []struct {
		what string
		n    int
	}{{"cells", len(b.cells)}, {"records", t.n}, {"composites", t.composites}, {"overrides", t.overrides}, {"aliases", t.aliases}, {"tombstones", t.tombstones}} {
		if n := r.u32(); r.err == nil && int64(n) != int64(c.n) {
			r.fail("%d %s counted, %d found", n, c.what, c.n)
		}
	}
	return r.end("counts")
}

func (b *Base) decodeBuckets(sec []byte) error {
	n := int(b.settings.Buckets)
	if len(sec) != n*10 {
		return fmt.Errorf("buckets: %d bytes for %d buckets: %w", len(sec), n, ErrFormat)
	}
	b.epochs, b.owners = sec[:8*n], sec[8*n:]
	for i := range n {
		if c := binary.LittleEndian.Uint16(b.owners[2*i:]); int(c) >= len(b.cells) {
			return fmt.Errorf("bucket %d: owner %d of %d cells: %w", i, c, len(b.cells), ErrFormat)
		}
	}
	return nil
}

func decodeCells(sec []byte) ([]*cellway.Cell, error) {
	r := &reader{b: sec}
	n := r.count(cellLeast, cellway.MaxCells)
	cells := make([]*cellway.Cell, 0, n)
	for i := range n {
		c := r.cell()
		if r.err != nil {
			break
		}
		if i > 0 && cells[i-1].ID >= c.ID {
			r.fail("cell %s is out of order", c.ID)
		}
		cells = append(cells, c)
	}
	return cells, r.end("cells")
}

// cell returns the index of the cell with that id.
func (b *Base) cell(id cellway.CellID) (int, bool) {
	return slices.BinarySearchFunc(b.cells, id, func(c *cellway.Cell, id cellway.CellID) int { return cmp.Compare(c.ID, id) })
}

func (w *writer) settings(s Settings) {
	w.text(s.Fleet)
	w.u8(uint8(s.Mapping))
	w.u32(s.Buckets)
	w.bool(s.Strict)
	w.bool(s.Stateless)
	w.bool(s.PassThrough)
	w.text(string(s.CatchAll))
	w.u64(uint64(s.CatchAllEpoch))
	w.uvarint(len(s.Extractors))
	for _, x := range s.Extractors {
		w.u8(uint8(x.Kind))
		w.text(x.Name)
		w.text(x.Pattern)
		w.text(string(x.Key))
		w.text(x.Source)
		w.bool(x.MustAgree)
	}
}

func (r *reader) settings() Settings {
	s := Settings{
		Fleet:         r.text(),
		Mapping:       Mapping(r.u8()),
		Buckets:       r.u32(),
		Strict:        r.bool(),
		Stateless:     r.bool(),
		PassThrough:   r.bool(),
		CatchAll:      cellway.CellID(r.text()),
		CatchAllEpoch: cellway.Epoch(r.u64()),
	}
	for range r.count(6, maxExtractors) {
		s.Extractors = append(s.Extractors, cellway.Extractor{
			Kind:      cellway.ExtractorKind(r.u8()),
			Name:      r.text(),
			Pattern:   r.text(),
			Key:       cellway.Key(r.text()),
			Source:    r.text(),
			MustAgree: r.bool(),
		})
	}
	if r.err == nil {
		if err := s.Validate(); err != nil {
			r.fail("%v", err)
		}
	}
	return s
}

// A bucket is an owner and since when.
type bucket struct {
	cell  uint16
	epoch cellway.Epoch
}

// encodeBase writes a base. The cells are sorted by id, the records are those
// that add puts in, in the order of their keys.
func encodeBase(s Settings, cells []*cellway.Cell, buckets []bucket, add func(*tableWriter)) (*Base, error) {
	var t tableWriter
	add(&t)
	w := newFrame(baseLayout().magic)
	w.section(secSettings, func() { w.settings(s) })
	w.section(secCells, func() {
		w.uvarint(len(cells))
		for _, c := range cells {
			w.cell(c)
		}
	})
	w.section(secBuckets, func() {
		for _, b := range buckets {
			w.u64(uint64(b.epoch))
		}
		for _, b := range buckets {
			w.u16(b.cell)
		}
	})
	w.b = slices.Grow(w.b, len(t.w.b)+256)
	w.section(secRecords, func() {
		w.uvarint(t.n)
		w.b = append(w.b, t.w.b...)
	})
	w.section(secCounts, func() {
		for _, n := range []int{len(cells), t.n, t.composites, t.overrides, t.aliases, t.tombstones} {
			w.u32(uint32(n))
		}
	})
	// Reading it back is the last check that the writer and the reader mean the
	// same, and it builds the index.
	b, err := DecodeBase(w.b)
	if err != nil {
		return nil, fmt.Errorf("encoded base does not decode: %w", err)
	}
	return b, nil
}
