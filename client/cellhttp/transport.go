package cellhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// RoundTrip sends req to the cell of its key.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	key := t.cfg.Key(req)
	if err := key.Validate(); err != nil {
		shut(req)
		return nil, fmt.Errorf("request has no usable key: set its header %s, or Config.Key: %w", TenantHeader, err)
	}
	c := &call{t: t, req: req, k: t.keys.get(key)}
	p := c.k.place.Load()
	var cause error
	if p == nil {
		p, cause = t.first(req.Context(), c.k)
	} else if t.cfg.Locate != nil {
		t.check(c.k)
	} else if resp := c.recheck(); resp != nil {
		return resp, nil
	}
	if p == nil {
		if t.router == nil || req.Context().Err() != nil {
			shut(req)
			if cause == nil {
				cause = cellway.ErrNotReady
			}
			return nil, fmt.Errorf("the cell of key %s is not known, and there is no router to ask: %w", key, cause)
		}
		resp, err := c.viaRouter()
		return resp, join(err, cause)
	}
	return c.direct(p)
}

// A call is one request of the caller's.
type call struct {
	t        *Transport
	req      *http.Request
	k        *known
	sends    int  // attempts so far
	followed bool // to another place
}

// send sends the request to u. unsent reports that it never left this machine:
// that Base has told of looking for a connection, and of finding none.
func (c *call) send(u *url.URL) (resp *http.Response, unsent bool, err error) {
	var sought, got atomic.Bool
	ctx := httptrace.WithClientTrace(c.req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { sought.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { got.Store(true) },
	})
	out := c.req.WithContext(ctx)
	to := *c.req.URL
	to.Scheme, to.Host = u.Scheme, u.Host
	out.URL = &to
	if out.Host == "" {
		out.Host = c.req.URL.Host
	}
	if c.sends++; c.sends > 1 && c.req.Body != nil && c.req.Body != http.NoBody {
		if out.Body, err = c.req.GetBody(); err != nil {
			return nil, true, err
		}
	}
	resp, err = c.t.cfg.Base.RoundTrip(out)
	if err == nil {
		resp.Request = c.req
	}
	return resp, sought.Load() && !got.Load(), err
}

// again reports whether the request can be sent once more.
func (c *call) again() bool {
	r := c.req
	if r.Context().Err() != nil {
		return false
	}
	return c.sends == 0 || r.Body == nil || r.Body == http.NoBody ||
		r.GetBody != nil && r.ContentLength >= 0 && r.ContentLength <= c.t.cfg.ReplayBytes
}

// direct sends the request to p: to its next endpoint, and to another one if
// nothing was sent.
func (c *call) direct(p *settled) (*http.Response, error) {
	c.t.figures.direct.Add(1)
	n := len(p.urls)
	turn := int(c.k.turn.Add(1))
	var errs []error
	for i := range n {
		resp, unsent, err := c.send(p.urls[(turn+i)%n])
		if err == nil {
			return c.accept(p, resp)
		}
		errs = append(errs, err)
		if !unsent || !c.again() {
			return nil, fmt.Errorf("cell %s: %w", p.Cell, errors.Join(errs...))
		}
	}
	// None is there. Perhaps the cell has other endpoints by now, which the
	// router knows.
	c.k.due.Store(0)
	if c.t.router != nil && !c.followed {
		c.followed = true
		resp, err := c.viaRouter()
		return resp, join(err, errors.Join(errs...))
	}
	return nil, fmt.Errorf("cell %s: no endpoint can be reached: %w", p.Cell, errors.Join(errs...))
}

// accept returns resp, or follows it if it is a guard's refusal.
func (c *call) accept(p *settled, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode != http.StatusMisdirectedRequest || resp.Header.Get(EpochHeader) == "" {
		return resp, nil
	}
	next := c.elsewhere(p, resp.Header)
	if c.followed || !c.again() {
		return resp, nil
	}
	c.followed = true
	if next != nil {
		drop(resp)
		return c.direct(next)
	}
	if c.t.router != nil {
		drop(resp)
		return c.viaRouter()
	}
	return resp, nil
}

// elsewhere returns where the key is according to a refusal by p, or to the
// control plane; nil if nothing new comes out. The header gives a name only:
// where that cell listens is told by those who told it before.
func (c *call) elsewhere(p *settled, h http.Header) *settled {
	t, k := c.t, c.k
	if now := k.place.Load(); now != p {
		return now // others have found out meanwhile
	}
	epoch, _ := cellway.ParseEpoch(h.Get(EpochHeader))
	moved := cellway.CellID(h.Get(MovedHeader))
	known := moved.Validate() == nil && moved != p.Cell && epoch >= p.Epoch && t.settle(k, moved, epoch)
	if !known {
		t.refused(c.req.Context(), k, p)
	}
	if now := k.place.Load(); now != p {
		return now
	}
	return nil
}

// viaRouter sends the request through the router and learns from the answer.
func (c *call) viaRouter() (*http.Response, error) {
	c.t.figures.routed.Add(1)
	resp, _, err := c.send(c.t.router)
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	// What the router answers itself names no cell either.
	if !c.t.heed(c.k, resp.Header) && c.t.cfg.Locate == nil && resp.StatusCode < http.StatusBadRequest {
		c.t.cantLearn(errNamesNoCell)
	}
	return resp, nil
}

// recheck sends a request through the router if it is time to look again and
// it can do no harm twice. It returns nil if there is no answer of a cell:
// then the request goes directly, to where the key is known to be.
func (c *call) recheck() *http.Response {
	t, k := c.t, c.k
	if c.req.Method != http.MethodGet && c.req.Method != http.MethodHead || c.req.Body != nil && c.req.Body != http.NoBody {
		return nil
	}
	if t.now() < k.due.Load() || !k.checking.CompareAndSwap(false, true) {
		return nil
	}
	defer k.checking.Store(false)
	k.due.Store(t.now() + int64(around(t.cfg.Recheck/10)))
	ctx, cancel := context.WithCancelCause(c.req.Context())
	timer := time.AfterFunc(t.cfg.LocateTimeout, func() { cancel(errNoRouter) })
	asked := &call{t: t, req: c.req.WithContext(ctx), k: k}
	t.figures.routed.Add(1)
	resp, _, err := asked.send(t.router)
	if stopped := timer.Stop(); err == nil && stopped {
		if t.heed(k, resp.Header) {
			resp.Body = &body{resp.Body, cancel}
			resp.Request = c.req
			return resp
		}
		drop(resp)
	} else if err == nil {
		resp.Body.Close()
	}
	cancel(nil)
	t.stays(k, err)
	return nil
}

// errNoRouter ends a look through the router that takes too long.
var errNoRouter = errors.New("router did not answer in time")

// A body ends its request's context when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// drop gives an answer up, and lets its connection be used again if it is short.
func drop(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}

func shut(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// join adds the cause to err, if there is an err.
func join(err, cause error) error {
	if err == nil || cause == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", err, cause)
}
