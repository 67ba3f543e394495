package client

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// TenantFilter narrows a list of tenants. The zero TenantFilter takes all.
type TenantFilter struct {
	Cell cellway.CellID
	Tier string
}

// Tenants lists registered tenants by id.
func (c *Client) Tenants(ctx context.Context, f TenantFilter) iter.Seq2[api.Tenant, error] {
	q := url.Values{}
	if f.Cell != "" {
		q.Set("cell", string(f.Cell))
	}
	if f.Tier != "" {
		q.Set("tier", f.Tier)
	}
	return list[api.Tenant](ctx, c, "/v1/tenants", q)
}

// Tenant returns one tenant.
func (c *Client) Tenant(ctx context.Context, id cellway.TenantID) (out api.Tenant, err error) {
	return out, c.get(ctx, tenantPath(id), nil, &out)
}

// PutTenant creates and places a tenant, or changes its settings.
func (c *Client) PutTenant(ctx context.Context, id cellway.TenantID, s api.TenantSettings, w Write) (out api.TenantChange, err error) {
	return out, c.call(ctx, w.record(http.MethodPut, tenantPath(id), s, &out))
}

// CreateTenant creates and places a tenant. Unlike PutTenant it may be repeated
// with the same key without knowing whether it happened, and gives the same
// answer.
func (c *Client) CreateTenant(ctx context.Context, id cellway.TenantID, s api.TenantSettings, w Write) (out api.TenantChange, err error) {
	if w.IdempotencyKey == "" {
		w.IdempotencyKey = rand.Text()
	}
	r := w.act("/v1/tenants", api.TenantCreation{ID: id, TenantSettings: s}, &out)
	r.query = w.reasoned()
	return out, c.call(ctx, r)
}

// UpdateTenant reads a tenant, has edit change its settings and writes them.
func (c *Client) UpdateTenant(ctx context.Context, id cellway.TenantID, edit func(*api.TenantSettings) error, w Write) (api.TenantChange, error) {
	return update(w, func(w Write) (out api.TenantChange, err error) {
		t, err := c.Tenant(ctx, id)
		if err == nil {
			err = edit(&t.TenantSettings)
		}
		if err != nil {
			return out, err
		}
		w.Revision = t.Revision
		return c.PutTenant(ctx, id, t.TenantSettings, w)
	})
}

// DeleteTenant deletes a tenant at the revision in w, and leaves a tombstone.
func (c *Client) DeleteTenant(ctx context.Context, id cellway.TenantID, w Write) (out api.TenantChange, err error) {
	return out, c.call(ctx, w.record(http.MethodDelete, tenantPath(id), nil, &out))
}

// UndeleteTenant brings a tenant that was deleted by mistake, at the revision in
// w, back to the cell that has its data. Its overrides don't come back.
func (c *Client) UndeleteTenant(ctx context.Context, id cellway.TenantID, reason string, w Write) (out api.TenantChange, err error) {
	return out, c.call(ctx, w.act(tenantPath(id)+"/undelete", api.UndeleteRequest{Reason: reason}, &out))
}

// Overrides lists overrides of a kind by key; with an empty kind, all.
func (c *Client) Overrides(ctx context.Context, kind string) iter.Seq2[api.Override, error] {
	q := url.Values{}
	if kind != "" {
		q.Set("kind", kind)
	}
	return list[api.Override](ctx, c, "/v1/overrides", q)
}

// Override returns one override.
func (c *Client) Override(ctx context.Context, key cellway.Key) (out api.Override, err error) {
	return out, c.get(ctx, overridePath(key), nil, &out)
}

// PutOverride sets an override.
func (c *Client) PutOverride(ctx context.Context, key cellway.Key, s api.OverrideSettings, w Write) (out api.OverrideChange, err error) {
	return out, c.call(ctx, w.record(http.MethodPut, overridePath(key), s, &out))
}

// RemoveOverride removes an override at the revision in w.
func (c *Client) RemoveOverride(ctx context.Context, key cellway.Key, w Write) (out api.OverrideChange, err error) {
	return out, c.call(ctx, w.record(http.MethodDelete, overridePath(key), nil, &out))
}

// Aliases lists aliases by name.
func (c *Client) Aliases(ctx context.Context) iter.Seq2[api.Alias, error] {
	return list[api.Alias](ctx, c, "/v1/aliases", nil)
}

// Alias returns one alias.
func (c *Client) Alias(ctx context.Context, name cellway.TenantID) (out api.Alias, err error) {
	return out, c.get(ctx, aliasPath(name), nil, &out)
}

// PutAlias sets an alias.
func (c *Client) PutAlias(ctx context.Context, name cellway.TenantID, s api.AliasSettings, w Write) (out api.AliasChange, err error) {
	return out, c.call(ctx, w.record(http.MethodPut, aliasPath(name), s, &out))
}

// RemoveAlias removes an alias at the revision in w, and leaves a tombstone.
func (c *Client) RemoveAlias(ctx context.Context, name cellway.TenantID, w Write) (out api.AliasChange, err error) {
	return out, c.call(ctx, w.record(http.MethodDelete, aliasPath(name), nil, &out))
}

func tenantPath(id cellway.TenantID) string  { return "/v1/tenants/" + segment(string(id)) }
func aliasPath(name cellway.TenantID) string { return "/v1/aliases/" + segment(string(name)) }

// overridePath keeps the slash of a composite key.
func overridePath(key cellway.Key) string {
	tenant, part, composite := strings.Cut(string(key), "/")
	path := "/v1/overrides/" + segment(tenant)
	if composite {
		path += "/" + segment(part)
	}
	return path
}

// segment escapes s for a path. A name of dots alone would be taken for a step
// through folders, so its dots are escaped too.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
