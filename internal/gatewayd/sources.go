package gatewayd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/serving"
)

// A workersFrom says where the list of workers comes from: exactly one of file,
// dns, url and control.
type workersFrom struct {
	file, dns, url string
	control        serving.Words // addresses of the control plane
	every          time.Duration // 0: the source's own
	keep           string        // the file of the last good list of dns, url and control

	scheme   string // of endpoints found by dns
	size     int    // of a hand, with dns
	saltFile string // of the hands, with dns
	forget   time.Duration

	token, ca, cert, key string // for url and control
}

// maxSalt is the size in bytes of the longest salt.
const maxSalt = 4096

// validate sees that there is one source, with what it needs.
func (f *workersFrom) validate(faults *serving.Faults) {
	n := 0
	for _, one := range []string{f.file, f.dns, f.url} {
		if one != "" {
			n++
		}
	}
	if len(f.control.All) > 0 {
		n++
	}
	if n != 1 {
		faults.Bad("workers-file", "give exactly one of workers-file, workers-dns, workers-url and workers-control; %d are given", n)
	}
	faults.Negative(map[string]time.Duration{"workers-every": f.every, "workers-forget": f.forget})
	if f.dns != "" {
		if _, _, err := f.name(); err != nil {
			faults.Bad("workers-dns", "%v", err)
		}
		if f.size < 1 {
			faults.Bad("hand-size", "workers-dns needs the size of a hand, 1 or more")
		}
		if f.scheme != "http" && f.scheme != "https" {
			faults.Bad("workers-scheme", "%q is neither http nor https", f.scheme)
		}
	}
	if f.url == "" && len(f.control.All) == 0 && f.token+f.ca+f.cert+f.key != "" {
		faults.Bad("workers-token", "workers-token, workers-ca, workers-cert and workers-key are for workers-control and workers-url, which are not given")
	}
	faults.NotAPair("workers", f.cert, f.key)
	if f.dns == "" && (f.size != 0 || f.saltFile != "") {
		faults.Bad("hand-size", "a list has its own size and salt; hand-size and hand-salt-file are for workers-dns, which is not given")
	}
}

// name returns the name to look up, and its port: 0 for one of SRV records.
func (f *workersFrom) name() (host string, port uint16, err error) {
	if !strings.Contains(f.dns, ":") {
		return f.dns, 0, nil
	}
	host, digits, err := net.SplitHostPort(f.dns)
	if err != nil {
		return "", 0, fmt.Errorf("%q is neither host:port nor a name with SRV records", f.dns)
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, fmt.Errorf("%q is neither host:port nor a name with SRV records", f.dns)
	}
	return host, uint16(n), nil
}

// open returns the source, what must be closed in the end, and what is doubtful
// about it.
func (f *workersFrom) open(cell cellway.CellID, log *slog.Logger) (source gateway.Source, closing func(), doubts []error, err error) {
	closing = func() {}
	if f.file == "" {
		if err := f.checkKeep(); err != nil {
			return nil, closing, nil, err
		}
	}
	switch {
	case f.file != "":
		file, err := gateway.OpenFile(gateway.FileConfig{Path: f.file, Every: f.every, Log: log})
		if err != nil {
			return nil, closing, nil, fmt.Errorf("workers-file: %w", err)
		}
		return file, closing, nil, nil
	case f.dns != "":
		source, err = f.openNames(log)
		return source, closing, nil, err
	case f.url != "":
		return f.openURL(log)
	case len(f.control.All) > 0:
		return f.openControl(cell, log)
	}
	return nil, closing, nil, fmt.Errorf("workers-file: there is no source of workers: %w", cellway.ErrInvalid)
}

