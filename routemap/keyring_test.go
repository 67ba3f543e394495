package routemap_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// newKey returns a key of its own for each n.
func newKey(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

func TestKeysRotateWithoutARefusal(t *testing.T) {
	m := build(t, content(2, 8))
	signed := func(v cellway.Version, keys ...ed25519.PrivateKey) *routemap.Manifest {
		p := routemap.Publication{Version: v}
		for _, k := range keys {
			p.Signers = append(p.Signers, routemap.LocalSigner(k))
		}
		_, version, err := routemap.Publish(m, p)
		if err != nil {
			t.Fatal(err)
		}
		return archived(t, version).Manifest
	}
	ring := func(trust ...routemap.Trust) (ring routemap.Keyring) {
		for i, level := range trust {
			ring = append(ring, routemap.PublicKey{Key: newKey(byte(i)).Public().(ed25519.PublicKey), Trust: level})
		}
		return ring
	}
	old, new := newKey(0), newKey(1)
	byOld, byBoth, byNew := signed(1, old), signed(2, new, old), signed(3, new)
	if byBoth.Digest() != func() routemap.Digest { return signed(2, old).Digest() }() {
		t.Error("who signs changes the digest of a version")
	}
	const trusted, retired, revoked = routemap.Trusted, routemap.Retired, routemap.Revoked
	for name, tt := range map[string]struct {
		ring     routemap.Keyring
		man      *routemap.Manifest
		accepted bool
		want     bool
	}{
		"before":                         {ring(trusted), byOld, false, true},
		"both trusted, old signs":        {ring(trusted, trusted), byOld, false, true},
		"both sign, only old is known":   {ring(trusted), byBoth, false, true},
		"both sign":                      {ring(trusted, trusted), byBoth, false, true},
		"new signs":                      {ring(trusted, trusted), byNew, false, true},
		"new signs, old retired":         {ring(retired, trusted), byNew, false, true},
		"both sign, old retired":         {ring(retired, trusted), byBoth, false, true},
		"both sign, old revoked":         {ring(revoked, trusted), byBoth, false, true},
		"old signs, old retired":         {ring(retired, trusted), byOld, false, false},
		"old signed what was accepted":   {ring(retired, trusted), byOld, true, true},
		"old signed, then revoked":       {ring(revoked, trusted), byOld, true, false},
		"new signs, new unknown":         {ring(trusted), byNew, false, false},
		"accepted, but the key is gone":  {ring(), byOld, true, false},
		"trust of a level to come":       {ring(routemap.Trust(9)), byOld, true, false},
		"a key of the wrong size":        {routemap.Keyring{{Key: ed25519.PublicKey("short")}}, byOld, false, false},
		"signed by that key":             {routemap.Keyring{{Key: ed25519.PublicKey("short")}}, &routemap.Manifest{Signatures: []routemap.Signature{{Key: routemap.KeyIDOf(ed25519.PublicKey("short")), Sig: make([]byte, 64)}}}, false, false},
		"signed by nobody":               {ring(trusted), &routemap.Manifest{}, true, false},
		"accepted, signed by a stranger": {ring(trusted), byNew, true, false},
	} {
		err := tt.ring.Verify(tt.man, tt.accepted)
		if (err == nil) != tt.want || err != nil && !errors.Is(err, routemap.ErrUntrusted) {
			t.Errorf("%s: %v, want it verified: %t", name, err, tt.want)
		}
	}
}

// A signature over one manifest is not one over another, and not one over
// anything else that the key may sign.
func TestSignatureIsOfOneManifest(t *testing.T) {
	m := build(t, content(2, 8))
	_, v1 := published(t, m, nil, 1)
	_, v2 := published(t, m, nil, 2)
	mixed := archived(t, v2).Manifest
	mixed.Signatures = v1.Manifest.Signatures
	if err := signingRing().Verify(mixed, false); !errors.Is(err, routemap.ErrUntrusted) {
		t.Errorf("another version's signature: %v", err)
	}
	bare := archived(t, v1).Manifest
	enc := bare.Encode()
	body := enc[:len(enc)-16-(1+16+64+7)/8*8]
	bare.Signatures[0].Sig = ed25519.Sign(signingKey(), body)
	if err := signingRing().Verify(bare, false); !errors.Is(err, routemap.ErrUntrusted) {
		t.Errorf("a signature over the bare bytes: %v", err)
	}
	bare.Signatures[0].Sig = ed25519.Sign(signingKey(), append([]byte("cellway map manifest 1\n"), body...))
	if err := signingRing().Verify(bare, false); err != nil {
		t.Errorf("a signature made by hand as the format says: %v", err)
	}
}

func TestKeyringReadsWhatItWrites(t *testing.T) {
	var ring routemap.Keyring
	for i := range 3 {
		ring = append(ring, routemap.PublicKey{Key: newKey(byte(i)).Public().(ed25519.PublicKey), Trust: routemap.Trust(i)})
	}
	text := ring.Format()
	got, err := routemap.ParseKeyring(text)
	if err != nil || !slices.EqualFunc(got, ring, func(a, b routemap.PublicKey) bool { return a.Key.Equal(b.Key) && a.Trust == b.Trust }) {
		t.Errorf("ParseKeyring(%s) = %v, %v", text, got, err)
	}
	commented := "# keys of the fleet\n\n  \t" + strings.ReplaceAll(string(text), " ", "\t ") + "\n#end"
	if got, err := routemap.ParseKeyring([]byte(commented)); err != nil || len(got) != 3 {
		t.Errorf("with comments: %d keys, %v", len(got), err)
	}
	if got, err := routemap.ParseKeyring(nil); err != nil || len(got) != 0 {
		t.Errorf("an empty keyring: %v, %v", got, err)
	}
}

func TestKeyringRefusesALineThatItCannotRead(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(newKey(1).Public().(ed25519.PublicKey))
	for name, line := range map[string]string{
		"algorithm":    "rsa " + key + " trusted",
		"trust":        "ed25519 " + key + " maybe",
		"too few":      "ed25519 " + key,
		"too many":     "ed25519 " + key + " trusted now",
		"short key":    "ed25519 " + key[:40] + " trusted",
		"not base64":   "ed25519 !" + key[1:] + " trusted",
		"loose bits":   "ed25519 " + key[:42] + "x= trusted",
		"twice":        "ed25519 " + key + " trusted\ned25519 " + key + " revoked",
		"endless line": "ed25519 " + strings.Repeat("A", 1<<17) + " trusted",
	} {
		_, err := routemap.ParseKeyring([]byte("# one\n" + line + "\n"))
		if !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && name != "twice" && name != "endless line" && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v does not name the line", name, err)
		}
	}
	if got := fmt.Sprint(routemap.Revoked, routemap.Trust(9)); got != "revoked trust(9)" {
		t.Errorf("levels of trust are %s", got)
	}
}
