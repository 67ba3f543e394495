package routemap

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// A Trust says what a router makes of a key's signatures.
type Trust uint8

// The levels of trust. A key goes from trusted to retired when another has
// taken over, and to revoked when it may be in wrong hands.
const (
	Trusted Trust = iota // new maps are accepted
	Retired              // maps accepted earlier stay usable
	Revoked              // nothing it signed is usable, unless another key signed it too
)

var trustNames = []string{"trusted", "retired", "revoked"}

func (t Trust) String() string {
	if int(t) < len(trustNames) {
		return trustNames[t]
	}
	return fmt.Sprintf("trust(%d)", t)
}

// A PublicKey is a key that signs maps, and how far it is trusted.
type PublicKey struct {
	Key   ed25519.PublicKey
	Trust Trust
}

// A Keyring is the set of keys whose maps a router accepts. The zero Keyring
// accepts none.
type Keyring []PublicKey

// ParseKeyring reads a keyring: a line for each key with the word ed25519, the
// key in base64, and trusted, retired or revoked; blank lines and what follows
// a # are skipped.
func ParseKeyring(text []byte) (Keyring, error) {
	var ring Keyring
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		bad := func(why string) error {
			return fmt.Errorf("keyring line %d: %s; a line is \"ed25519 <base64 key> trusted|retired|revoked\": %w", n, why, cellway.ErrInvalid)
		}
		if len(f) != 3 || f[0] != "ed25519" {
			return nil, bad(fmt.Sprintf("%d words", len(f)))
		}
		key, err := base64.StdEncoding.Strict().DecodeString(f[1])
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, bad("the key is not 32 bytes in base64")
		}
		trust := slices.Index(trustNames, f[2])
		if trust < 0 {
			return nil, bad(fmt.Sprintf("trust %q is unknown", f[2]))
		}
		if _, ok := ring.find(KeyIDOf(key)); ok {
			return nil, bad("key " + string(KeyIDOf(key)) + " stands twice")
		}
		ring = append(ring, PublicKey{key, Trust(trust)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("keyring: %v: %w", err, cellway.ErrInvalid)
	}
	return ring, nil
}

// Format writes what [ParseKeyring] reads.
func (ring Keyring) Format() []byte {
	var b bytes.Buffer
	for _, k := range ring {
		fmt.Fprintf(&b, "ed25519 %s %s # %s\n", base64.StdEncoding.EncodeToString(k.Key), k.Trust, KeyIDOf(k.Key))
	}
	return b.Bytes()
}

func (ring Keyring) find(id KeyID) (PublicKey, bool) {
	for _, k := range ring {
		if KeyIDOf(k.Key) == id {
			return k, true
		}
	}
	return PublicKey{}, false
}

// Verify accepts a manifest that a trusted key signed. A map that was
// verified when it was accepted, and is read again later, may also be signed by
// a key that was retired since. The error wraps [ErrUntrusted] and says what
// became of each signature.
func (ring Keyring) Verify(m *Manifest, accepted bool) error {
	message := m.signed()
	var why []string
	for _, s := range m.Signatures {
		k, ok := ring.find(s.Key)
		switch {
		case !ok:
			why = append(why, fmt.Sprintf("%s is unknown", s.Key))
		case k.Trust != Trusted && !(k.Trust == Retired && accepted):
			why = append(why, fmt.Sprintf("%s is %s", s.Key, k.Trust))
		case len(k.Key) != ed25519.PublicKeySize || !ed25519.Verify(k.Key, message, s.Sig):
			why = append(why, fmt.Sprintf("%s did not sign this", s.Key))
		default:
			return nil
		}
	}
	if len(why) == 0 {
		why = []string{"it is not signed"}
	}
	return fmt.Errorf("map %v of fleet %s: %s: %w", m.Version, m.Fleet, strings.Join(why, ", "), ErrUntrusted)
}
