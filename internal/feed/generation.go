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

// A generation is one accepted version as it stands on the disk: manifest and
// overlay in a file of their own, and the base, which generations share, in
// another that is named by its digest.
type generation struct {
	acceptedAt time.Time // by this machine's clock; decides only what is kept
	manifest   *routemap.Manifest
	overlay    []byte
}

const (
	generationMagic  = "CWYG"
	generationFormat = 1
	generationHead   = 4 + 2 + 8 + 4 + 4 // magic, format, time, two lengths
)

// encode writes g with a SHA-256 over all that stands before it, so that half a
// file is known for what it is.
func (g generation) encode() []byte {
	man := g.manifest.Encode()
	b := make([]byte, 0, generationHead+len(man)+len(g.overlay)+sha256.Size)
	b = append(b, generationMagic...)
	b = binary.LittleEndian.AppendUint16(b, generationFormat)
	b = binary.LittleEndian.AppendUint64(b, uint64(g.acceptedAt.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(man)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(g.overlay)))
	b = append(b, man...)
	b = append(b, g.overlay...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeGeneration reads what encode wrote. The error wraps
// routemap.ErrFormat, ErrTooNew or ErrDigest.
func decodeGeneration(b []byte) (generation, error) {
	if len(b) < generationHead+sha256.Size || string(b[:4]) != generationMagic {
		return generation{}, fmt.Errorf("%d bytes are no kept map: %w", len(b), routemap.ErrFormat)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != generationFormat {
		return generation{}, fmt.Errorf("kept map of format %d, this build reads %d: %w", v, generationFormat, routemap.ErrTooNew)
	}
	body, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(body); string(want[:]) != string(sum) {
		return generation{}, fmt.Errorf("kept map is damaged: %w", routemap.ErrDigest)
	}
	manLen, overLen := uint64(binary.LittleEndian.Uint32(b[14:])), uint64(binary.LittleEndian.Uint32(b[18:]))
	if uint64(len(body)) != generationHead+manLen+overLen {
		return generation{}, fmt.Errorf("kept map of %d bytes has parts of %d and %d: %w", len(body), manLen, overLen, routemap.ErrFormat)
	}
	man, err := routemap.DecodeManifest(body[generationHead : generationHead+manLen])
	if err != nil {
		return generation{}, err
	}
	return generation{
		acceptedAt: time.Unix(int64(binary.LittleEndian.Uint64(b[6:])), 0).UTC(),
		manifest:   man,
		overlay:    body[generationHead+manLen:],
	}, nil
}

// A generationName is what the name of a generation's file tells without
// opening it. Versions are written so that names sort as they do; the digest
// tells apart what should never be two.
type generationName struct {
	version cellway.Version
	digest  string // the first 16 digits of the manifest's
}

const (
	generationPrefix = "map-"
	basePrefix       = "base-"
)

func nameOf(man *routemap.Manifest) generationName {
	return generationName{man.Version, man.Digest().String()[:16]}
}

func (n generationName) file() string {
	return fmt.Sprintf("%s%016x-%s", generationPrefix, uint64(n.version), n.digest)
}

func parseGenerationName(file string) (generationName, bool) {
	rest, ok := strings.CutPrefix(file, generationPrefix)
	version, digest, dash := strings.Cut(rest, "-")
	if !ok || !dash || len(version) != 16 || len(digest) != 16 {
		return generationName{}, false
	}
	v, err := strconv.ParseUint(version, 16, 64)
	n := generationName{cellway.Version(v), digest}
	return n, err == nil && n.file() == file
}

func baseFile(d routemap.Digest) string { return basePrefix + d.String() }
