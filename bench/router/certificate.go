//go:build linux

package main

import (
	"errors"
	"os"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// writeCertificate writes a certificate that vouches for itself, its key, and
// both in one file.
func writeCertificate(cert, key, both string) error {
	certPEM, keyPEM, err := fleet.Certificate()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(cert, certPEM, 0o644), os.WriteFile(key, keyPEM, 0o600), os.WriteFile(both, append(certPEM, keyPEM...), 0o600))
}
