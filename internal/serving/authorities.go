package serving

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/looks"
	"github.com/cellway/cellway/internal/regular"
)

// Authorities are the certificates in a file that is read again when it
// changes. While it can't be read, those read last stay in use: peers that
// would be refused for half a file are no gain.
type Authorities struct {
	setting, path string // the path is empty for the system's
	log           *slog.Logger
	now           atomic.Pointer[x509.CertPool] // nil for the system's

	look looks.Last
	mu   sync.Mutex // guards what follows
	pem  []byte     // what is in use
}

// LoadAuthorities reads certificate authorities; an empty path means the
// system's.
func LoadAuthorities(setting, path string, log *slog.Logger) (*Authorities, error) {
	a := &Authorities{setting: setting, path: path, log: log}
	if path == "" {
		return a, nil
	}
	_, err := a.load(true)
	return a, err
}

// Pool returns the authorities in use, or nil for the system's. Nobody changes
// what it returned.
func (a *Authorities) Pool() *x509.CertPool { return a.now.Load() }

// load reads the file and takes it into use if it differs from what is, or if
// it must.
func (a *Authorities) load(must bool) (changed bool, err error) {
	pem, err := regular.Read(a.path, maxPEM)
	if err != nil {
		return false, fmt.Errorf("%s: %w", a.setting, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !must && bytes.Equal(pem, a.pem) {
		return false, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return false, fmt.Errorf("%s %s: no certificate in PEM: %w", a.setting, a.path, cellway.ErrInvalid)
	}
	a.now.Store(pool)
	a.pem = pem
	return true, nil
}

// Reload reads the file again, and says so when what is in use has changed or
// can't change.
func (a *Authorities) Reload(must bool) {
	if a.path == "" {
		return
	}
	changed, err := a.load(must)
	switch news := a.look.Note(err); {
	case err == nil && changed:
		a.log.Info("authorities read again; connections that are open stay", "setting", a.setting, "file", a.path)
	case err != nil && news:
		a.log.Error("authorities not read; they stay as they were", "setting", a.setting, "error", err)
	}
}

// Setting is the name of the setting that they were read for.
func (a *Authorities) Setting() string { return a.setting }

// Named reports whether a file is named; else they are the system's.
func (a *Authorities) Named() bool { return a.path != "" }

// Failing reports whether the file could not be read the last time.
func (a *Authorities) Failing() bool { return a.look.Err() != nil }

// Watch reloads until ctx ends: now and then, and whenever hup says so.
func (a *Authorities) Watch(ctx context.Context, hup <-chan struct{}) error {
	return LookAgain(ctx, lookEvery, hup, a.Reload)
}
