package gatewayd

import (
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/strictjson"
)

// maxTenantLimits is the size in bytes of the largest file of limits.
const maxTenantLimits = 16 << 20

// An own is what the file says of one tenant. What is left out is as for all
// others.
type own struct {
	Rate     *float64 `json:"rate"`
	Burst    *float64 `json:"burst"`
	InFlight *int     `json:"in_flight"`
	Tunnels  *int     `json:"tunnels"`
}

// limits are those of a tenant to whom no other ones apply.
func (s *settings) limits() gateway.TenantLimits {
	return gateway.TenantLimits{Rate: s.tenantRate, Burst: s.tenantBurst, InFlight: orNone(s.tenantInFlight), Tunnels: orNone(s.tenantTunnels)}
}

// readTenantLimits reads the file of tenant-limits: an object with a member for
// each tenant, such as {"acme": {"rate": 50, "in_flight": 512}}. 0 is no limit.
func readTenantLimits(path string, usual gateway.TenantLimits) (map[cellway.TenantID]gateway.TenantLimits, error) {
	b, err := regular.Read(path, maxTenantLimits)
	if err != nil {
		return nil, err
	}
	all, err := parseTenantLimits(b, usual)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

func parseTenantLimits(b []byte, usual gateway.TenantLimits) (map[cellway.TenantID]gateway.TenantLimits, error) {
	var file map[cellway.TenantID]own
	if err := strictjson.Decode(b, &file); err != nil {
		return nil, fmt.Errorf(`limits of tenants: %w: %w; write them as in {"acme": {"rate": 50}}`, cellway.ErrInvalid, err)
	}
	all := make(map[cellway.TenantID]gateway.TenantLimits, len(file))
	for id, o := range file {
		if err := id.Validate(); err != nil {
			return nil, err
		}
		l := usual
		if o.Rate != nil {
			l.Rate, l.Burst = *o.Rate, 0
		}
		if o.Burst != nil {
			l.Burst = *o.Burst
		}
		if o.InFlight != nil {
			l.InFlight = orNone(*o.InFlight)
		}
		if o.Tunnels != nil {
			l.Tunnels = orNone(*o.Tunnels)
		}
		all[id] = l
	}
	return all, nil
}
