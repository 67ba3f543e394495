package gateway

import (
	"math"
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
	special map[cellway.TenantID]limits
	rates   *shuffle.Limiters
	running *shuffle.Permits
	tunnels *shuffle.Permits
	limited *front.Top // tenants that were refused
}

func newLimiter(cfg *Config) (l *limiter, err error) {
	l = &limiter{usual: cfg.Tenant.limits(), special: make(map[cellway.TenantID]limits), limited: front.NewTop(tenantPlaces)}
	for t, special := range cfg.Tenants {
		l.special[t] = special.limits()
	}
	if l.rates, err = shuffle.NewLimiters(deck()); err != nil {
		return nil, err
	}
	if l.running, err = shuffle.NewPermits(deck()); err != nil {
		return nil, err
	}
	l.tunnels, err = shuffle.NewPermits(deck())
	return l, err
}

func (l *limiter) of(tenant string) *limits {
	if len(l.special) > 0 {
		if special, ok := l.special[cellway.TenantID(tenant)]; ok {
			return &special
		}
	}
	return &l.usual
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
		ok, retry, _ := l.rates.Allow(x.start, name, its.rate, 1)
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
