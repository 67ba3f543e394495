package controld

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// keyBlock is the PEM type of a PKCS #8 key, as openssl writes it.
const keyBlock = "PRIVATE KEY"

// NewKeyFile makes a signing key and writes it to path with mode 0600. A file
// that exists is an [cellway.ErrExists] and is left alone.
func NewKeyFile(path string, random io.Reader) error {
	_, private, err := ed25519.GenerateKey(random)
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("signing key %s is there already; a key that routers trust is not overwritten: %w", path, cellway.ErrExists)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make signing key %s: its folder is not there; make it, or name another file with --key FILE, and with --store FILE one beside it: %w", path, cellway.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: keyBlock, Bytes: der})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = regular.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make signing key %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// ReadKeyFile reads a signing key: an Ed25519 key in PKCS #8, PEM. A file that
// others than its owner may read is refused.
func ReadKeyFile(path string) (routemap.LocalSigner, error) {
	f, info, err := regular.System().Open(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	defer f.Close()
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("signing key %s has mode %04o, so others can read it: chmod 0600 %s, and consider whether somebody has: %w", path, mode, path, cellway.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("signing key %s is not a private key in PEM (PKCS #8): %w", path, cellway.ErrInvalid)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil { // in words of ASN.1, which nobody writes by hand
		return nil, fmt.Errorf("signing key %s is damaged, or encrypted, or of another kind: what stands between its BEGIN and END is no private key in PKCS #8: %w", path, cellway.ErrInvalid)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key %s is not an Ed25519 key; make one with cellway key new: %w", path, cellway.ErrInvalid)
	}
	return routemap.LocalSigner(private), nil
}

// signers returns what signs the maps.
func (c Config) signers() ([]routemap.Signer, error) {
	if len(c.Signer) > 0 {
		s, err := newExecSigner(c.Signer, c.SignerKey)
		return []routemap.Signer{s}, err
	}
	var all []routemap.Signer
	for _, path := range c.Keys {
		s, err := ReadKeyFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 { // a store in memory takes a key in memory
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make signing key: %w", err)
		}
		all = append(all, routemap.LocalSigner(private))
	}
	return all, nil
}

// readable reports the first file that holds no signing key.
func readable(keys []string) error {
	for _, path := range keys {
		if _, err := ReadKeyFile(path); err != nil {
			return err
		}
	}
	return nil
}

// keyring is what routers must trust.
func keyring(signers []routemap.Signer) routemap.Keyring {
	var ring routemap.Keyring
	for _, s := range signers {
		ring = append(ring, routemap.PublicKey{Key: s.Public()})
	}
	return ring
}

func parsePublicKey(s string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("public key %.60q is not 32 bytes in base64, as in a keyring: %w", s, cellway.ErrInvalid)
	}
	return key, nil
}
