package client

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/routemap"
)

// MapStatus tells of the newest published map and how far routers are.
func (c *Client) MapStatus(ctx context.Context) (out api.MapStatus, err error) {
	return out, c.get(ctx, "/v1/map", nil, &out)
}

// Manifest waits until a version above after is published, at most for wait,
// and returns its manifest; nil if none came. With after 0 it does not wait.
// The signatures are not verified: see [routemap.Keyring].
func (c *Client) Manifest(ctx context.Context, after cellway.Version, wait time.Duration) (*routemap.Manifest, error) {
	r := request{method: http.MethodGet, path: "/v1/map/manifest", accept: api.ManifestType}
	if after != 0 {
		r.query = url.Values{"after": {after.String()}, "timeout": {wait.String()}}
		r.wait = wait
	}
	raw, err := c.bytes(ctx, r, routemap.MaxManifest)
	if err != nil || raw == nil {
		return nil, err
	}
	return routemap.DecodeManifest(raw)
}

// Part returns the part of a map with that digest.
func (c *Client) Part(ctx context.Context, part routemap.Part) ([]byte, error) {
	r := request{method: http.MethodGet, path: "/v1/map/parts/" + part.Digest.String(), accept: api.PartType, stream: true}
	raw, err := c.bytes(ctx, r, int64(part.Size))
	if err != nil {
		return nil, err
	}
	if got := routemap.Digest(sha256.Sum256(raw)); got != part.Digest {
		return nil, fmt.Errorf("part %v came as %v: %w", part.Digest, got, routemap.ErrDigest)
	}
	return raw, nil
}

// Versions lists the versions that are kept, newest first.
func (c *Client) Versions(ctx context.Context) iter.Seq2[api.MapVersion, error] {
	return list[api.MapVersion](ctx, c, "/v1/map/versions", nil)
}

// Version returns a kept version whole, the newest for 0. Signatures are not
// verified: see [routemap.Version.Open].
func (c *Client) Version(ctx context.Context, v cellway.Version) (routemap.Version, error) {
	name := "newest"
	if v != 0 {
		name = v.String()
	}
	r := request{method: http.MethodGet, path: "/v1/map/versions/" + name, accept: api.ArchiveType, stream: true}
	resp, err := c.do(ctx, r)
	if err != nil {
		return routemap.Version{}, err
	}
	defer drop(resp.Body)
	if err := c.ofMedia(r, resp); err != nil {
		return routemap.Version{}, err
	}
	return routemap.ReadArchive(resp.Body)
}

// MapContent returns a kept version in plain form, the newest for 0.
func (c *Client) MapContent(ctx context.Context, v cellway.Version) (out routemap.Content, err error) {
	q := url.Values{}
	if v != 0 {
		q.Set("version", v.String())
	}
	return out, c.call(ctx, request{method: http.MethodGet, path: "/v1/map/content", query: q, out: &out, stream: true})
}

// MapDiff tells what differs between two kept versions; 0 is the newest.
func (c *Client) MapDiff(ctx context.Context, from, to cellway.Version) (out api.MapDiff, err error) {
	q := url.Values{"from": {from.String()}}
	if to != 0 {
		q.Set("to", to.String())
	}
	return out, c.get(ctx, "/v1/map/diff", q, &out)
}

// Rollback publishes a new version with the content of an older one.
func (c *Client) Rollback(ctx context.Context, to cellway.Version, reason string, w Write) (out api.RollbackChange, err error) {
	return out, c.call(ctx, w.act("/v1/map/rollback", api.RollbackRequest{Version: to, Reason: reason}, &out))
}

// Explain tells step by step how the newest map answers key.
func (c *Client) Explain(ctx context.Context, key cellway.Key) (out api.Explanation, err error) {
	return out, c.get(ctx, "/v1/explain", url.Values{"key": {string(key)}}, &out)
}

// Locate returns the cell that the newest map names for key.
func (c *Client) Locate(ctx context.Context, key cellway.Key) (out api.Location, err error) {
	return out, c.get(ctx, "/v1/locate", url.Values{"key": {string(key)}}, &out)
}

// bytes returns the body of an answer, nil if it has none.
func (c *Client) bytes(ctx context.Context, r request, most int64) ([]byte, error) {
	resp, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer drop(resp.Body)
	if resp.StatusCode == http.StatusNoContent {
		return nil, c.bare(r, resp)
	}
	if r.accept != api.PartType { // a part is known by its digest
		if err := c.ofMedia(r, resp); err != nil {
			return nil, err
		}
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	case int64(len(raw)) > most:
		return nil, fmt.Errorf("%s %s: the answer has more than %d bytes: %w", r.method, r.path, most, routemap.ErrFormat)
	}
	return raw, nil
}
