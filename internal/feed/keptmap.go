package feed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A keptMap is one accepted version as it stands on the disk: manifest and
// overlay in a file of their own, and the base, which kept maps share, in
// another that is named by its digest.
type keptMap struct {
	acceptedAt time.Time // by this machine's clock; decides only what is kept
	manifest   *routemap.Manifest
	overlay    []byte
}

const (
	keptMagic  = "CWYG"
	keptFormat = 1
	keptHead   = 4 + 2 + 8 + 4 + 4 // magic, format, time, two lengths
	maxKept    = keptHead + routemap.MaxManifest + routemap.MaxOverlay + sha256.Size
)

// encode writes g with a SHA-256 over all that stands before it, so that half a
// file is known for what it is.
func (g keptMap) encode() []byte {
	man := g.manifest.Encode()
	b := make([]byte, 0, keptHead+len(man)+len(g.overlay)+sha256.Size)
	b = append(b, keptMagic...)
	b = binary.LittleEndian.AppendUint16(b, keptFormat)
	b = binary.LittleEndian.AppendUint64(b, uint64(g.acceptedAt.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(man)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.overlay)))
	b = append(b, man...)
	b = append(b, g.overlay...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// size is that of what encode writes.
func (g keptMap) size() int64 {
	return int64(keptHead + len(g.manifest.Encode()) + len(g.overlay) + sha256.Size)
}

// decodeKept reads what encode wrote. The error wraps
// routemap.ErrFormat, ErrTooNew or ErrDigest.
func decodeKept(b []byte) (keptMap, error) {
	if len(b) < keptHead+sha256.Size || string(b[:4]) != keptMagic {
		return keptMap{}, fmt.Errorf("%d bytes are no kept map: %w", len(b), routemap.ErrFormat)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != keptFormat {
		return keptMap{}, fmt.Errorf("kept map of format %d, this build reads %d: %w", v, keptFormat, routemap.ErrTooNew)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(body); string(want[:]) != string(sum) {
		return keptMap{}, fmt.Errorf("kept map is damaged: %w", routemap.ErrDigest)
	}
	manLen, overLen := uint64(binary.LittleEndian.Uint32(b[14:])), uint64(binary.LittleEndian.Uint32(b[18:]))
	if uint64(len(body)) != keptHead+manLen+overLen {
		return keptMap{}, fmt.Errorf("kept map of %d bytes has parts of %d and %d: %w", len(body), manLen, overLen, routemap.ErrFormat)
	}
	man, err := routemap.DecodeManifest(body[keptHead : keptHead+manLen])
	if err != nil {
		return keptMap{}, err
	}
	return keptMap{
		acceptedAt: time.Unix(int64(binary.LittleEndian.Uint64(b[6:])), 0).UTC(),
		manifest:   man,
		overlay:    body[keptHead+manLen:],
	}, nil
}

// A keptName is what the name of a kept map's file tells without
// opening it. Versions are written so that names sort as they do; the digest
// tells apart what should never be two.
type keptName struct {
	version cellway.Version
	digest  string // the first 16 digits of the manifest's
}

const (
	keptPrefix = "map-"
	basePrefix = "base-"
)

func nameOf(man *routemap.Manifest) keptName {
	return keptName{man.Version, man.Digest().String()[:16]}
}

func (n keptName) file() string {
	return fmt.Sprintf("%s%016x-%s", keptPrefix, uint64(n.version), n.digest)
}

func parseKeptName(file string) (keptName, bool) {
	rest, ok := strings.CutPrefix(file, keptPrefix)
	version, digest, dash := strings.Cut(rest, "-")
	if !ok || !dash || len(version) != 16 || len(digest) != 16 {
		return keptName{}, false
	}
	v, err := strconv.ParseUint(version, 16, 64)
	n := keptName{cellway.Version(v), digest}
	return n, err == nil && n.file() == file
}

func baseFile(d routemap.Digest) string { return basePrefix + d.String() }
