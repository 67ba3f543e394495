package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/routemap"
)

// An HTTPConfig says how to reach one control plane.
type HTTPConfig struct {
	URL  string       // http://host:port or https://host:port
	Auth *Credentials // shared by sources; if nil, none are shown

	// Wait is how long the control plane may hold a long poll. If zero, 30 s.
	Wait time.Duration
	// Timeout bounds everything but the holding: each answer's head, and each
	// silence within a part. If zero, 10 s.
	Timeout time.Duration
}

// An HTTP is a control plane that maps come from and reports go to.
type HTTP struct {
	base    string
	auth    *Credentials
	wait    time.Duration
	timeout time.Duration
}

// NewHTTP returns a source. The error wraps [cellway.ErrInvalid] if the URL
// can't be used. Nothing is connected yet.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("source %.200q is no URL: %w", cfg.URL, cellway.ErrInvalid)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("source %q must be like https://control.example:7700: %w", u.Redacted(), cellway.ErrInvalid)
	}
	h := &HTTP{base: strings.TrimRight(u.String(), "/"), auth: cfg.Auth, wait: cfg.Wait, timeout: cfg.Timeout}
	if h.auth == nil {
		if h.auth, err = NewCredentials(CredentialsConfig{}); err != nil {
			return nil, err
		}
	}
	if h.wait == 0 {
		h.wait = 30 * time.Second
	}
	if h.timeout == 0 {
		h.timeout = 10 * time.Second
	}
	return h, nil
}

func (h *HTTP) String() string { return h.base }

// errStatus is wrapped by the error of an answer that is no success.
var errStatus = errors.New("unexpected answer")

// do sends a request that is answered within limit, and returns the answer if
// its status is 200 or 204.
func (h *HTTP) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client, err := h.auth.prepare(req)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // its URL is in our own message
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("%s %s%s: %w", method, h.base, path, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return resp, nil
	}
	defer resp.Body.Close()
	why := problem(resp)
	err = errStatus
	if why == "" && (resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusGatewayTimeout) {
		err = errGateway
	}
	return nil, &answerError{fmt.Sprintf("%s %s%s: %s%s", method, h.base, path, resp.Status, why), resp.Status, err}
}

// An answerError is an answer that is no success. Its kind adds nothing for
// people.
type answerError struct {
	text   string
	status string
	kind   error
}

func (e *answerError) Error() string { return e.text }

func (e *answerError) Unwrap() error { return e.kind }

// errGateway is wrapped by the error of an answer that comes from what stands
// before a control plane, and says that this is not there.
var errGateway = errors.New("no control plane behind it")

// outOfReach marks the error of a request that nobody answered. What comes from a
// control plane that is there is none, such as a certificate that is not trusted.
func outOfReach(err error) error {
	nobody := errors.Is(err, errGateway) || errors.Is(err, errTooSlow) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		nobody = true
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && (e.Op == "dial" || e.Op == "read" || e.Op == "write" || e.Op == "proxyconnect") {
		nobody = true
	}
	if nobody {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// brokeOff marks the error of an answer that had begun. It is the cause of ctx's
// end if that is why.
func brokeOff(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrCut, err)
}

// problem reads a short reason out of an answer, if it has one. Of a router that is
// not known it says what that one lacks, as the control plane speaks to people there.
func problem(resp *http.Response) string {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	var p api.Problem
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Code == "" {
		return ""
	}
	if p.Code == api.CodeUnauthenticated {
		if resp.Request.Header.Get("Authorization") == "" {
			return ": it wants a token: set source-token"
		}
		return ": it refuses the token of source-token (" + shown(p.Detail, 400) + ")"
	}
	return fmt.Sprintf(" (%s: %s)", shown(p.Code, 40), shown(p.Detail, 400))
}

// shown is what somebody else has said, as one line of at most that many characters.
func shown(text string, most int) string {
	out := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if r := []rune(out); len(r) > most {
		out = string(r[:most-1]) + "…"
	}
	return out
}

var errTooSlow = errors.New("the source is too slow")

// Manifest asks for the newest manifest; if after is not 0, it has the control
// plane hold the answer until there is a newer one.
func (h *HTTP) Manifest(ctx context.Context, after cellway.Version) ([]byte, error) {
	path, limit := "/v1/map/manifest", h.timeout
	if after != 0 {
		path += "?after=" + after.String() + "&timeout=" + h.wait.String()
		limit += h.wait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooSlow)
	defer cancel()
	resp, err := h.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, outOfReach(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		if after == 0 {
			return nil, fmt.Errorf("%s has no map: %w", h.base, cellway.ErrNotReady)
		}
		return nil, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, routemap.MaxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("manifest from %s: %w", h.base, brokeOff(ctx, err))
	}
	return raw, nil
}

// Part fetches a part. However large it is, only silence ends it.
func (h *HTTP) Part(ctx context.Context, p routemap.Part) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(h.timeout, func() { cancel(errTooSlow) })
	defer silence.Stop()
	resp, err := h.do(ctx, http.MethodGet, "/v1/map/parts/"+p.Digest.String(), nil)
	if err != nil {
		return nil, outOfReach(err)
	}
	defer resp.Body.Close()
	short := func(n int) error {
		return fmt.Errorf("part %v from %s has %d bytes, the manifest says %d: %w", p.Digest, h.base, n, p.Size, ErrShort)
	}
	if resp.ContentLength >= 0 && uint64(resp.ContentLength) != p.Size {
		return nil, short(int(resp.ContentLength))
	}
	b := make([]byte, p.Size)
	n := 0
	for n < len(b) {
		m, err := resp.Body.Read(b[n:])
		n += m
		silence.Reset(h.timeout)
		if err == io.EOF && n < len(b) {
			return nil, short(n)
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("part %v from %s, after %d of %d bytes: %w", p.Digest, h.base, n, p.Size, brokeOff(ctx, err))
		}
	}
	if extra, _ := resp.Body.Read(make([]byte, 1)); extra > 0 {
		return nil, short(n + extra)
	}
	return b, nil
}

// Report tells the control plane how the router fares, and renews its lease.
func (h *HTTP) Report(ctx context.Context, id string, r api.RouterReport) (api.Lease, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, errTooSlow)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return api.Lease{}, err
	}
	resp, err := h.do(ctx, http.MethodPost, "/v1/routers/"+url.PathEscape(id), body)
	if err != nil {
		return api.Lease{}, err
	}
	defer resp.Body.Close()
	var lease api.Lease
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&lease); err != nil {
			return api.Lease{}, fmt.Errorf("answer of %s to a report: %w", h.base, err)
		}
		if lease.LeaseMS <= 0 {
			return api.Lease{}, fmt.Errorf("%s is not a control plane: its answer to a report grants no lease", h.base)
		}
	}
	return lease, nil
}
