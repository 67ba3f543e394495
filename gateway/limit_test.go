package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 8, 2, func(c *Config) {
			c.Tenant = TenantLimits{Rate: 10, Burst: 20}
			c.Tenants = map[cellway.TenantID]TenantLimits{"big": {Rate: 1000}}
		})
		// For ten seconds one tenant sends 200 requests a second, and others five.
		var mu sync.Mutex
		got := map[string]map[int]int{}
		var all sync.WaitGroup
		send := func(tenant string, every time.Duration) {
			all.Go(func() {
				for range int(10 * time.Second / every) {
					all.Go(func() {
						res := r.get(tenant)
						if res.status == 429 {
							wantCode(t, res, 429, TenantLimited)
							if s, err := strconv.Atoi(res.header.Get("Retry-After")); err != nil || s < 1 || s > 2 {
								t.Errorf("Retry-After is %q", res.header.Get("Retry-After"))
							}
						}
						mu.Lock()
						defer mu.Unlock()
						if got[tenant] == nil {
							got[tenant] = map[int]int{}
						}
						got[tenant][res.status]++
					})
					time.Sleep(every)
				}
			})
		}
		send("noisy", 5*time.Millisecond)
		send("big", 5*time.Millisecond)
		for i := range 20 {
			send(fmt.Sprint("quiet-", i), 200*time.Millisecond)
		}
		all.Wait()
		if n := got["noisy"][200]; n < 115 || n > 121 {
			t.Errorf("%d of the noisy tenant's requests were served, want 20 at once and 10 a second: %v", n, got["noisy"])
		}
		if got["big"][200] != 2000 {
			t.Errorf("a tenant with a limit of its own got %v", got["big"])
		}
		for i := range 20 {
			if g := got[fmt.Sprint("quiet-", i)]; g[200] != 50 {
				t.Errorf("a quiet tenant got %v, want 50 answers", g)
			}
		}
		if top := r.gw.Stats().Limited; len(top) != 1 || top[0].Name != "noisy" {
			t.Errorf("limited tenants are %v", top)
		}
	})
}

func TestTenantWhoseRequestsHangFillsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) {
			c.Tenant.InFlight = 10
			c.Timeout = 5 * time.Second
		})
		for _, m := range r.mills {
			m.set(forTenant("hangs", hang, fine(10*time.Millisecond)))
		}
		var all sync.WaitGroup
		busy := 0
		var mu sync.Mutex
		for range 200 {
			all.Go(func() {
				res := r.do(question{method: http.MethodPost, key: "hangs", body: "x"})
				if res.status == 429 {
					wantCode(t, res, 429, TenantBusy)
					mu.Lock()
					busy++
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Second)
		for i := range 20 {
			if res := r.get(fmt.Sprint("other-", i)); res.status != 200 || res.took > 50*time.Millisecond {
				t.Errorf("another tenant got %+v", res)
			}
		}
		all.Wait()
		if busy != 190 {
			t.Errorf("%d requests were refused, want all but 10", busy)
		}
		if res := r.do(question{method: http.MethodPost, key: "hangs", body: "x"}); res.status == 429 {
			t.Error("places were not given back")
		}
	})
}

func TestGatewayHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.MaxInFlight = 5 })
		for _, m := range r.mills {
			m.set(fine(time.Second))
		}
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { r.get(fmt.Sprint("t", i)) })
		}
		time.Sleep(100 * time.Millisecond)
		wantCode(t, r.get("one-more"), 503, Saturated)
		all.Wait()
		if res := r.get("one-more"); res.status != 200 {
			t.Errorf("answer %+v when there is room again", res)
		}
		if s := r.gw.Stats(); s.InFlight != 0 {
			t.Errorf("%d requests are still counted", s.InFlight)
		}
	})
}

// Limits of single tenants change while the gateway serves, at once.
func TestLimitsOfTenantsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) {
			c.Tenant = TenantLimits{Rate: 0.001, Burst: 2}
			c.Tenants = map[cellway.TenantID]TenantLimits{"big": {}}
		})
		served := func(tenant string) (n int) {
			for range 10 {
				if r.get(tenant).status == 200 {
					n++
				}
			}
			return n
		}
		if acme, big := served("acme"), served("big"); acme != 2 || big != 10 {
			t.Errorf("at first %d of acme's and %d of big's requests were served", acme, big)
		}
		err := r.gw.SetTenants(map[cellway.TenantID]TenantLimits{"acme": {}, "big": {Rate: -1}})
		if !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("a negative rate: %v", err)
		}
		if acme, big := served("acme"), served("big"); acme != 0 || big != 10 {
			t.Errorf("after limits that are not valid %d of acme's and %d of big's requests were served", acme, big)
		}
		if err := r.gw.SetTenants(map[cellway.TenantID]TenantLimits{"acme": {Rate: 0.001, Burst: 5}}); err != nil {
			t.Fatal(err)
		}
		if acme, big := served("acme"), served("big"); acme != 5 || big != 2 {
			t.Errorf("with the new limits %d of acme's and %d of big's requests were served", acme, big)
		}
	})
}
