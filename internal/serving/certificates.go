package serving

import (
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

	"github.com/cellway/cellway/internal/looks"
	"github.com/cellway/cellway/internal/regular"
)

// lookEvery is how often the files of certificates are looked at.
const lookEvery = 10 * time.Second

// Certificates are read again when one of their files changes. While a new one
// can't be read, or does not fit its key, all stay as they were.
type Certificates struct {
	setting string // in errors
	files   [][2]string
	log     *slog.Logger
	now     atomic.Pointer[[]tls.Certificate]

	look  looks.Last
	mu    sync.Mutex // guards what follows
	stats []fs.FileInfo
}

// LoadCertificates reads certificates for the first time, each with the key of
// the same index. The setting is named in errors.
func LoadCertificates(setting string, certs, keys []string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{setting: setting, log: log}
	for i := range certs {
		c.files = append(c.files, [2]string{certs[i], keys[i]})
	}
	return c, c.load()
}

// maxPEM is far more than any certificate, key or list of authorities has.
const maxPEM = 8 << 20 // bytes

// load reads all files. It is called by one goroutine at a time.
func (c *Certificates) load() error {
	stats, err := c.stat()
	if err != nil {
		return err
	}
	var all []tls.Certificate
	for _, f := range c.files {
		chain, err := regular.Read(f[0], maxPEM)
		if err != nil {
			return fmt.Errorf("%s: %w", c.setting, err)
		}
		key, err := regular.Read(f[1], maxPEM)
		if err != nil {
			return fmt.Errorf("%s: %w", c.setting, err)
		}
		cert, err := tls.X509KeyPair(chain, key)
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

func (c *Certificates) stat() (stats []fs.FileInfo, err error) {
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

// Reload reads the files again if one changed, or if it must.
func (c *Certificates) Reload(must bool) {
	stats, err := c.stat()
	if err == nil && !must {
		c.mu.Lock()
		same := !c.Failing() && len(stats) == len(c.stats)
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
	switch news := c.look.Note(err); {
	case err == nil:
		c.log.Info("certificates read again", "setting", c.setting, "count", len(c.files))
	case news:
		c.log.Error("certificates not read; they stay as they were", "setting", c.setting, "error", err)
	}
}

// Failing reports whether the files could not be read the last time.
func (c *Certificates) Failing() bool { return c.look.Err() != nil }

// Watch reloads until ctx ends: when a file changed, and whenever hup says so.
func (c *Certificates) Watch(ctx context.Context, hup <-chan struct{}) error {
	return LookAgain(ctx, lookEvery, hup, c.Reload)
}

// Get chooses the certificate for a client's server name: the first that fits,
// or else the first.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	all := *c.now.Load()
	for i := range all {
		if hello.SupportsCertificate(&all[i]) == nil {
			return &all[i], nil
		}
	}
	return &all[0], nil
}

// Setting is the name of the setting that they were read for.
func (c *Certificates) Setting() string { return c.setting }

// Leaves are the certificates in use, without what they were signed by.
func (c *Certificates) Leaves() (all []*x509.Certificate) {
	for _, one := range *c.now.Load() {
		all = append(all, one.Leaf)
	}
	return all
}

// Client returns the first certificate, for whoever asks us for ours.
func (c *Certificates) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return &(*c.now.Load())[0], nil
}
