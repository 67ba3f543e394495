package routerd

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

// authorities are the certificates in a file that is read again when it
// changes. While it can't be read, those read last stay in use: cells that
// would be refused for half a file are no gain.
type authorities struct {
	setting, path string // the path is empty for the system's
	log           *slog.Logger
	now           atomic.Pointer[x509.CertPool] // nil for the system's

	mu  sync.Mutex // guards what follows
	pem []byte     // what is in use
	err error      // of the last time the file was read
}

// loadAuthorities reads certificate authorities; an empty path means the
// system's.
func loadAuthorities(setting, path string, log *slog.Logger) (*authorities, error) {
	a := &authorities{setting: setting, path: path, log: log}
	if path == "" {
		return a, nil
	}
	_, err := a.load(true)
	return a, err
}

// pool returns the authorities in use, or nil for the system's. Nobody changes
// what it returned.
func (a *authorities) pool() *x509.CertPool { return a.now.Load() }

// load reads the file and takes it into use if it differs from what is, or if
// it must.
func (a *authorities) load(must bool) (changed bool, err error) {
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

// reload reads the file again, and says so when what is in use has changed or
// can't change.
func (a *authorities) reload(must bool) {
	if a.path == "" {
		return
	}
	changed, err := a.load(must)
	a.mu.Lock()
	before := a.err
	a.err = err
	a.mu.Unlock()
	switch {
	case err == nil && changed:
		a.log.Info("authorities read again; connections that are open stay", "setting", a.setting, "file", a.path)
	case err != nil && (before == nil || before.Error() != err.Error()):
		a.log.Error("authorities not read; they stay as they were", "setting", a.setting, "error", err)
	}
}

// failing reports whether the file could not be read the last time.
func (a *authorities) failing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err != nil
}

// watch reloads until ctx ends: now and then, and whenever hup says so.
func (a *authorities) watch(ctx context.Context, hup <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.reload(false)
		case <-hup:
			a.reload(true)
		}
	}
}
