package routemap

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// signContext stands before the manifest in what is signed, so that a
// signature can't be taken for one over anything else.
const signContext = "cellway map manifest 1\n"

// A KeyID names a signing key: the first eight bytes of the SHA-256 of the
// public key, in hexadecimal.
type KeyID string

const keyIDSize = 16

// KeyIDOf returns the name of a public key.
func KeyIDOf(pub ed25519.PublicKey) KeyID {
	sum := sha256.Sum256(pub)
	return KeyID(hex.EncodeToString(sum[:8]))
}

// A Signer signs manifests. The key itself may live elsewhere.
type Signer interface {
	Public() ed25519.PublicKey
	Sign(message []byte) ([]byte, error) // Ed25519 over message (RFC 8032)
}

// LocalSigner signs with a private key in memory.
type LocalSigner ed25519.PrivateKey

// Public returns the public half.
func (s LocalSigner) Public() ed25519.PublicKey {
	return ed25519.PrivateKey(s).Public().(ed25519.PublicKey)
}

// Sign signs message.
func (s LocalSigner) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(s), message), nil
}

// signed returns what a signature of m is over.
func (m *Manifest) signed() []byte { return slices.Concat([]byte(signContext), m.body) }

// sign adds a signature of each signer to a sealed manifest.
func (m *Manifest) sign(signers []Signer) error {
	if len(signers) == 0 || len(signers) > maxSignatures {
		return fmt.Errorf("sign map: %d signing keys, give 1 to %d: %w", len(signers), maxSignatures, cellway.ErrInvalid)
	}
	message := m.signed()
	for _, s := range signers {
		pub := s.Public()
		if len(pub) != ed25519.PublicKeySize {
			return fmt.Errorf("sign map: a public key has %d bytes, not %d: %w", len(pub), ed25519.PublicKeySize, cellway.ErrInvalid)
		}
		id := KeyIDOf(pub)
		sig, err := s.Sign(message)
		if err != nil {
			return fmt.Errorf("sign map with key %s: %w", id, err)
		}
		if !ed25519.Verify(pub, message, sig) {
			return fmt.Errorf("sign map with key %s: the signer's answer does not verify", id)
		}
		m.Signatures = append(m.Signatures, Signature{id, sig})
	}
	slices.SortFunc(m.Signatures, func(a, b Signature) int { return cmp.Compare(a.Key, b.Key) })
	for i := 1; i < len(m.Signatures); i++ {
		if m.Signatures[i].Key == m.Signatures[i-1].Key {
			return fmt.Errorf("sign map: key %s is given twice: %w", m.Signatures[i].Key, cellway.ErrInvalid)
		}
	}
	return nil
}
