package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// maxAnswer bounds a JSON answer in bytes.
const maxAnswer = 256 << 20

// A Write says how a record is written. The zero Write creates.
type Write struct {
	// Revision is what was read of the record. Zero means that it does not
	// exist yet: the write creates it or fails with [cellway.ErrExists].
	Revision cellway.Revision

	// DryRun has everything checked and nothing stored.
	DryRun bool

	// Confirm is the digest in a refusal by the gate, to confirm it.
	Confirm string

	// Wait is how long the answer may wait until every live router's map
	// contains the change. Zero means not at all.
	Wait time.Duration

	// Reason is for the journal. Acts that take a reason of their own, as a drain
	// does, don't look at it.
	Reason string

	// IdempotencyKey makes a creation by POST safe to repeat. If empty, one is
	// drawn for each call.
	IdempotencyKey string
}

func (w Write) query() url.Values {
	q := url.Values{}
	if w.DryRun {
		q.Set("dry_run", "true")
	}
	if w.Confirm != "" {
		q.Set("confirm", w.Confirm)
	}
	if w.Wait > 0 {
		q.Set("wait", "routers")
		q.Set("timeout", w.Wait.String())
	}
	return q
}

// reasoned is query with the reason.
func (w Write) reasoned() url.Values {
	q := w.query()
	if w.Reason != "" {
		q.Set("reason", w.Reason)
	}
	return q
}

// remove returns the request that removes what has no revision.
func (w Write) remove(path string) request {
	q := url.Values{}
	if w.DryRun {
		q.Set("dry_run", "true")
	}
	if w.Reason != "" {
		q.Set("reason", w.Reason)
	}
	return request{method: http.MethodDelete, path: path, query: q}
}

// record returns the request that writes the record at path.
func (w Write) record(method, path string, in, out any) request {
	h := http.Header{}
	if w.Revision == 0 {
		h.Set("If-None-Match", "*")
	} else {
		h.Set("If-Match", w.match())
	}
	return request{method: method, path: path, query: w.reasoned(), header: h, in: in, out: out, wait: w.Wait}
}

func (w Write) match() string { return `"` + strconv.FormatUint(uint64(w.Revision), 10) + `"` }

// act returns the request that acts on something: whatever its revision, or at
// the one in w.
func (w Write) act(path string, in, out any) request {
	h := http.Header{}
	if w.Revision != 0 {
		h.Set("If-Match", w.match())
	}
	if w.IdempotencyKey != "" {
		h.Set("Idempotency-Key", w.IdempotencyKey)
	}
	return request{method: http.MethodPost, path: path, query: w.query(), header: h, in: in, out: out, wait: w.Wait}
}

// A request is one call of the API. path is escaped already.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	in, out      any           // JSON; nil for none
	wait         time.Duration // that the server may take on purpose
	stream       bool          // the caller reads the body, however long it takes
	accept       string        // if not JSON
}

// repeatable reports whether r can do no harm when it arrives twice.
func (r request) repeatable() bool {
	return r.method == http.MethodGet || r.header.Get("Idempotency-Key") != ""
}

// get reads path into out.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, request{method: http.MethodGet, path: path, query: query, out: out})
}

// call performs r and decodes its answer.
func (c *Client) call(ctx context.Context, r request) error {
	resp, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer drop(resp.Body)
	if r.out == nil {
		return c.bare(r, resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		err = decode(raw, r.out)
	}
	why, odd := errors.AsType[strange](err)
	switch {
	case err == nil:
		return nil
	case odd:
		return c.foreign(r, resp, why, raw)
	case ctx.Err() != nil:
		return r.cut(ctx, true)
	}
	return fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, r.lost(err))
}

