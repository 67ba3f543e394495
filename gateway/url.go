package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// URLConfig says where a list of workers is served. URL must be given.
type URLConfig struct {
	// URL serves the list, in the form that a file has: see [ParseWorkers]. It
	// may answer with an ETag, and 304 when it is asked with that again.
	URL string

	// Every is how often it is asked, jittered by a tenth. If zero, 10 seconds.
	Every time.Duration

	// Timeout is how long that may take. If zero, 5 seconds.
	Timeout time.Duration

	// Keep is the file that the last good list is kept in, for a start with
	// nobody to ask. If empty, it is kept in memory only. A list that is kept there
	// from another URL is not used.
	Keep string

	// Client asks. If nil, one that follows no redirects, so that a list comes
	// from nowhere else.
	Client *http.Client

	// Authorize gives a request its credentials. If nil, it has none.
	Authorize func(*http.Request) error

	// Log is told of new lists and of failures. If nil, nothing is logged.
	Log *slog.Logger
}

// A URL is a [Source] that asks a server of HTTP. Only [NewURL] makes useful ones.
type URL struct {
	poll
	cfg  URLConfig
	etag string // of the current list; of Run alone
}

// NewURL returns a source with the list that was kept on disk, if there is one. It
// asks nobody before Run. The error wraps [cellway.ErrInvalid].
func NewURL(cfg URLConfig) (*URL, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("list of workers at %.80q: give a URL, as in https://control:7900/workers.json: %w", cfg.URL, cellway.ErrInvalid)
	}
	if u.User != nil {
		return nil, fmt.Errorf("list of workers at %s: credentials in a URL end up in logs; give them otherwise: %w", u.Redacted(), cellway.ErrInvalid)
	}
	if cfg.Every < 0 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("list of workers at %s: every %v, timeout %v: neither may be negative: %w", u, cfg.Every, cfg.Timeout, cellway.ErrInvalid)
	}
	cfg.Timeout = front.Span(cfg.Timeout, 5*time.Second)
	if cfg.Client == nil {
		cfg.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	s := &URL{cfg: cfg}
	s.begin(cfg.Keep, cfg.URL, cfg.Every, cfg.Log)
	s.ask = s.fetch
	return s, nil
}

// fetch asks once.
func (s *URL) fetch(ctx context.Context) (*Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch list of workers: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if s.etag != "" {
		req.Header.Set("If-None-Match", s.etag)
	}
	if s.cfg.Authorize != nil {
		if err := s.cfg.Authorize(req); err != nil {
			return nil, fmt.Errorf("fetch list of workers: %w", err)
		}
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the URL is named below
		}
		return nil, fmt.Errorf("fetch list of workers from %s: %w", req.URL.Redacted(), err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && s.etag != "":
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch list of workers from %s: it answered %s: %w", req.URL.Redacted(), resp.Status, cellway.ErrNotReady)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxList+1))
	if err != nil {
		return nil, fmt.Errorf("fetch list of workers from %s: %w", req.URL.Redacted(), err)
	}
	if len(b) > MaxList {
		return nil, fmt.Errorf("fetch list of workers from %s: it is longer than %d bytes: %w", req.URL.Redacted(), MaxList, cellway.ErrInvalid)
	}
	w, err := ParseWorkers(b)
	if err != nil {
		return nil, fmt.Errorf("fetch list of workers from %s: %w", req.URL.Redacted(), err)
	}
	s.etag = resp.Header.Get("ETag")
	if old := s.Current(); old != nil && same(old, w) {
		return nil, nil
	}
	return w, nil
}

// same reports whether two lists are equal.
func same(a, b *Workers) bool {
	if a.Version() != b.Version() || len(a.endpoints) != len(b.endpoints) {
		return false
	}
	for id, at := range a.endpoints {
		if other := b.endpoints[id]; other == nil || *other != *at {
			return false
		}
	}
	return true
}
