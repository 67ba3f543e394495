package fleet

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cellway/cellway/routemap"
)

// makeKey makes a signing key for maps: the private half in signing.pem, and
// the keyring of those who trust it in keyring.
func makeKey(dir string) (signing, trusted string, ring routemap.Keyring, err error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", nil, fmt.Errorf("make a signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", nil, fmt.Errorf("make a signing key: %w", err)
	}
	signing, trusted = filepath.Join(dir, "signing.pem"), filepath.Join(dir, "keyring")
	ring = routemap.Keyring{{Key: pub, Trust: routemap.Trusted}}
	if err := os.WriteFile(signing, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return "", "", nil, fmt.Errorf("make a signing key: %w", err)
	}
	if err := os.WriteFile(trusted, ring.Format(), 0o600); err != nil {
		return "", "", nil, fmt.Errorf("make a signing key: %w", err)
	}
	return signing, trusted, ring, nil
}
