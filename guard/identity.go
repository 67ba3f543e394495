package guard

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
)

// An Identity is what a router said of a request.
type Identity struct {
	Cell  cellway.CellID // this cell
	Key   cellway.Key    // what the request was routed by; "" in a fleet that passes requests through without one
	Epoch cellway.Epoch  // of the key's owner in the router's map
}

// Tenant returns the tenant that the request was routed for, or "" if it had
// no key.
func (id Identity) Tenant() cellway.TenantID { return id.Key.Tenant() }

type contextKey struct{}

func newContext(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, id)
}

// FromContext returns the identity of the request that ctx belongs to. It
// reports false for a request that no router sent.
func FromContext(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(contextKey{}).(Identity)
	return id, ok
}

// CheckTenant reports, as a [cellway.ErrForbidden], that the request of ctx was
// routed for another tenant than tenant, whom it was authenticated for. It has
// nothing to say about a request without an identity or without a key.
func CheckTenant(ctx context.Context, tenant cellway.TenantID) error {
	id, ok := FromContext(ctx)
	if !ok || id.Key == "" || id.Tenant() == tenant {
		return nil
	}
	return fmt.Errorf("authenticated for tenant %q, routed for %q: %w", tenant, id.Tenant(), cellway.ErrForbidden)
}
