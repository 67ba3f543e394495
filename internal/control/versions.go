package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// A versionRecord is the record of a published version. Its parts are blobs,
// which are there before the record is.
type versionRecord struct {
	Version  cellway.Version `json:"version"`
	At       time.Time       `json:"at"`
	Manifest []byte          `json:"manifest"` // encoded
	Base     routemap.Digest `json:"base"`
	Overlay  routemap.Digest `json:"overlay"`

	// See Published.
	Seq      uint64          `json:"seq"`
	Chain    routemap.Digest `json:"chain"`
	HeldFrom uint64          `json:"held_from,omitempty"`
	HeldTo   uint64          `json:"held_to,omitempty"`
	Partial  bool            `json:"partial,omitempty"`
}

func newVersionRecord(p *Published) versionRecord {
	man := p.Version.Manifest
	return versionRecord{
		Version: man.Version, At: p.At, Manifest: man.Encode(), Base: man.Base.Digest, Overlay: man.Overlay.Digest,
		Seq: p.Seq, Chain: p.chain, HeldFrom: p.HeldFrom, HeldTo: p.HeldTo, Partial: p.partial,
	}
}

// versionID sorts the newest version first.
func versionID(v cellway.Version) string { return fmt.Sprintf("%020d", ^uint64(v)) }

// newestID is the id of the pointer to the newest version. Replacing it at its
// revision is what makes a version the only one with its number.
const newestID = "newest"

const kindPointer = "pointer"

type pointerRecord struct {
	Version cellway.Version `json:"version"`
	Digest  routemap.Digest `json:"digest"` // of its manifest

	// Whole is the newest version that is what the log of changes makes up to
	// its Seq, 0 if there is none: with it memory starts.
	Whole cellway.Version `json:"whole,omitempty"`
}

// getPointer returns the zero pointer and revision before the first version.
func getPointer(tx store.Tx) (p pointerRecord, rev cellway.Revision, err error) {
	p, err = get(tx, kindPointer, newestID, func(_ *pointerRecord, r cellway.Revision) { rev = r })
	if errors.Is(err, cellway.ErrNotFound) {
		return pointerRecord{}, 0, nil
	}
	return p, rev, err
}

func getVersion(tx store.Tx, v cellway.Version) (versionRecord, error) {
	r, err := get(tx, kindVersion, versionID(v), func(*versionRecord, cellway.Revision) {})
	if errors.Is(err, cellway.ErrNotFound) {
		err = fmt.Errorf("map %v was not published, or is no longer kept: %w", v, cellway.ErrNotFound)
	}
	return r, err
}

func putVersion(tx store.Tx, p *Published) error {
	_, err := put(tx, kindVersion, versionID(p.Map.Version()), 0, newVersionRecord(p))
	return err
}

// readVersion reads a version's parts and opens its map. known, if not nil, is a
// version whose base is used if it is the same one.
func (s *Service) readVersion(ctx context.Context, r versionRecord, known *Published) (*Published, error) {
	man, err := routemap.DecodeManifest(r.Manifest)
	if err != nil {
		return nil, fmt.Errorf("map %v: %w", r.Version, err)
	}
	p := &Published{
		Version: routemap.Version{Manifest: man}, Seq: r.Seq, At: r.At,
		HeldFrom: r.HeldFrom, HeldTo: r.HeldTo, chain: r.Chain, partial: r.Partial,
	}
	var base *routemap.Base
	if known != nil && known.Version.Manifest.Base.Digest == r.Base {
		base, p.Version.Base = known.Map.Base(), known.Version.Base
	} else {
		if p.Version.Base, err = s.blob(ctx, r.Base); err != nil {
			return nil, fmt.Errorf("map %v: base: %w", r.Version, err)
		}
		if base, err = routemap.DecodeBase(p.Version.Base); err != nil {
			return nil, fmt.Errorf("map %v: %w", r.Version, err)
		}
	}
	if p.Version.Overlay, err = s.blob(ctx, r.Overlay); err != nil {
		return nil, fmt.Errorf("map %v: overlay: %w", r.Version, err)
	}
	if p.Map, err = routemap.Open(man, base, p.Version.Overlay); err != nil {
		return nil, err
	}
	return p, nil
}

// A MapVersion is one published version for people.
type MapVersion struct {
	Manifest *routemap.Manifest
	Seq      uint64
	At       time.Time
}

// Versions lists the published versions that are kept, the newest first, those
// below before (0: all).
func (s *Service) Versions(ctx context.Context, before cellway.Version, limit int) (out []MapVersion, err error) {
	limit = pageLimit(limit)
	after := ""
	if before != 0 {
		after = versionID(before)
	}
	err = s.view(ctx, func(tx store.Tx) error {
		p, err := page(tx, kindVersion, "", after, limit, func(*versionRecord, cellway.Revision) {})
		if err != nil {
			return err
		}
		for _, r := range p.Items {
			man, err := routemap.DecodeManifest(r.Manifest)
			if err != nil {
				return fmt.Errorf("map %v: %w", r.Version, err)
			}
			out = append(out, MapVersion{man, r.Seq, r.At})
		}
		return nil
	})
	return out, err
}

// OpenVersion reads a published version back, or returns [cellway.ErrNotFound].
func (s *Service) OpenVersion(ctx context.Context, version cellway.Version) (*routemap.Map, routemap.Version, error) {
	var r versionRecord
	if err := s.view(ctx, func(tx store.Tx) (err error) { r, err = getVersion(tx, version); return err }); err != nil {
		return nil, routemap.Version{}, err
	}
	p, err := s.readVersion(ctx, r, s.hub.newest())
	if err != nil {
		return nil, routemap.Version{}, err
	}
	return p.Map, p.Version, nil
}

// ChangeVersion says which version first contained the change with that number,
// among those that are kept; 0 if none does yet.
func (s *Service) ChangeVersion(ctx context.Context, seq uint64) (found cellway.Version, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		end, err := tx.LogEnd(logChanges)
		if err != nil {
			return err
		}
		if seq == 0 || seq > end {
			return fmt.Errorf("change %d: %w", seq, cellway.ErrNotFound)
		}
		for after := ""; ; {
			p, err := page(tx, kindVersion, "", after, 64, func(*versionRecord, cellway.Revision) {})
			if err != nil {
				return err
			}
			for _, r := range p.Items {
				p := Published{Seq: r.Seq, HeldFrom: r.HeldFrom, HeldTo: r.HeldTo}
				if p.Contains(seq) {
					found = r.Version
				} else if !r.Partial {
					return nil // versions before it contain less
				}
			}
			if after = p.Next; after == "" {
				return nil
			}
		}
	})
	return found, err
}
