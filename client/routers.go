package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cellway/cellway/api"
)

// Routers lists known routers by id.
func (c *Client) Routers(ctx context.Context) iter.Seq2[api.Router, error] {
	return list[api.Router](ctx, c, "/v1/routers", nil)
}

// Router returns one router.
func (c *Client) Router(ctx context.Context, id string) (out api.Router, err error) {
	return out, c.get(ctx, routerPath(id), nil, &out)
}

// ForgetRouter removes a router that is no longer there. One that is reports
// again and is known again.
func (c *Client) ForgetRouter(ctx context.Context, id string, w Write) error {
	return c.call(ctx, w.remove(routerPath(id)))
}

// Report tells the control plane what a router serves and renews its lease.
func (c *Client) Report(ctx context.Context, id string, report api.RouterReport) (out api.Lease, err error) {
	return out, c.call(ctx, request{method: http.MethodPost, path: routerPath(id), in: report, out: &out})
}

// Change tells how far a change has come.
func (c *Client) Change(ctx context.Context, id string) (out api.ChangeStatus, err error) {
	return out, c.get(ctx, "/v1/changes/"+segment(id), nil, &out)
}

// JournalFilter narrows the journal. The zero JournalFilter starts at the
// beginning and takes all.
type JournalFilter struct {
	After   uint64 // the number of the last entry that is known already
	Last    uint64 // instead of After: look at only so many, the newest
	Subject string // as in "cell/cell-002"
}

// Journal lists acts in the order in which they happened, up to the newest.
func (c *Client) Journal(ctx context.Context, f JournalFilter) iter.Seq2[api.JournalEntry, error] {
	q := url.Values{}
	if f.After > 0 {
		q.Set("after", strconv.FormatUint(f.After, 10))
	}
	if f.Last > 0 {
		q.Set("last", strconv.FormatUint(f.Last, 10))
	}
	if f.Subject != "" {
		q.Set("subject", f.Subject)
	}
	return list[api.JournalEntry](ctx, c, "/v1/journal", q)
}

// Alarms lists what a person should look at, by code.
func (c *Client) Alarms(ctx context.Context) iter.Seq2[api.Alarm, error] {
	return func(yield func(api.Alarm, error) bool) {
		var page api.Page[api.Alarm]
		if err := c.get(ctx, "/v1/alarms", nil, pageOf{&page, new(api.Alarm)}); err != nil {
			yield(api.Alarm{}, err)
			return
		}
		for _, a := range page.Items {
			if !yield(a, nil) {
				return
			}
		}
	}
}

// Tokens lists tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context) iter.Seq2[api.Token, error] {
	return list[api.Token](ctx, c, "/v1/tokens", nil)
}

// CreateToken makes a token. The answer is the only one with its secret.
func (c *Client) CreateToken(ctx context.Context, t api.TokenCreation, w Write) (out api.NewToken, err error) {
	return out, c.call(ctx, request{method: http.MethodPost, path: "/v1/tokens", query: w.reasoned(), in: t, out: &out})
}

// DeleteToken deletes a token. It is refused from then on.
func (c *Client) DeleteToken(ctx context.Context, id string, w Write) error {
	return c.call(ctx, w.remove("/v1/tokens/"+segment(id)))
}

// Backup writes a consistent copy of the store to w.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	r := request{method: http.MethodGet, path: "/v1/backup", accept: "application/octet-stream", stream: true}
	resp, err := c.do(ctx, r)
	if err != nil {
		return 0, err
	}
	defer drop(resp.Body)
	if err := c.ofMedia(r, resp); err != nil {
		return 0, err
	}
	n, err := io.Copy(w, resp.Body)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}

// ConfirmRestore says that the store's newest map is to be gone on from, after
// a restore.
func (c *Client) ConfirmRestore(ctx context.Context, r api.RestoreConfirmation) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/restore/confirm", in: r})
}

func routerPath(id string) string { return "/v1/routers/" + segment(id) }