// cut is the error of a request that its caller ended. sent reports whether it
// may have reached the server.
func (r request) cut(ctx context.Context, sent bool) error {
	if sent {
		return r.lost(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// lost marks err, unless r may be repeated anyway.
func (r request) lost(err error) error {
	if r.method == http.MethodGet {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// drop lets the connection be used again.
func drop(body io.ReadCloser) {
	io.CopyN(io.Discard, body, 64<<10)
	body.Close()
}

// do sends r, again where that is safe, and returns an answer that is a
// success. The caller closes its body.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	var body []byte
	if r.in != nil {
		var err error
		if body, err = json.Marshal(r.in); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
	renewed := false
	maybe := false // an attempt before this one may have taken effect
	for attempt := 0; ; attempt++ {
		token := c.bearer()
		resp, sent, err := c.send(ctx, r, body, token)
		sent = sent || maybe && r.method != http.MethodGet
		again, delay := false, time.Duration(0)
		switch {
		case ctx.Err() != nil:
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", r.method, r.path, r.cut(ctx, sent))
			}
		case err != nil:
			again = r.repeatable() || !sent
			if maybe = sent; sent {
				err = fmt.Errorf("%s %s: %w", r.method, r.path, r.lost(err))
			} else {
				err = c.unreachable(err)
			}
		case resp.StatusCode == http.StatusUnauthorized && !renewed && c.renewed(token):
			// Refused before anything happened; the new token may be tried at once.
			drop(resp.Body)
			renewed = true
			continue
		case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
			delay = retryAfter(resp)
			_, err = c.success(resp, r)
			resp = nil
			maybe = maybe || errors.Is(err, ErrUnanswered)
			// What is not ready waits for a person, as a fleet without a map does.
			again = r.repeatable() && !errors.Is(err, cellway.ErrNotReady)
		}
		if !again || attempt >= c.retries {
			if err != nil {
				return nil, err
			}
			return c.success(resp, r)
		}
		if err := sleep(ctx, backoff(attempt, delay)); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, r.cut(ctx, maybe))
		}
	}
}

// send makes one attempt. sent reports whether the request may have reached
// the server.
func (c *Client) send(ctx context.Context, r request, body []byte, token string) (resp *http.Response, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	slow := fmt.Errorf("no answer within %v", c.timeout+r.wait)
	timer := time.AfterFunc(c.timeout+r.wait, func() { cancel(slow) })
	var out atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { out.Store(true) }})

	u := *c.base
	u.RawPath = c.base.EscapedPath() + r.path[1:]
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, false, err
	}
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, r.header)
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept", "application/json, "+api.ProblemType)
	if r.accept != "" {
		req.Header.Set("Accept", r.accept+", "+api.ProblemType)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err = c.http.Do(req)
	if err != nil {
		timer.Stop()
		cause := context.Cause(ctx)
		cancel(nil)
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		if cause == slow {
			err = slow
		}
		return nil, out.Load(), err
	}
	if r.stream {
		timer.Stop()
	}
	late := func() bool { return context.Cause(ctx) == slow }
	resp.Body = &answerBody{resp.Body, slow, late, func() { timer.Stop(); cancel(nil) }}
	return resp, true, nil
}

// An answerBody ends the attempt's context when the answer has been read. If that
// takes too long, its error is slow.
type answerBody struct {
	io.ReadCloser
	slow error
	late func() bool
	end  func()
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.late() {
		err = b.slow
	}
	return n, err
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// success returns resp, or the error that it is.
func (c *Client) success(resp *http.Response, r request) (*http.Response, error) {
	if resp.StatusCode < 300 || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer drop(resp.Body)
	e := &Error{Op: r.method + " " + r.path}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	e.answeredBy(c.URL(), resp, text)
	// What is not ready refuses before anything happens. Any other fault, and
	// that of a proxy, may have come after.
	e.unsure = e.Status >= 500 && e.Code != api.CodeNotReady && r.method != http.MethodGet && r.query.Get("dry_run") == ""
	return nil, e
}

func retryAfter(resp *http.Response) time.Duration {
	s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(s)*time.Second, 10*time.Second)
}

// backoff spreads attempts over 100 ms, 200 ms, 400 ms… from half of each, and
// never below least.
func backoff(attempt int, least time.Duration) time.Duration {
	d := 100 * time.Millisecond << min(attempt, 6)
	return max(least, d/2+rand.N(d/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
