package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/workers"
)

// ControlConfig says which control plane keeps a cell's list of workers. URLs and
// Cell must be given.
type ControlConfig struct {
	// URLs are the addresses of the control plane: if one does not answer, the
	// next one is asked.
	URLs []string

	// Cell is the cell whose workers are asked for.
	Cell cellway.CellID

	// Every is how often they are, jittered by a tenth. If zero, 2 seconds: a
	// list that did not change is a short answer.
	Every time.Duration

	// Timeout is how long one address may take. If zero, 5 seconds.
	Timeout time.Duration

	// Keep is the file that the last good list is kept in, with its serial, for a
	// start with nobody to ask. If empty, it is kept in memory only.
	Keep string

	// Client asks, and shows who it is. If nil, one that follows no redirects.
	Client *http.Client

	// Log is told of new lists and of failures. If nil, nothing is logged.
	Log *slog.Logger
}

// A Control is a [Source] that asks the control plane. With nobody there, or an
// answer that is no good list, the last good one stays in use. So it does if the
// control plane has an older one, as after a restore from a backup: its workers may
// be gone. A list that is written after that is taken. Only [NewControl] makes
// useful ones.
type Control struct {
	poll
	cfg   ControlConfig
	urls  []*url.URL
	older atomic.Bool

	// Of Run alone.
	at    int             // of urls: the last that answered
	etag  string          // of the list in use, as the last that answered told it
	now   workers.Served  // in use; without a serial there is none
	canon json.RawMessage // of now
}

// NewControl returns a source with the list that was kept on disk, if there is one.
// It asks nobody before Run. The error wraps [cellway.ErrInvalid].
func NewControl(cfg ControlConfig) (*Control, error) {
	if err := cfg.Cell.Validate(); err != nil {
		return nil, fmt.Errorf("workers from the control plane: %w", err)
	}
	if len(cfg.URLs) == 0 {
		return nil, fmt.Errorf("workers from the control plane: give its address, as in https://control:7700: %w", cellway.ErrInvalid)
	}
	if cfg.Every < 0 || cfg.Timeout < 0 {
		return nil, fmt.Errorf("workers from the control plane: every %v, timeout %v: neither may be negative: %w", cfg.Every, cfg.Timeout, cellway.ErrInvalid)
	}
	c := &Control{}
	for _, raw := range cfg.URLs {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "":
			return nil, fmt.Errorf("control plane %.80q: give its address, as in https://control:7700: %w", raw, cellway.ErrInvalid)
		case u.User != nil:
			return nil, fmt.Errorf("control plane %s: credentials in an address end up in logs; give them otherwise: %w", u.Redacted(), cellway.ErrInvalid)
		}
		c.urls = append(c.urls, u.JoinPath("v1", "cells", string(cfg.Cell), "hands"))
	}
	cfg.Timeout = front.Span(cfg.Timeout, 5*time.Second)
	if cfg.Client == nil {
		cfg.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	c.cfg = cfg
	c.begin("", "", front.Span(cfg.Every, 2*time.Second), cfg.Log)
	c.keeper.path, c.ask = cfg.Keep, c.look
	c.form = func(*Workers) (any, error) { return c.canon, nil } // with its cell and serial
	if err := c.load(); err != nil {
		c.log.Error("starting without the kept list of workers", slog.Any("error", err))
	}
	return c, nil
}

// Older reports whether the control plane had an older list than the one in use when
// it was last asked, which is therefore not taken.
func (c *Control) Older() bool { return c.older.Load() }

// load takes the list that was kept, if there is one.
func (c *Control) load() error {
	if c.cfg.Keep == "" {
		return nil
	}
	b, err := regular.Read(c.cfg.Keep, mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the kept list of workers: %w", err)
	}
	s, w, err := c.read(b)
	if err != nil {
		return fmt.Errorf("kept list of workers %s: %w", c.cfg.Keep, err)
	}
	if c.canon, err = json.Marshal(s); err != nil {
		return err
	}
	c.now = s
	c.put(w)
	return nil
}

