package routerd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// lookEvery is how often the files of certificates are looked at.
const lookEvery = 10 * time.Second

// certificates are read again when one of their files changes. While a new one
// can't be read, or does not fit its key, all stay as they were.
type certificates struct {
	setting string // in errors
	files   [][2]string
	log     *slog.Logger
	now     atomic.Pointer[[]tls.Certificate]

	mu    sync.Mutex // guards what follows
	stats []fs.FileInfo
	err   error // of the last time they were read
}

// loadCertificates reads certificates for the first time.
func loadCertificates(setting string, certs, keys []string, log *slog.Logger) (*certificates, error) {
	c := &certificates{setting: setting, log: log}
	for i := range certs {
		c.files = append(c.files, [2]string{certs[i], keys[i]})
	}
	return c, c.load()
}

// load reads all files. It is called by one goroutine at a time.
func (c *certificates) load() error {
	stats, err := c.stat()
	if err != nil {
		return err
	}
	var all []tls.Certificate
	for _, f := range c.files {
		cert, err := tls.LoadX509KeyPair(f[0], f[1])
		if err != nil {
			return fmt.Errorf("%s %s: %w", c.setting, f[0], err)
		}
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return fmt.Errorf("%s %s: %w", c.setting, f[0], err)
		}
		all = append(all, cert)
	}
	c.now.Store(&all)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats = stats
	return nil
}

func (c *certificates) stat() (stats []fs.FileInfo, err error) {
	for _, f := range c.files {
		for _, name := range f {
			info, err := os.Stat(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.setting, err)
			}
			stats = append(stats, info)
		}
	}
	return stats, nil
}

// reload reads the files again if one changed, or if it must.
func (c *certificates) reload(must bool) {
	stats, err := c.stat()
	if err == nil && !must {
		c.mu.Lock()
		same := c.err == nil && len(stats) == len(c.stats)
		for i := range stats {
			same = same && os.SameFile(stats[i], c.stats[i]) && stats[i].Size() == c.stats[i].Size() && stats[i].ModTime().Equal(c.stats[i].ModTime())
		}
		c.mu.Unlock()
		if same {
			return
		}
	}
	if err == nil {
		err = c.load()
	}
	c.mu.Lock()
	before := c.err
	c.err = err
	c.mu.Unlock()
	switch {
	case err == nil:
		c.log.Info("certificates read again", "setting", c.setting, "count", len(c.files))
	case before == nil || before.Error() != err.Error():
		c.log.Error("certificates not read; they stay as they were", "setting", c.setting, "error", err)
	}
}

// failing reports whether the files could not be read the last time.
func (c *certificates) failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// watch reloads until ctx ends: when a file changed, and whenever hup says so.
func (c *certificates) watch(ctx context.Context, hup <-chan struct{}) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			c.reload(false)
		case <-hup:
			c.reload(true)
		}
	}
}

// get chooses the certificate for a client's server name: the first that fits,
// or else the first.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	all := *c.now.Load()
	for i := range all {
		if hello.SupportsCertificate(&all[i]) == nil {
			return &all[i], nil
		}
	}
	return &all[0], nil
}

// client returns the certificate that the router shows to cells.
func (c *certificates) client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return &(*c.now.Load())[0], nil
}

// authorities are the certificates in a file that is read at the start only.
type authorities struct {
	setting, path string
	pool          *x509.CertPool // nil for the system's
	log           *slog.Logger

	pem  []byte // as it was read
	told []byte // what was last told of
}

// loadAuthorities reads certificate authorities; an empty path means the
// system's.
func loadAuthorities(setting, path string, log *slog.Logger) (*authorities, error) {
	a := &authorities{setting: setting, path: path, log: log}
	if path == "" {
		return a, nil
	}
	var err error
	if a.pem, err = os.ReadFile(path); err != nil {
		return a, fmt.Errorf("%s: %w", setting, err)
	}
	a.told, a.pool = a.pem, x509.NewCertPool()
	if !a.pool.AppendCertsFromPEM(a.pem) {
		return a, fmt.Errorf("%s %s: no certificate in PEM: %w", setting, path, cellway.ErrInvalid)
	}
	return a, nil
}

// look warns when the file is not what is in use.
func (a *authorities) look() {
	if a.path == "" {
		return
	}
	now, err := os.ReadFile(a.path)
	if err != nil || bytes.Equal(now, a.told) {
		return // a file that is gone for a moment is being replaced
	}
	a.told = now
	if !bytes.Equal(now, a.pem) {
		a.log.Warn("authorities changed: they come into use when the router is started again", "setting", a.setting, "file", a.path)
	}
}

// watch looks until ctx ends: now and then, and whenever hup says so.
func (a *authorities) watch(ctx context.Context, hup <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-hup:
		}
		a.look()
	}
}
