package routemap

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
)

// The sections of an archive.
const (
	secArchiveManifest = 1 + iota
	secArchiveOverlay
	secArchiveBase
)

func archiveLayout() layout {
	return layout{"map archive", "CWYA", []uint16{secArchiveManifest, secArchiveOverlay, secArchiveBase}}
}

// Archive returns a version as the bytes of one file: what people keep, send
// and look into.
func (v Version) Archive() []byte {
	w := newFrame(archiveLayout().magic)
	w.section(secArchiveManifest, func() { w.b = append(w.b, v.Manifest.Encode()...) })
	w.section(secArchiveOverlay, func() { w.b = append(w.b, v.Overlay...) })
	w.section(secArchiveBase, func() { w.b = append(w.b, v.Base...) })
	return w.b
}

// ReadArchive reads what [Version.Archive] wrote. Nothing in it is verified
// yet.
func ReadArchive(r io.Reader) (Version, error) {
	var b bytes.Buffer
	const most = MaxBase + MaxOverlay + MaxManifest + 1024
	if n, err := b.ReadFrom(io.LimitReader(r, most+1)); err != nil {
		return Version{}, fmt.Errorf("read map archive: %w", err)
	} else if n > most {
		return Version{}, fmt.Errorf("map archive has more than %d bytes: %w", int64(most), ErrFormat)
	}
	f, err := archiveLayout().read(b.Bytes())
	if err != nil {
		return Version{}, err
	}
	man, err := DecodeManifest(f.body[secArchiveManifest])
	if err != nil {
		return Version{}, err
	}
	return Version{man, f.body[secArchiveBase], f.body[secArchiveOverlay]}, nil
}

// Open verifies the version with ring and returns its map. Accepted is true
// for a version that was verified before, as when a router reads back what it
// kept.
func (v Version) Open(ring Keyring, accepted bool) (*Map, error) {
	if err := ring.Verify(v.Manifest, accepted); err != nil {
		return nil, err
	}
	sum := Digest(sha256.Sum256(v.Base))
	if err := v.Manifest.Base.check("base", sum, len(v.Base)); err != nil {
		return nil, fmt.Errorf("map %v: %w", v.Manifest.Version, err)
	}
	base, err := decodeBase(v.Base, sum)
	if err != nil {
		return nil, fmt.Errorf("map %v: %w", v.Manifest.Version, err)
	}
	return Open(v.Manifest, base, v.Overlay)
}