// read reads what the control plane answers, and what is kept of it.
func (c *Control) read(b []byte) (workers.Served, *Workers, error) {
	s, err := workers.DecodeServed(b)
	if err != nil {
		return s, nil, err
	}
	if s.Cell != c.cfg.Cell {
		return s, nil, fmt.Errorf("it has the workers of cell %s, not those of %s: %w", s.Cell, c.cfg.Cell, cellway.ErrInvalid)
	}
	w, err := ofList(s.List)
	return s, w, err
}

// look asks one address after the other until one has a good list, or says that the
// one in use is its own.
func (c *Control) look(ctx context.Context) (*Workers, error) {
	var errs []error
	older := false
	for range c.urls {
		w, err := c.fetch(ctx, c.urls[c.at])
		if err == nil {
			c.older.Store(false)
			return w, nil
		}
		older = older || errors.Is(err, errOlder)
		errs = append(errs, fmt.Errorf("workers from %s: %w", c.urls[c.at].Redacted(), err))
		c.at, c.etag = (c.at+1)%len(c.urls), ""
	}
	c.older.Store(older)
	return nil, errors.Join(errs...)
}

// errOlder says that a list is older than the one in use.
var errOlder = errors.New("what is in use stays")

// fetch asks once. A nil list is the one in use.
func (c *Control) fetch(ctx context.Context, u *url.URL) (*Workers, error) {
	b, etag, err := c.get(ctx, u)
	if b == nil || err != nil {
		return nil, err
	}
	s, w, err := c.read(b)
	if err != nil {
		return nil, err
	}
	canon, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	mend := fmt.Sprintf("see what it has by cellway cell workers list %s, then write the list as it is to be by cellway cell workers apply %s: it will be above the one in use", s.Cell, s.Cell)
	if c.cfg.Keep != "" {
		mend += fmt.Sprintf("; to go by what the control plane has instead: stop this gateway, rm %s, and start it", c.cfg.Keep)
	}
	switch {
	case s.Serial < c.now.Serial:
		return nil, fmt.Errorf("it has an older list, %v, than the one in use, %v, as after a restore from a backup; %w until a newer one is written: %s", s.Serial, c.now.Serial, errOlder, mend)
	case s.Serial == c.now.Serial && !bytes.Equal(canon, c.canon):
		return nil, fmt.Errorf("its list has the serial %v of the one in use and is another, as if it had lost that one; %w until a newer one is written: %s", s.Serial, errOlder, mend)
	}
	c.etag = etag
	if s.Serial == c.now.Serial {
		return nil, nil
	}
	c.now, c.canon = s, canon
	return w, nil
}

// headerListSerial tells the control plane which list is in use here. One that has an
// older list writes the next one above it.
const headerListSerial = "Cellway-List-Serial"

// get asks u, and returns the body of its answer: nil if that is the list in use.
func (c *Control) get(ctx context.Context, u *url.URL) (body []byte, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "cellway-gateway")
	if c.now.Serial != 0 {
		req.Header.Set(headerListSerial, c.now.Serial.String())
	}
	if c.etag != "" {
		req.Header.Set("If-None-Match", c.etag)
	}
	resp, err := c.cfg.Client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // the URL is named already
		}
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && c.etag != "" {
		return nil, c.etag, nil
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxList+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, "", refusal(resp, b)
	case err != nil:
		return nil, "", fmt.Errorf("its answer broke off: %w", err)
	case len(b) > MaxList:
		return nil, "", fmt.Errorf("its answer is longer than %d bytes: %w", MaxList, cellway.ErrInvalid)
	}
	return b, resp.Header.Get("ETag"), nil
}

// refusal is the error of an answer that is none, in the words of the control plane
// if it gave some.
func refusal(resp *http.Response, body []byte) error {
	kind, more := cellway.ErrNotReady, ""
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind, more = cellway.ErrForbidden, "; a gateway needs a token of the role cell, which is for this cell"
	case http.StatusNotFound:
		kind = cellway.ErrNotFound
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	said := ""
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		said = ": " + strings.TrimSuffix(problem.Detail, ": "+kind.Error())
	}
	return fmt.Errorf("it answered %s%s%s: %w", resp.Status, said, more, kind)
}
