package routemap

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/cellway/cellway"
)

// A Version is one published map: a signed manifest and the two parts that it
// names.
type Version struct {
	Manifest *Manifest
	Base     []byte
	Overlay  []byte
}

// A Publication says under which version a map is published.
type Publication struct {
	Version   cellway.Version
	Parent    *Map      // what it follows: a published map, or nil for the first
	Scope     string    // if empty, ScopeAll
	CreatedAt time.Time // from the publisher's clock
	Verdict   Verdict   // of the gate over the changes since Parent
	Signers   []Signer
}

// Publish encodes and signs m, and returns it with its manifest. The counts of
// the verdict are taken from the maps themselves; whether they may pass is for
// the caller to judge, with [Counts.Exceeded], before.
func Publish(m *Map, p Publication) (*Map, Version, error) {
	man := &Manifest{Fleet: m.base.settings.Fleet, Version: p.Version, Scope: p.Scope, CreatedAt: p.CreatedAt.UTC().Truncate(time.Second), Verdict: p.Verdict}
	if man.Scope == "" {
		man.Scope = ScopeAll
	}
	if p.Parent != nil {
		if p.Parent.manifest == nil {
			return nil, Version{}, fmt.Errorf("publish map %v: its parent was never published: %w", p.Version, cellway.ErrInvalid)
		}
		if f := p.Parent.manifest.Fleet; f != man.Fleet {
			return nil, Version{}, fmt.Errorf("publish map %v of fleet %s: its parent is of fleet %s: %w", p.Version, man.Fleet, f, ErrFleet)
		}
		man.Parent, man.ParentDigest = p.Parent.manifest.Version, p.Parent.manifest.digest
	}
	if man.Version <= man.Parent {
		return nil, Version{}, fmt.Errorf("publish map %v after %v: a version must rise: %w", man.Version, man.Parent, cellway.ErrInvalid)
	}
	man.Verdict.Counts = Compare(p.Parent, m)
	over := m.over.encode()
	if len(over) > MaxOverlay {
		return nil, Version{}, fmt.Errorf("publish map %v: overlay of %d bytes: %w", p.Version, len(over), ErrOverlayFull)
	}
	man.Base = Part{m.base.digest, uint64(len(m.base.raw))}
	man.Overlay = Part{sha256.Sum256(over), uint64(len(over))}
	man.seal()
	if err := man.sign(p.Signers); err != nil {
		return nil, Version{}, err
	}
	// Reading it back is the last check that no router will refuse it for its
	// form.
	again, err := DecodeManifest(man.Encode())
	if err != nil {
		return nil, Version{}, fmt.Errorf("publish map %v: %w", p.Version, err)
	}
	if _, err := decodeOverlay(over, m.base); err != nil {
		return nil, Version{}, fmt.Errorf("publish map %v: encoded overlay does not decode: %w", p.Version, err)
	}
	out := *m
	out.manifest = again
	return &out, Version{again, m.base.raw, over}, nil
}

// Open joins the parts of a version whose manifest was verified. If base was
// decoded before, and it is the one that the manifest names, only the overlay
// is read. Open checks digests, not signatures, and not what the version
// follows: see [Keyring.Verify] and [Accept].
func Open(man *Manifest, base *Base, overlay []byte) (*Map, error) {
	if err := man.Base.check("base", base.digest, len(base.raw)); err != nil {
		return nil, fmt.Errorf("map %v: %w", man.Version, err)
	}
	if err := man.Overlay.check("overlay", sha256.Sum256(overlay), len(overlay)); err != nil {
		return nil, fmt.Errorf("map %v: %w", man.Version, err)
	}
	if base.settings.Fleet != man.Fleet {
		return nil, fmt.Errorf("map %v: base of fleet %s, manifest of fleet %s: %w", man.Version, base.settings.Fleet, man.Fleet, ErrFleet)
	}
	over, err := decodeOverlay(overlay, base)
	if err != nil {
		return nil, fmt.Errorf("map %v: %w", man.Version, err)
	}
	m := assemble(base, over)
	m.manifest = man
	return m, nil
}

// check says whether these are the bytes that p names.
func (p Part) check(what string, sum Digest, size int) error {
	if sum != p.Digest || uint64(size) != p.Size {
		return fmt.Errorf("%s is %v of %d bytes, the manifest names %v of %d: %w", what, sum, size, p.Digest, p.Size, ErrDigest)
	}
	return nil
}

// Accept says whether a router that serves current (nil: none yet) may swap to
// next: for all routers, same fleet, a version that rises, and, if next follows
// current directly, changes that are what the manifest counts and that its
// verdict lets pass. Both must have been opened or published. The error wraps
// [ErrScope], [ErrFleet], [ErrOld], [ErrMapFork] or [ErrGateCounts].
func Accept(current, next *Map) error {
	if next.manifest == nil || current != nil && current.manifest == nil {
		return fmt.Errorf("a map that was never published can't be judged: %w", cellway.ErrInvalid)
	}
	if s := next.manifest.Scope; s != ScopeAll {
		return fmt.Errorf("map %v is for %s alone: %w", next.manifest.Version, s, ErrScope)
	}
	if current == nil {
		return nil
	}
	have, man := current.manifest, next.manifest
	switch {
	case have.Fleet != man.Fleet:
		return fmt.Errorf("map %v is of fleet %s, not of %s: %w", man.Version, man.Fleet, have.Fleet, ErrFleet)
	case man.Version < have.Version:
		return fmt.Errorf("map %v is older than %v in use: %w", man.Version, have.Version, ErrOld)
	case man.Version == have.Version && man.digest != have.digest:
		return fmt.Errorf("map %v: manifest %v is not %v in use: %w", man.Version, man.digest, have.digest, ErrMapFork)
	case man.Version == have.Version:
		return nil
	}
	if man.Parent == have.Version && man.ParentDigest != have.digest {
		return fmt.Errorf("map %v follows %v as %v, in use is %v: %w", man.Version, man.Parent, man.ParentDigest, have.digest, ErrMapFork)
	}
	if man.Parent != have.Version {
		return nil
	}
	counts := Compare(current, next)
	if counts != man.Verdict.Counts {
		return fmt.Errorf("map %v counts %v since %v, it has %v: %w", man.Version, man.Verdict.Counts, man.Parent, counts, ErrGateCounts)
	}
	if causes := counts.Exceeded(); len(causes) > 0 && !man.Verdict.Confirmed {
		return fmt.Errorf("map %v: %v and nobody confirmed it: %w", man.Version, causes[0], ErrGateCounts)
	}
	return nil
}
