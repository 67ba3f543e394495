package gatewayd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/looks"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/serving"
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
	return gateway.TenantLimits{Rate: s.tenantRate, Burst: s.tenantBurst, InFlight: serving.OrNone(s.tenantInFlight), Tunnels: serving.OrNone(s.tenantTunnels)}
}

// tenantsEvery is how often the file of tenant-limits is looked at.
const tenantsEvery = 2 * time.Second

// A tenantLimits is the file of tenant-limits: an object with a member for each
// tenant, such as {"acme": {"rate": 50, "in_flight": 512}}. 0 is no limit. It is
// read again when it changes; while it can't be, the limits read last stay in use.
type tenantLimits struct {
	path  string // empty for none
	usual gateway.TenantLimits
	log   *slog.Logger
	use   func(map[cellway.TenantID]gateway.TenantLimits) error // takes limits into use

	last looks.Last
	mu   sync.Mutex // guards what follows
	text []byte     // what is in use
}

// read reads the file.
func (l *tenantLimits) read() (all map[cellway.TenantID]gateway.TenantLimits, text []byte, err error) {
	text, err = regular.Read(l.path, maxTenantLimits)
	if err != nil {
		return nil, nil, err
	}
	if all, err = parseTenantLimits(text, l.usual); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", l.path, err)
	}
	return all, text, nil
}

// load reads the file for the first time.
func (l *tenantLimits) load() (all map[cellway.TenantID]gateway.TenantLimits, err error) {
	if l.path == "" {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.text, err = l.read()
	return all, err
}

// look takes the file into use if it has changed, and says so, or why it can't be.
func (l *tenantLimits) look() {
	changed, tenants, err := l.again()
	switch news := l.last.Note(err); {
	case err == nil && changed:
		l.log.Info("limits of tenants read again", "file", l.path, "tenants", tenants)
	case err == nil && news:
		l.log.Info("limits of tenants can be read again, and are as they were", "file", l.path)
	case err != nil && news:
		l.log.Error("limits of tenants not read; they stay as they were", "setting", "tenant-limits", "error", err)
	}
}

// again reads the file, and takes it into use if it has changed.
func (l *tenantLimits) again() (changed bool, tenants int, err error) {
	all, text, err := l.read()
	if err != nil {
		return false, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(text, l.text) {
		return false, 0, nil
	}
	if err := l.use(all); err != nil {
		return false, 0, fmt.Errorf("%s: %w", l.path, err)
	}
	l.text = text
	return true, len(all), nil
}

// Watch looks at the file until ctx ends: now and then, and whenever hup says so.
func (l *tenantLimits) Watch(ctx context.Context, hup <-chan struct{}) error {
	if l.path == "" {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return serving.LookAgain(ctx, tenantsEvery, hup, func(bool) { l.look() })
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
			l.InFlight = serving.OrNone(*o.InFlight)
		}
		if o.Tunnels != nil {
			l.Tunnels = serving.OrNone(*o.Tunnels)
		}
		all[id] = l
	}
	return all, nil
}