func (f *workersFrom) openNames(log *slog.Logger) (gateway.Source, error) {
	host, port, err := f.name()
	if err != nil {
		return nil, fmt.Errorf("workers-dns: %w: %w", err, cellway.ErrInvalid)
	}
	cfg := gateway.NamesConfig{Name: host, Port: port, Scheme: f.scheme, Size: f.size, Every: f.every, ForgetAfter: serving.OrNone(f.forget), Keep: f.keep, Log: log}
	if f.saltFile != "" {
		b, err := regular.Read(f.saltFile, maxSalt)
		if err != nil {
			return nil, fmt.Errorf("hand-salt-file: %w", err)
		}
		cfg.Salt = strings.TrimSpace(string(b))
	}
	names, err := gateway.NewNames(cfg)
	if err != nil {
		return nil, fmt.Errorf("workers-dns: %w", err)
	}
	return names, nil
}

func (f *workersFrom) openURL(log *slog.Logger) (source gateway.Source, closing func(), doubts []error, err error) {
	creds, err := f.credentials()
	if err != nil {
		return nil, func() {}, nil, fmt.Errorf("workers-url: %w", err)
	}
	if f.token != "" && feed.InTheClear(f.url) {
		doubts = append(doubts, fmt.Errorf("workers-url: the token goes to %s in the clear, where whoever stands between can read it; use https://", f.url))
	}
	list, err := gateway.NewURL(gateway.URLConfig{URL: f.url, Every: f.every, Keep: f.keep, Client: asking(creds), Log: log,
		Authorize: func(r *http.Request) error { r.Header.Set("User-Agent", "cellway-gateway"); return nil }})
	if err != nil {
		creds.Close()
		return nil, func() {}, nil, fmt.Errorf("workers-url: %w", err)
	}
	return list, creds.Close, doubts, nil
}

func (f *workersFrom) openControl(cell cellway.CellID, log *slog.Logger) (source gateway.Source, closing func(), doubts []error, err error) {
	creds, err := f.credentials()
	if err != nil {
		return nil, func() {}, nil, fmt.Errorf("workers-control: %w", err)
	}
	for _, at := range f.control.All {
		if feed.InTheClear(at) {
			doubts = append(doubts, fmt.Errorf("workers-control: the salt of hands comes from %s in the clear, where whoever stands between can read it, and the token if there is one; use https://", at))
		}
	}
	list, err := gateway.NewControl(gateway.ControlConfig{URLs: f.control.All, Cell: cell, Every: f.every, Keep: f.keep, Client: asking(creds), Log: log})
	if err != nil {
		creds.Close()
		return nil, func() {}, nil, fmt.Errorf("workers-control: %w", err)
	}
	return list, creds.Close, doubts, nil
}

// credentials are what the gateway shows to those who have its list.
func (f *workersFrom) credentials() (*feed.Credentials, error) {
	return feed.NewCredentials(feed.CredentialsConfig{TokenFile: f.token, CAFile: f.ca, CertFile: f.cert, KeyFile: f.key})
}

// asking is a client that follows no redirects: neither a list nor a token is meant
// for anybody else.
func asking(creds *feed.Credentials) *http.Client {
	return &http.Client{Transport: creds, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// checkKeep sees that the last good list has a folder: without one it could not
// be kept, and that would be noticed on a bad day only.
func (f *workersFrom) checkKeep() error {
	if f.keep == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(f.keep))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("workers-keep: the last good list is kept in %s, whose folder is not there; make it, or name another file with --workers-keep FILE: %w", f.keep, cellway.ErrNotFound)
	case err != nil:
		return fmt.Errorf("workers-keep: the folder of %s: %w; name a file with --workers-keep FILE", f.keep, err)
	case !info.IsDir():
		return fmt.Errorf("workers-keep: %s is no folder; name another file with --workers-keep FILE: %w", filepath.Dir(f.keep), cellway.ErrInvalid)
	}
	if info, err := os.Stat(f.keep); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("workers-keep: %s is no file; name another with --workers-keep FILE: %w", f.keep, fs.ErrInvalid)
	}
	return nil
}
