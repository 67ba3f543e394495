package routemap

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// The sections of a manifest. The signatures are over all that stands before
// their section, so they can be added and dropped; it is the last, whatever a
// later format adds.
const (
	secManifest   = 1
	secVerdict    = 2
	secSignatures = 0xffff
)

func manifestLayout() layout {
	return layout{"manifest", "CWYM", []uint16{secManifest, secVerdict, secSignatures}}
}

// MaxManifest is the size in bytes that an encoded manifest may not exceed.
const MaxManifest = 64 << 10

// maxSignatures is how many keys may sign one manifest.
const maxSignatures = 16

// ScopeAll is the scope of a version that all routers serve.
const ScopeAll = "all"

var scopeName = regexp.MustCompile(`^(all|ring-[0-9]{1,3})$`)

// A Part names one of the two parts of a version.
type Part struct {
	Digest Digest `json:"digest"`
	Size   uint64 `json:"size"` // in bytes
}

// A Manifest is what is signed of a version: what it is, what it follows, what
// it changes and which parts it is made of.
type Manifest struct {
	Format       uint16          `json:"format"`
	MinReader    uint16          `json:"min_reader"`
	Fleet        string          `json:"fleet"`
	Version      cellway.Version `json:"version"`
	Parent       cellway.Version `json:"parent"`        // 0 for the first
	ParentDigest Digest          `json:"parent_digest"` // of the parent's manifest
	Scope        string          `json:"scope"`         // "all", or the ring that serves it
	CreatedAt    time.Time       `json:"created_at"`    // in UTC, to the second; decides nothing
	Verdict      Verdict         `json:"verdict"`
	Base         Part            `json:"base"`
	Overlay      Part            `json:"overlay"`
	Signatures   []Signature     `json:"signatures"`

	body   []byte // what the signatures are over
	digest Digest
}

// A Signature is one key's signature of a manifest. A manifest has them in the
// order of the keys' names.
type Signature struct {
	Key KeyID  `json:"key"`
	Sig []byte `json:"sig"` // Ed25519, 64 bytes
}

// Digest names the version: the SHA-256 of what was signed. Equal versions
// with other digests are a fork.
func (m *Manifest) Digest() Digest { return m.digest }

// seal writes the part that is signed.
func (m *Manifest) seal() {
	m.Format, m.MinReader = FormatVersion, minReader
	w := newFrame(manifestLayout().magic)
	w.section(secManifest, func() {
		w.text(m.Fleet)
		w.u64(uint64(m.Version))
		w.u64(uint64(m.Parent))
		w.b = append(w.b, m.ParentDigest[:]...)
		w.text(m.Scope)
		w.time(m.CreatedAt)
		for _, p := range []Part{m.Base, m.Overlay} {
			w.b = append(w.b, p.Digest[:]...)
			w.u64(p.Size)
		}
	})
	w.section(secVerdict, func() { w.verdict(m.Verdict) })
	m.body, m.digest = w.b, sha256.Sum256(w.b)
}

// Encode returns the manifest's bytes with its signatures.
func (m *Manifest) Encode() []byte {
	w := &writer{b: m.body[:len(m.body):len(m.body)]}
	w.section(secSignatures, func() {
		w.uvarint(len(m.Signatures))
		for _, s := range m.Signatures {
			w.b = append(w.b, s.Key...)
			w.b = append(w.b, s.Sig...)
		}
	})
	return w.b
}

// DecodeManifest reads an encoded manifest. It checks structure, not
// signatures: see [Keyring.Verify].
func DecodeManifest(raw []byte) (*Manifest, error) {
	if len(raw) > MaxManifest {
		return nil, fmt.Errorf("manifest has %d bytes, the most is %d: %w", len(raw), MaxManifest, ErrFormat)
	}
	f, err := manifestLayout().read(raw)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: f.version, MinReader: f.least}
	r := &reader{b: f.body[secManifest]}
	m.Fleet = r.text()
	m.Version, m.Parent = cellway.Version(r.u64()), cellway.Version(r.u64())
	copy(m.ParentDigest[:], r.take(len(m.ParentDigest)))
	m.Scope = r.text()
	m.CreatedAt = r.time()
	for _, p := range []*Part{&m.Base, &m.Overlay} {
		copy(p.Digest[:], r.take(len(p.Digest)))
		p.Size = r.u64()
	}
	switch {
	case r.err != nil:
	case !fleetName.MatchString(m.Fleet):
		r.fail("fleet name %.80q is malformed", m.Fleet)
	case m.Version == 0 || m.Parent >= m.Version:
		r.fail("version %v follows %v", m.Version, m.Parent)
	case m.Parent == 0 && m.ParentDigest != (Digest{}):
		r.fail("the first version has a parent's digest")
	case !scopeName.MatchString(m.Scope):
		r.fail("scope %.80q is neither all nor a ring", m.Scope)
	case m.Base.Size > MaxBase || m.Overlay.Size > MaxOverlay:
		r.fail("base of %d and overlay of %d bytes are too large", m.Base.Size, m.Overlay.Size)
	}
	if err := r.end("manifest"); err != nil {
		return nil, err
	}
	r = &reader{b: f.body[secVerdict]}
	m.Verdict = r.verdict()
	if err := r.end("manifest verdict"); err != nil {
		return nil, err
	}
	if err := m.decodeSignatures(f.body[secSignatures]); err != nil {
		return nil, err
	}
	m.body, m.digest = bytes.Clone(raw[:f.last]), sha256.Sum256(raw[:f.last])
	return m, nil
}

func (m *Manifest) decodeSignatures(sec []byte) error {
	r := &reader{b: sec}
	for i := range r.count(keyIDSize+ed25519.SignatureSize, maxSignatures) {
		s := Signature{Key: KeyID(r.take(keyIDSize)), Sig: bytes.Clone(r.take(ed25519.SignatureSize))}
		switch {
		case r.err != nil:
		case strings.Trim(string(s.Key), "0123456789abcdef") != "":
			r.fail("signature by %q: that is not the name of a key", s.Key)
		case i > 0 && m.Signatures[i-1].Key >= s.Key:
			r.fail("signatures are out of order")
		}
		m.Signatures = append(m.Signatures, s)
	}
	return r.end("manifest signatures")
}
