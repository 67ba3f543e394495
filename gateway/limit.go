package gateway

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle"
)

// limits are those of one tenant.
type limits struct {
	rate              shuffle.Limit
	inFlight, tunnels int
}

// A limiter holds tenants to their limits. It has a fixed number of counters, of
// which each tenant uses a hand, so that no number of tenants fills it.
type limiter struct {
	usual   limits
	special atomic.Pointer[map[cellway.TenantID]limits]
	rates   atomic.Pointer[shuffle.Limiters]
	running *shuffle.Permits
	tunnels *shuffle.Permits
	limited *front.Top // tenants that were refused
}

func newLimiter(cfg *Config) (l *limiter, err error) {
	l = &limiter{usual: cfg.Tenant.limits(), limited: front.NewTop(tenantPlaces)}
	if err := l.take(cfg.Tenants); err != nil {
		return nil, err
	}
	if l.running, err = shuffle.NewPermits(deck()); err != nil {
		return nil, err
	}
	l.tunnels, err = shuffle.NewPermits(deck())
	return l, err
}

func (l *limiter) of(tenant string) *limits {
	if special, ok := (*l.special.Load())[cellway.TenantID(tenant)]; ok {
		return &special
	}
	return &l.usual
}

// take has other limits than the usual ones apply to these tenants, and to no
// others. Rates are counted anew: a request that came at a low rate keeps the next
// one waiting for as long as that one had to.
func (l *limiter) take(tenants map[cellway.TenantID]TenantLimits) error {
	rates, err := shuffle.NewLimiters(deck())
	if err != nil {
		return err
	}
	special := make(map[cellway.TenantID]limits, len(tenants))
	for t, its := range tenants {
		special[t] = its.limits()
	}
	l.special.Store(&special)
	l.rates.Store(rates)
	return nil
}

// validateTenants reports the first rule that limits of tenants break.
func validateTenants(tenants map[cellway.TenantID]TenantLimits) error {
	for _, t := range slices.Sorted(maps.Keys(tenants)) {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
		if err := tenants[t].validate("tenant " + string(t)); err != nil {
			return err
		}
	}
	return nil
}

// SetTenants puts tenants in the place of Config.Tenants, while the gateway
// serves: the next request of each tenant is held to its new limits. What tenants
// have under way stays counted; their rates are counted anew. The error wraps
// [cellway.ErrInvalid], and then nothing has changed.
func (gw *Gateway) SetTenants(tenants map[cellway.TenantID]TenantLimits) error {
	if err := validateTenants(tenants); err != nil {
		return err
	}
	return gw.limiter.take(tenants)
}

// admit holds the request against its tenant's limits, and answers it if it is
// beyond them.
func (x *exchange) admit() bool {
	l := x.gw.limiter
	name := x.ten.Name
	its := l.of(name)
	ok := true
	if its.inFlight > 0 {
		x.running, ok = l.running.Acquire(name, its.inFlight)
	}
	if ok && x.upgrade && its.tunnels > 0 {
		x.tunnelled, ok = l.tunnels.Acquire(name, its.tunnels)
	}
	if !ok {
		x.refuse(TenantBusy, time.Second)
		return false
	}
	if its.rate.Rate > 0 {
		// The limit was checked, so there is no error.
		ok, retry, _ := l.rates.Load().Allow(x.start, name, its.rate, 1)
		if !ok {
			x.refuse(TenantLimited, retry)
			return false
		}
	}
	return true
}

// refuse answers a request that is beyond a limit of its tenant.
func (x *exchange) refuse(code cellway.Code, retry time.Duration) {
	x.running.Release()
	x.tunnelled.Release()
	x.gw.limiter.limited.Add(x.ten.Name)
	a := answerOf(code)
	a.After = int(max(1, math.Ceil(min(retry.Seconds(), 3600))))
	x.say(&a)
}
