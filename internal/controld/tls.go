package controld

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/httpapi"
	"github.com/cellway/cellway/internal/regular"
)

// tlsConfig returns the TLS settings of the API, nil for plain HTTP, and the
// roles of client certificates.
func (c Config) tlsConfig() (*tls.Config, []httpapi.CertRule, error) {
	if c.TLSCert == "" {
		return nil, nil, nil
	}
	r := &certificate{cert: c.TLSCert, key: c.TLSKey, log: c.log()}
	if err := r.load(); err != nil {
		return nil, nil, err
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.get, NextProtos: []string{"h2", "http/1.1"}}
	if c.ClientCA == "" {
		return out, nil, nil
	}
	pem, err := regular.Read(c.ClientCA, maxPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("client-ca: %w", err)
	}
	out.ClientCAs = x509.NewCertPool()
	if !out.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("client-ca %s: no certificate in PEM form: %w", c.ClientCA, cellway.ErrInvalid)
	}
	out.ClientAuth = tls.VerifyClientCertIfGiven
	text, err := regular.Read(c.ClientRoles, maxPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("client-roles: %w", err)
	}
	rules, err := httpapi.ParseCertRules(text)
	if err != nil {
		return nil, nil, fmt.Errorf("client-roles %s: %w", c.ClientRoles, err)
	}
	if len(rules) == 0 {
		return nil, nil, fmt.Errorf("client-roles %s has no rule, so no certificate could do anything: %w", c.ClientRoles, cellway.ErrInvalid)
	}
	return out, rules, nil
}

// lookEvery is how often a certificate's file is looked at.
const lookEvery = 5 * time.Second

// A certificate is read again when its file changes. While the new one can't
// be read, the old one stays.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	now     *tls.Certificate
	changed time.Time // of the file, when it was read
	looked  time.Time
}

// maxPEM is far more than any file of certificates, keys or roles has.
const maxPEM = 8 << 20 // bytes

func (c *certificate) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return fmt.Errorf("tls-cert: %w", err)
	}
	chain, err := regular.Read(c.cert, maxPEM)
	if err != nil {
		return fmt.Errorf("tls-cert: %w", err)
	}
	key, err := regular.Read(c.key, maxPEM)
	if err != nil {
		return fmt.Errorf("tls-key: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("tls-cert: %w", err)
	}
	c.now, c.changed = &pair, info.ModTime()
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if info, err := os.Stat(c.cert); err != nil {
			c.log.Error("certificate not read", "error", err)
		} else if !info.ModTime().Equal(c.changed) {
			if err := c.load(); err != nil {
				c.log.Error("certificate not read; the old one stays", "error", err)
			} else {
				c.log.Info("certificate read again", "file", c.cert)
			}
		}
	}
	return c.now, nil
}
