package routemap_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestManifestSaysWhatWasPublished(t *testing.T) {
	m := everyRule(t)
	first, v1 := published(t, m, nil, cellway.NewVersion(1, 1))
	at := time.Date(2026, 11, 30, 12, 0, 0, 999, time.FixedZone("", 3600))
	m = apply(t, first, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "more", Cell: "cell-001"}}}, 900)
	second, v2, err := routemap.Publish(m, routemap.Publication{
		Version: cellway.NewVersion(1, 2), Parent: first, CreatedAt: at, Scope: "ring-0", Signers: []routemap.Signer{routemap.LocalSigner(signingKey())},
	})
	if err != nil {
		t.Fatal(err)
	}
	man := archived(t, v2).Manifest
	switch {
	case man.Fleet != "shop" || man.Version != cellway.NewVersion(1, 2) || man.Parent != cellway.NewVersion(1, 1) || man.ParentDigest != v1.Manifest.Digest():
		t.Errorf("who it is: %+v", man)
	case man.Format != routemap.FormatVersion || man.MinReader != 1 || man.Scope != "ring-0":
		t.Errorf("who reads it: %+v", man)
	case !man.CreatedAt.Equal(at.Truncate(time.Second)) || man.CreatedAt.Location() != time.UTC:
		t.Errorf("created at %v", man.CreatedAt)
	case man.Verdict.Confirmed || man.Verdict.Counts.EntriesAdded != 1 || int(man.Verdict.Counts.Entries) != first.Keys():
		t.Errorf("verdict %+v", man.Verdict)
	case man.Base.Digest != m.Base().Digest() || int(man.Base.Size) != len(v2.Base) || int(man.Overlay.Size) != len(v2.Overlay):
		t.Errorf("parts %+v %+v", man.Base, man.Overlay)
	case man.Digest() != second.Manifest().Digest() || v1.Manifest.CreatedAt.Unix() > 0:
		t.Errorf("digest %v", man.Digest())
	}
}

func TestPublishRefusesWhatNoRouterWouldTake(t *testing.T) {
	m := build(t, content(2, 8))
	first, _ := published(t, m, nil, 5)
	other := content(2, 8)
	other.Fleet = "other"
	foreign, _ := published(t, build(t, other), nil, 1)
	sign := []routemap.Signer{routemap.LocalSigner(signingKey())}
	for name, p := range map[string]routemap.Publication{
		"no version":        {Signers: sign},
		"version as it was": {Version: 5, Parent: first, Signers: sign},
		"lower version":     {Version: 4, Parent: first, Signers: sign},
		"unpublished":       {Version: 6, Parent: m, Signers: sign},
		"another fleet":     {Version: 6, Parent: foreign, Signers: sign},
		"unsigned":          {Version: 6, Parent: first},
		"signed twice":      {Version: 6, Parent: first, Signers: append(sign, sign...)},
		"scope":             {Version: 6, Parent: first, Signers: sign, Scope: "ring-zero"},
		"before 1970":       {Version: 6, Parent: first, Signers: sign, CreatedAt: time.Unix(-5, 0)},
		"after 9999":        {Version: 6, Parent: first, Signers: sign, CreatedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a broken signer":   {Version: 6, Parent: first, Signers: []routemap.Signer{brokenSigner{}}},
		"a failing signer":  {Version: 6, Parent: first, Signers: []routemap.Signer{brokenSigner{errors.New("no answer")}}},
		"a short key":       {Version: 6, Parent: first, Signers: []routemap.Signer{shortSigner{}}},
	} {
		if _, _, err := routemap.Publish(m, p); err == nil {
			t.Errorf("%s: published", name)
		}
	}
}

type brokenSigner struct{ err error }

func (brokenSigner) Public() ed25519.PublicKey     { return signingKey().Public().(ed25519.PublicKey) }
func (s brokenSigner) Sign([]byte) ([]byte, error) { return make([]byte, 64), s.err }

type shortSigner struct{}

func (shortSigner) Public() ed25519.PublicKey   { return ed25519.PublicKey("short") }
func (shortSigner) Sign([]byte) ([]byte, error) { return make([]byte, 64), nil }

// Whatever byte of a version changes, it is refused.
func TestEveryByteOfAVersionMatters(t *testing.T) {
	m, _ := published(t, everyRule(t), nil, 1)
	_, v := published(t, apply(t, m, routemap.ChangeSet{Holds: []cellway.Hold{{Key: "new", Move: "m", Until: review}}}, 900), m, 2)
	good := v.Archive()
	open := func(b []byte) error {
		v, err := routemap.ReadArchive(bytes.NewReader(b))
		if err == nil {
			_, err = v.Open(signingRing(), false)
		}
		return err
	}
	if err := open(good); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if i == 4 || i == 5 {
			continue // the format version of the archive, which is only a wrapping
		}
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		if open(bad) == nil {
			t.Fatalf("byte %d of %d may be %#x as well as %#x", i, len(good), bad[i], good[i])
		}
	}
	for i := range good {
		if open(good[:i]) == nil {
			t.Fatalf("the first %d of %d bytes are enough", i, len(good))
		}
	}
	if open(append(bytes.Clone(good), 0)) == nil {
		t.Error("a byte may stand behind the end")
	}
}

func TestOpenTakesOnlyTheNamedParts(t *testing.T) {
	m1, v1 := published(t, build(t, content(2, 8)), nil, 1)
	_, v2 := published(t, apply(t, m1, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a", Cell: "cell-001"}}}, 9), m1, 2)
	_, other := published(t, build(t, content(3, 8)), nil, 1)
	base, err := routemap.DecodeBase(other.Base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := routemap.Open(v1.Manifest, base, v1.Overlay); !errors.Is(err, routemap.ErrDigest) {
		t.Errorf("another base: %v", err)
	}
	if _, err := routemap.Open(v1.Manifest, m1.Base(), v2.Overlay); !errors.Is(err, routemap.ErrDigest) {
		t.Errorf("another overlay: %v", err)
	}
	swapped := v1
	swapped.Base = other.Base
	if _, err := swapped.Open(signingRing(), false); !errors.Is(err, routemap.ErrDigest) {
		t.Errorf("another base, undecoded: %v", err)
	}
	if got, err := routemap.Open(v2.Manifest, m1.Base(), v2.Overlay); err != nil || got.Base() != m1.Base() {
		t.Errorf("a base that is there already: %v", err)
	}
}

// What a router swaps to.
func TestAccept(t *testing.T) {
	one := build(t, content(4, 64))
	m1, _ := published(t, one, nil, 10)
	small := apply(t, one, routemap.ChangeSet{Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "cell-001"}}}, 5)
	var all routemap.ChangeSet
	for i := range uint32(64) {
		all.Owners = append(all.Owners, cellway.BucketOwner{Bucket: i, Cell: "cell-001"})
	}
	large := apply(t, one, all, 5)
	other := content(4, 64)
	other.Fleet = "other"
	foreign, _ := published(t, build(t, other), nil, 11)

	pub := func(m, parent *routemap.Map, v cellway.Version, change func(*routemap.Publication)) *routemap.Map {
		p := routemap.Publication{Version: v, Parent: parent, Signers: []routemap.Signer{routemap.LocalSigner(signingKey())}}
		if change != nil {
			change(&p)
		}
		out, _, err := routemap.Publish(m, p)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	fork := pub(small, nil, 10, nil)
	for name, tt := range map[string]struct {
		current, next *routemap.Map
		want          error
	}{
		"a first map":                      {nil, m1, nil},
		"the map itself":                   {m1, m1, nil},
		"its child":                        {m1, pub(small, m1, 11, nil), nil},
		"a later one, its parent unseen":   {m1, pub(large, pub(small, m1, 11, nil), 12, nil), nil},
		"a lower version":                  {pub(one, nil, 12, nil), pub(small, m1, 11, nil), routemap.ErrOld},
		"a lower incarnation":              {pub(one, nil, cellway.NewVersion(2, 1), nil), pub(one, nil, cellway.NewVersion(1, 900), nil), routemap.ErrOld},
		"the same version, another map":    {m1, fork, routemap.ErrMapFork},
		"the child of a fork":              {m1, pub(small, fork, 11, nil), routemap.ErrMapFork},
		"another fleet":                    {m1, foreign, routemap.ErrFleet},
		"a ring's":                         {m1, pub(small, m1, 11, func(p *routemap.Publication) { p.Scope = "ring-0" }), routemap.ErrScope},
		"a ring's first":                   {nil, pub(small, nil, 11, func(p *routemap.Publication) { p.Scope = "ring-0" }), routemap.ErrScope},
		"too many changes":                 {m1, pub(large, m1, 11, nil), routemap.ErrGateCounts},
		"too many changes, but confirmed":  {m1, pub(large, m1, 11, func(p *routemap.Publication) { p.Verdict.Confirmed = true }), nil},
		"a map that was never published":   {m1, small, cellway.ErrInvalid},
		"a map in use that was not either": {small, m1, cellway.ErrInvalid},
	} {
		if err := routemap.Accept(tt.current, tt.next); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// A publisher that counts its own changes wrong, or lies, is found out.
func TestAcceptCountsAgain(t *testing.T) {
	m1, _ := published(t, build(t, content(4, 64)), nil, 1)
	m2 := apply(t, m1, routemap.ChangeSet{Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "cell-001"}}}, 5)
	// The same manifest over a map with one change more: published by a program
	// that compared with something else.
	m2, _ = published(t, m2, m1, 2)
	forged := routemap.WithCounts(m2, routemap.Counts{Entries: 5})
	if err := routemap.Accept(m1, forged); !errors.Is(err, routemap.ErrGateCounts) {
		t.Errorf("wrong counts: %v", err)
	}
}

func TestRefusalsSayWhatAndWhy(t *testing.T) {
	m1, _ := published(t, build(t, content(4, 64)), nil, cellway.NewVersion(1, 7))
	m2, _ := published(t, build(t, content(4, 64)), nil, cellway.NewVersion(1, 6))
	err := routemap.Accept(m1, m2)
	if want := "map 1.6 is older than 1.7 in use: " + routemap.ErrOld.Error(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, v := published(t, m2, nil, 1)
	_, err = v.Open(routemap.Keyring{}, false)
	if id := string(routemap.KeyIDOf(signingRing()[0].Key)); err == nil || !strings.Contains(err.Error(), id+" is unknown") {
		t.Errorf("got %v, want it to name key %s", err, id)
	}
}
